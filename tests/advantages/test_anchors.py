"""Ids of states: what is one state, what is not, and what is refused."""

import itertools
from collections import OrderedDict
from dataclasses import dataclass, field
from enum import Enum, IntEnum
from typing import NamedTuple

import jax.numpy as jnp
import numpy as np
import pytest
from flax import struct
from hypothesis import given, settings
from hypothesis import strategies as st

from jerp.advantages.anchors import anchor_ids
from jerp.advantages.similarity import similar_texts
from jerp.errors import ConfigError, InputError
from tests.reference.similarity import components, link


class Room(NamedTuple):
    name: str
    exits: tuple


@dataclass
class Seen:
    text: str
    inventory: list
    time: int = field(default=0, compare=False)


class Tree(struct.PyTreeNode):
    value: object


class Colour(Enum):
    RED = 1
    BLUE = 2


class Number(IntEnum):
    ONE = 1


FLOATS = np.array([1.0, 2.0], np.float32)

DIFFERENT = [
    *(None, 1, 1.0, True, 1 + 0j, "1", b"1", 0, 0.0, -0.0, False, "", b""),
    *(float("nan"), float("inf"), 2**70, Colour.RED, Colour.BLUE, Number.ONE),
    *((), [], {}, set(), frozenset(), (1,), [1], {1}, [[1]], [1, 1], (1, (2,)), (1, 2)),
    *({"a": 1}, {"a": 2}, {"b": 1}, {"a": None}, {1: 1}, {True: 1}, {("a",): 1}),
    *(OrderedDict(a=1), Room("hall", ()), Room("hall", ("n",)), ("hall", ())),
    *(Seen("hall", []), Seen("hall", ["key"]), Tree(1), Tree(jnp.ones(1))),
    *(np.float32(1), np.float64(1), np.int32(1), np.int64(1), np.bool_(True)),
    *(FLOATS, FLOATS.astype(np.float64), FLOATS[None], FLOATS[:, None], FLOATS[::-1]),
    *(FLOATS.astype(">f4"), FLOATS.astype(np.int32), jnp.asarray(FLOATS, jnp.bfloat16)),
    *(np.array([]), np.array([[]]), np.array(["a"]), np.array([1, "a"], object)),
    *(np.array([b"a"]), np.array(["2020-01-01"], "M8[D]"), np.array([True]), "hall"),
]

SAME = [
    ("hall", np.str_("hall"), np.array(["hall", ""])[0]),
    (b"hall", np.bytes_(b"hall")),
    (float("nan"), -float("nan") * -1),
    ({"a": 1, "b": [2]}, {"b": [2], "a": 1}),
    ({1, 2, 3}, {3, 2, 1}),
    (FLOATS, FLOATS.copy(), jnp.asarray(FLOATS), np.asfortranarray(FLOATS)),
    (np.arange(4).reshape(2, 2), np.array([[0, 2], [1, 3]]).T),
    (np.float32(1), np.array(1, np.float32), jnp.float32(1)),
    (np.array([None, "a"], object), np.array([None, "a"], object)),
    (Seen("hall", ["key"], time=1), Seen("hall", ["key"], time=2)),
    (Room("hall", ("n",)), Room("hall", ("n",))),
    (Tree(FLOATS), Tree(jnp.asarray(FLOATS))),
    (None, None),
]


def test_states_of_other_type_shape_or_value_are_different():
    ids = anchor_ids(DIFFERENT)
    np.testing.assert_array_equal(ids, np.arange(len(DIFFERENT)))
    nested = anchor_ids([[{"x": state}] for state in DIFFERENT])
    np.testing.assert_array_equal(nested, np.arange(len(DIFFERENT)))


@pytest.mark.parametrize("states", SAME, ids=lambda s: repr(s[0])[:30])
def test_equal_states_are_one(states):
    assert anchor_ids([*states, "other", states[0]]).tolist() == [
        *[0] * len(states),
        1,
        0,
    ]


def test_texts_are_compared_exactly():
    texts = ["a lamp", "a lamp ", "A lamp", "a  lamp", "a lamp\n", "", "á", "a\u0301"]
    assert anchor_ids([*texts, *texts]).tolist() == [*range(8), *range(8)]
    mixed = anchor_ids([*texts, None, *texts])
    assert mixed.tolist() == [*range(8), 8, *range(8)]


