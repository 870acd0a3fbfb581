"""Blocks are shared by what they hold, pinned while needed, and given away by age."""

import random

import pytest

from jerp.bridge.blocks import BlockAllocator, cut_into_blocks


def cut(tokens, scope="s"):
    return cut_into_blocks(tokens, block_size=4, scope=scope)


def test_a_prompt_is_cut_into_blocks():
    blocks = cut([1, 2, 3, 4, 5, 6])
    assert [(b.start, b.tokens) for b in blocks] == [(0, (1, 2, 3, 4)), (4, (5, 6))]
    assert cut([]) == ()


@pytest.mark.parametrize(
    ("tokens", "scope", "shared"),
    [
        ([1, 2, 3, 4, 5, 6], "s", 2),
        ([1, 2, 3, 4, 5, 7], "s", 1),
        ([1, 2, 3, 4, 5], "s", 1),
        ([9, 2, 3, 4, 5, 6], "s", 0),  # what comes before is part of a block's name
        ([1, 2, 3, 4, 5, 6], "other", 0),
    ],
)
def test_names_agree_exactly_where_prompts_agree(tokens, scope, shared):
    ours, theirs = cut([1, 2, 3, 4, 5, 6]), cut(tokens, scope)
    same = [a.name == b.name for a, b in zip(ours, theirs, strict=True)]
    assert same == [i < shared for i in range(2)]


def test_a_second_prompt_computes_only_what_is_new():
    allocator = BlockAllocator(8)
    first = allocator.hold(cut([1, 2, 3, 4, 5, 6]))
    second = allocator.hold(cut([1, 2, 3, 4, 7]))
    third = allocator.hold(cut([1, 2, 3, 4, 5, 6]))
    assert (first.missing, second.missing, third.missing) == ((0, 1), (1,), ())
    assert first.table[0] == second.table[0]
    assert first.table == third.table
    assert len({*first.table, *second.table}) == 3


def test_pinned_blocks_are_not_given_away():
    allocator = BlockAllocator(3)
    held = allocator.hold(cut(range(8)))
    assert allocator.hold(cut([50] * 8)) is None
    assert allocator.hold(cut([50] * 4)).missing == (0,)
    assert allocator.hold(cut(range(8))).missing == ()
    assert held.table == allocator.hold(cut(range(8))).table


def test_nothing_is_taken_when_room_is_short():
    allocator = BlockAllocator(2)
    held = allocator.hold(cut(range(4)))
    assert allocator.hold(cut([60] * 8)) is None
    allocator.release(held)
    assert allocator.hold(cut([60] * 8)).missing == (0, 1)


def test_the_block_used_longest_ago_goes_first():
    allocator = BlockAllocator(3)
    for tokens in ([1], [2], [3], [1]):
        allocator.release(allocator.hold(cut(tokens)))
    allocator.release(allocator.hold(cut([4])))  # takes the place of 2
    assert allocator.hold(cut([1])).missing == ()
    assert allocator.hold(cut([3])).missing == ()
    assert allocator.hold(cut([2])).missing == (0,)


def test_the_end_of_a_prompt_goes_before_its_beginning():
    allocator = BlockAllocator(3)
    allocator.release(allocator.hold(cut(range(12))))
    allocator.release(allocator.hold(cut([70])))
    assert allocator.hold(cut(range(8))).missing == ()


def test_a_block_pinned_twice_is_released_twice():
    allocator = BlockAllocator(1)
    first, second = allocator.hold(cut([1])), allocator.hold(cut([1]))
    allocator.release(first)
    assert allocator.hold(cut([2])) is None
    allocator.release(second)
    assert allocator.hold(cut([2])).missing == (0,)


def test_no_two_pinned_blocks_ever_share_a_place():
    """Against a dict, over random prompts of three letters."""
    rng, allocator, held = random.Random(0), BlockAllocator(12), []
    for _ in range(500):
        if held and rng.random() < 0.5:
            allocator.release(held.pop(rng.randrange(len(held)))[1])
            continue
        blocks = cut([rng.randrange(3) for _ in range(rng.randrange(1, 13))])
        got = allocator.hold(blocks)
        if got is not None:
            held.append((blocks, got))
        places = {}
        for owned, table in ((b, h.table) for b, h in held):
            for block, place in zip(owned, table, strict=True):
                assert places.setdefault(place, block.name) == block.name
                assert 0 <= place < 12