def test_ids_are_numbered_by_first_appearance():
    ids = anchor_ids(iter(["b", "a", "b", "c", "a"]))
    assert ids.tolist() == [0, 1, 0, 2, 1] and ids.dtype == np.int32
    assert anchor_ids([]).shape == (0,)
    rows = np.array([[1, 2], [3, 4], [1, 2]])
    assert anchor_ids(rows).tolist() == [0, 1, 0]
    assert anchor_ids(jnp.asarray(rows)).tolist() == [0, 1, 0]


def test_key_picks_what_identifies_a_state():
    """Text alone merges states that differ in the inventory: the paper's aliasing."""
    states = [("hall", ["key"]), ("hall", []), ("hall", ["key"])]
    assert anchor_ids(states).tolist() == [0, 1, 0]
    assert anchor_ids(states, key=lambda s: s[0]).tolist() == [0, 0, 0]
    assert anchor_ids(["Hall", "hall"], key=str.lower).tolist() == [0, 0]


def test_lengths_lay_the_ids_out_as_episodes():
    ids = anchor_ids(list("abacb"), lengths=[2, 0, 3])
    assert ids.tolist() == [[0, 1, -1], [-1, -1, -1], [0, 2, 1]]
    assert ids.dtype == np.int32
    assert anchor_ids([], lengths=[]).shape == (0, 0)
    assert anchor_ids([], lengths=np.zeros(2, np.int32)).shape == (2, 0)


@pytest.mark.parametrize("lengths", [[2, 2], [3], [], [[5]], 5, [6, -1], [2.5, 2.5]])
def test_lengths_that_do_not_fit_are_refused(lengths):
    with pytest.raises(InputError, match="lengths: expected"):
        anchor_ids(list("abacb"), lengths=lengths)


@pytest.mark.parametrize(
    ("state", "place"),
    [
        (object(), r"states\[1\]: "),
        ({"inventory": [1, object()]}, r"states\[1\]\['inventory'\]\[1\]: "),
        ({"map": {(0, 1): object()}}, r"states\[1\]\['map'\]\[\(0, 1\)\]: "),
        ({object: 1}, r"states\[1\]\.keys\(<class 'object'>\): "),
        (Seen("hall", [object()]), r"states\[1\]\.inventory\[0\]: "),
        (Room("hall", (object(),)), r"states\[1\]\[1\]\[0\]: "),
        ({len}, r"states\[1\]\{\.\.\.\}: "),
        (np.array([[1], [object()]], object), r"states\[1\]\.flat\[1\]: "),
        (np.zeros(2, [("x", object)]), r"states\[1\]: "),
        (np.ma.masked_array([1, 2], [True, False]), r"states\[1\]: .* MaskedArray"),
        (Seen, r"states\[1\]: .* got type"),
        (range(3), r"states\[1\]: .* got range\. Give a key"),
    ],
    ids=lambda x: x if isinstance(x, str) else "",
)
def test_an_unknown_type_is_refused_with_its_place(state, place):
    with pytest.raises(InputError, match=place):
        anchor_ids(["fine", state])
    with pytest.raises(InputError, match=r"^key\(states\[1\]\)"):
        anchor_ids(["fine", 1], key=lambda s: state if s == 1 else s)


@pytest.mark.parametrize("states", ["hall", b"hall", {"hall": 1}])
def test_one_state_is_no_sequence_of_states(states):
    with pytest.raises(InputError, match="states: expected a sequence of states"):
        anchor_ids(states)


CHAIN = ["abcdefgh", "abcdefgx", "abcdefyx", "abcdezyx", "north", "nort"]


def test_similar_texts_are_clusters_of_a_task():
    """Each of the first four differs from the next in one letter of eight: 7/8."""
    keywords = {"similarity": 0.85, "task_id": [0] * 6}
    assert anchor_ids(CHAIN, **keywords).tolist() == [0, 0, 0, 0, 1, 1]
    strict = {"similarity": 0.88, "task_id": [0] * 6}
    assert anchor_ids(CHAIN, **strict).tolist() == [0, 1, 2, 3, 4, 4]


def test_similarity_never_reaches_across_tasks():
    texts = ["a red key", "a red kez", "a red key"]
    one = anchor_ids(texts, similarity=0.8, task_id=[3, 3, 3])
    two = anchor_ids(texts, similarity=0.8, task_id=[3, 5, 5])
    assert (one.tolist(), two.tolist()) == ([0, 0, 0], [0, 1, 1])
    # A text that would connect two others, but is of another task.
    split = ["abcdefgh", "abcdefgx", "abcdefyx"]
    apart = anchor_ids(split, similarity=0.85, task_id=["p", "q", "p"])
    assert apart.tolist() == [0, 1, 2]


def test_tasks_of_episodes():
    ids = anchor_ids(CHAIN, lengths=[4, 2], similarity=0.85, task_id=[7, 7])
    assert ids.tolist() == [[0, 0, 0, 0], [1, 1, -1, -1]]
    with pytest.raises(
        InputError, match=r"task_id: expected 2, one an episode .* got 6"
    ):
        anchor_ids(CHAIN, lengths=[4, 2], similarity=0.85, task_id=[7] * 6)
    with pytest.raises(InputError, match=r"task_id: expected 6, .* got 1"):
        anchor_ids(CHAIN, similarity=0.85, task_id=[7])


def test_clusters_do_not_depend_on_the_order():
    """First fit would: what comes first decides which others are near enough to it."""
    texts = CHAIN[:3]
    for order in itertools.permutations(range(3)):
        ids = anchor_ids([texts[i] for i in order], similarity=0.85, task_id=[0] * 3)
        assert ids.tolist() == [0, 0, 0]
    assert first_fit(texts, 0.85) == [0, 0, 1]
    assert first_fit([texts[1], texts[0], texts[2]], 0.85) == [0, 0, 0]


def first_fit(texts, threshold):
    """Into the first cluster whose first member is similar, as released code does."""
    first, found = [], []
    for text in texts:
        fits = [i for i, one in enumerate(first) if link(one, text) >= threshold]
        if not fits:
            first.append(text)
        found.append(fits[0] if fits else len(first) - 1)
    return found


short_texts = st.lists(st.text("abc", max_size=6), min_size=1, max_size=8)


@settings(deadline=None)
@given(short_texts, st.sampled_from([0.4, 0.6, 0.8]), st.randoms(use_true_random=False))
def test_clusters_are_components_in_any_order(texts, threshold, random):
    representative = similar_texts(texts, threshold=threshold)
    clusters = components(texts, threshold)
    assert representative == {t: min(c) for c in clusters for t in c}
    turned = list(texts)
    random.shuffle(turned)
    assert similar_texts(turned, threshold=threshold) == representative


def test_long_texts_are_compared_too():
    """The heuristic for 200 characters and more finds these two wholly different."""
    room = "You are in the middle of a room. Looking around you, you see a desk. " * 4
    one, two = room + "It is noon.", room + "It is dark."
    assert len(set(similar_texts([one, two], threshold=0.9).values())) == 1


@pytest.mark.parametrize("similarity", [0.0, 1.0, -1, float("nan")])
def test_a_threshold_outside_is_refused(similarity):
    with pytest.raises(InputError, match=r"similarity: expected in \(0, 1\)"):
        anchor_ids(["a"], similarity=similarity, task_id=[0])


def test_similarity_is_of_texts_and_within_tasks():
    with pytest.raises(InputError, match=r"states\[1\]: expected a text, because"):
        anchor_ids(["a", 1], similarity=0.5, task_id=[0, 0])
    for keywords in ({"similarity": 0.5}, {"task_id": [0]}):
        with pytest.raises(ConfigError, match="expected both or none"):
            anchor_ids(["a"], **keywords)


small_states = st.recursive(
    st.none() | st.booleans() | st.integers(0, 1) | st.floats(0, 1) | st.text("ab"),
    lambda inner: st.lists(inner, max_size=2) | st.dictionaries(st.text("ab"), inner),
    max_leaves=4,
)


@settings(deadline=None)
@given(st.lists(small_states, max_size=8), st.randoms(use_true_random=False))
def test_the_partition_does_not_depend_on_the_order(states, random):
    """Two states are equal iff `repr` writes them alike, which shows the types."""
    order = list(range(len(states)))
    random.shuffle(order)
    plain, turned = anchor_ids(states), anchor_ids([states[i] for i in order])
    written = [canonical(s) for s in states]
    for i, j in itertools.combinations(range(len(states)), 2):
        same = written[order[i]] == written[order[j]]
        assert (turned[i] == turned[j]) == same
        assert (plain[order[i]] == plain[order[j]]) == same
    assert list(dict.fromkeys(plain.tolist())) == list(range(len(set(written))))


def canonical(state):
    if isinstance(state, dict):
        return repr(sorted((k, canonical(v)) for k, v in state.items()))
    if isinstance(state, list):
        return "list" + repr([canonical(x) for x in state])
    return repr(state)
