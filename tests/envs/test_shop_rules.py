"""Rules of a shop: what is said is seen, and what to choose is a type's own."""

import doctest
from functools import cache

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from jerp.envs import shop_rules
from jerp.envs.checks import check_environment
from jerp.envs.rule_language import Situated, read_sentence, sentence
from jerp.envs.shop import Shop
from jerp.envs.shop_rules import SHOP_TYPES, ShopRules, shop_type
from jerp.envs.shop_state import Goal, Items, ShopParams, ShopState
from jerp.envs.shop_tasks import shop_tasks
from jerp.envs.shop_things import Page, Query, ShopSize
from jerp.rollout.demonstrations import demonstrations
from jerp.rollout.rule_demonstrations import rule_demonstrations
from jerp.rules.instructions import imperative_fault

SHOP = Shop()
RULES = ShopRules(SHOP.size)
ENV = Situated(SHOP, RULES)

NOTHING = "you look at what fits and nothing asked is chosen"
ONE = "you look at what fits and one thing asked is chosen"
TWO = "you look at what fits and two things asked are chosen"
WRONG = "you look at what fits and a choice is wrong"
SIZE, COLOUR = "choose the size that is asked", "choose the colour that is asked"


@cache
def requests():
    """Tasks, and the type of each."""
    tasks = shop_tasks(jax.random.key(0), 96, size=SHOP.size)
    return tasks, np.asarray(shop_type(tasks))


@pytest.fixture(scope="module")
def played():
    """Episodes and their moves: of an oracle, and of one that errs half of the time."""

    tasks, _ = requests()

    @jax.jit
    def play(noise):
        data = demonstrations(
            jax.random.key(1),
            ENV,
            tasks,
            num_steps=SHOP.horizon,
            batch_size=384,
            noise=noise,
        )
        params = jax.tree.map(lambda x: x[data.task_id], tasks)
        return data, ENV.moves(data.action, data.observation, params)

    return jax.device_get((play(0.0), play(0.5)))


@pytest.mark.slow
def test_a_situated_shop_keeps_the_contract_of_worlds():
    size = ShopSize(num_items=60, items_a_page=2, num_pages=2)
    env = Situated(Shop(size), ShopRules(size))
    tasks = shop_tasks(jax.random.key(0), 8, size=size)
    check_environment(env, tasks, jax.random.key(0), num_steps=16)


def test_all_situations_and_moves_come_up(played):
    _, (data, moves) = played
    seen = data.observation[..., -1][data.mask]
    assert set(seen) == set(range(1, len(RULES.situations)))
    assert set(moves[data.mask]) == set(range(1, len(RULES.moves)))


def test_a_situation_is_told_by_what_is_seen(played):
    """Equal fields of the shop are one situation: a policy could tell it itself."""
    _, (data, _) = played
    rows = data.observation[data.mask]
    _, index = np.unique(rows[:, :-1], axis=0, return_inverse=True)
    assert len(set(index)) < len(rows) / 2
    for number in np.unique(index):
        assert len(set(rows[index == number, -1])) == 1


@pytest.mark.parametrize(
    ("situation", "expected"),
    [
        (NOTHING, ("buy it", SIZE, COLOUR, COLOUR)),
        (ONE, (None, "buy it", "buy it", SIZE)),
        (TWO, (None, None, None, "buy it")),
    ],
)
def test_each_type_has_choices_of_its_own(played, situation, expected):
    (data, moves), _ = played
    here = data.mask & (data.observation[..., -1] == RULES.situations.index(situation))
    _, kinds = requests()
    found = [
        {RULES.moves[m] for m in moves[here & (kinds[data.task_id] == kind)[:, None]]}
        for kind in range(len(SHOP_TYPES))
    ]
    assert found == [{move} if move else set() for move in expected]


def test_what_fits_is_opened_and_a_search_is_a_matter_of_luck(played):
    """The oracle knows what lies behind a title, and which search is shortest."""
    (data, moves), _ = played
    made = {
        situation: [
            RULES.moves[m]
            for m in moves[data.mask & (data.observation[..., -1] == situation)]
        ]
        for situation in range(1, 7)
    }
    assert len(set(made.pop(1))) == 4
    for moves_there in made.values():
        assert moves_there.count("open the first that fits") > len(moves_there) / 2


def followed(rules, situations):
    """The part of each type's requests that is fulfilled, given rules of each type.

    In the situations nothing is known but the rules; elsewhere the oracle plays.
    """
    tasks, kinds = requests()
    pairs = [
        (kind, RULES.situations.index(s), RULES.moves.index(m))
        for kind, said in enumerate(rules)
        for s, m in said.items()
    ]
    table = np.array(pairs, np.int32)
    working = np.full((len(rules), len(table)), -1, np.int32)
    for i, (kind, *_) in enumerate(pairs):
        working[kind, i] = i
    unknown = tuple(RULES.situations.index(s) for s in situations)

    @jax.jit
    def play(working_set):
        return rule_demonstrations(
            jax.random.key(2),
            ENV,
            tasks,
            table[:, 1:],
            working_set,
            num_steps=SHOP.horizon,
            batch_size=192,
            unknown=unknown,
        ).score

    def part(working_set):
        wins = np.asarray(play(working_set)) >= 1
        return [wins[np.tile(kinds, 2) == kind].mean() for kind in range(4)]

    alike = [part(np.tile(working[[kind]], (len(kinds), 1))) for kind in range(4)]
    none = part(np.full((len(kinds), len(table)), -1, np.int32))
    return np.array([*alike, none])


def test_rules_of_a_type_are_what_its_requests_need():
    """They fulfil every request of their type, and of other types few or none."""
    rules = (
        {NOTHING: "buy it"},
        {NOTHING: SIZE, WRONG: SIZE, ONE: "buy it"},
        {NOTHING: COLOUR, WRONG: COLOUR, ONE: "buy it"},
        {NOTHING: COLOUR, ONE: SIZE, TWO: "buy it"},
    )
    part = followed(rules, (NOTHING, ONE, TWO, WRONG))
    own = np.diag(part[:4])
    assert (own == 1).all()
    for kind in range(4):
        others = np.delete(part[:, kind], kind)
        assert others.max() < (1 if kind == 0 else 0.7)
    assert (part[4, 1:] < 0.3).all()


# A lightweight and waterproof kettle, medium and red, for $40 at most.
GOAL = Goal(
    category=jnp.int32(0),
    attributes=jnp.int32(0b110),
    options=jnp.asarray([2, 3], jnp.int32),
    limit=jnp.int32(40),
)
TINY = ShopSize(num_items=60, items_a_page=3, num_pages=2)
FITS = (0, 0b1110, (0b11, 0b100), 40)
ITEMS = {
    "fits": FITS,
    "pan": (1, *FITS[1:]),
    "not light": (0, 0b1100, *FITS[2:]),
    "dear": (*FITS[:3], 41),
    "all wrong": (1, 0b1100, (0, 0), 41),
    "dear and heavy": (0, 0b1100, *FITS[2:3], 41),
    "large only": (*FITS[:2], (0b101, 0b100), 40),
    "one colour": (*FITS[:2], (0b11, 0), 40),
}


def shelf(*names):
    """The same three items on every page."""
    rows = [ITEMS[name] for name in names]
    category, attributes, offers, price = (
        np.broadcast_to(np.array(x, np.int32), (6, 2, *np.shape(x)))
        for x in zip(*rows, strict=True)
    )
    return Items(np.zeros((6, 2, 3), np.int32), category, attributes, offers, price)


def situation_of(names, page, *, query=Query.CATEGORY, turned=0, chosen=(0, 0), **goal):
    state = ShopState(*(jnp.int32(x) for x in (0, page, query, turned, 0)), chosen)
    state = state.replace(chosen=jnp.asarray(chosen, jnp.int32))
    goal = {name: jnp.asarray(x, jnp.int32) for name, x in goal.items()}
    params = ShopParams(GOAL.replace(**goal), jax.tree.map(jnp.asarray, shelf(*names)))
    return RULES_TINY.situations[NAMED(state, params)]


RULES_TINY = ShopRules(TINY)
NAMED = jax.jit(RULES_TINY.situation)
NO_FIT = ("pan", "dear", "not light")


@pytest.mark.parametrize(
    ("names", "settings", "expected"),
    [
        (("fits", "pan", "fits"), {}, "the first result fits"),
        (("pan", "dear", "fits"), {}, "the third result is the first that fits"),
        # A list says nothing of sizes and colours.
        (
            ("dear", "large only", "fits"),
            {"turned": 1},
            "the second result is the first that fits",
        ),
        (NO_FIT, {}, "no result fits after another search"),
        (NO_FIT, {"query": 1}, "no result fits after another search"),
        (NO_FIT, {"query": 4}, "no result fits after another search"),
        (
            NO_FIT,
            {"query": 5},
            "no result fits after a search for all that is asked",
        ),
        # One attribute is all there are.
        (
            ("pan", "pan", "dear"),
            {"query": 1, "attributes": 0b100},
            "no result fits after a search for all that is asked",
        ),
        (NO_FIT, {"query": 5, "turned": 1}, "no result on the last page fits"),
    ],
)
def test_results_in_words(names, settings, expected):
    assert situation_of(names, Page.RESULTS, **settings) == expected


@pytest.mark.parametrize(
    ("name", "settings", "expected"),
    [
        ("pan", {}, "you look at something of another kind"),
        ("not light", {}, "you look at something that lacks an attribute"),
        ("dear", {}, "you look at something that costs too much"),
        # Of what is amiss the first is said: kind, attributes, price, choice.
        ("all wrong", {}, "you look at something of another kind"),
        ("dear and heavy", {}, "you look at something that lacks an attribute"),
        (
            "large only",
            {"chosen": (1, 3)},
            "you look at what fits but it lacks a choice that is asked",
        ),
        ("large only", {}, "you look at what fits but it lacks a choice that is asked"),
        ("one colour", {}, "you look at what fits but it lacks a choice that is asked"),
        ("large only", {"options": [0, 3]}, NOTHING),
        ("fits", {}, NOTHING),
        ("fits", {"chosen": (2, 0)}, ONE),
        ("fits", {"chosen": (0, 3)}, ONE),
        ("fits", {"chosen": (2, 3)}, TWO),
        ("fits", {"chosen": (1, 3)}, WRONG),
        ("fits", {"chosen": (1, 3), "options": [0, 3]}, ONE),
        ("fits", {"chosen": (1, 3), "options": [0, 0]}, NOTHING),
    ],
)
def test_items_in_words(name, settings, expected):
    names = (name, "fits", "fits")
    assert situation_of(names, Page.ITEM, **settings) == expected
    # Once it is bought, nothing else is seen of it.
    assert situation_of(names, Page.BOUGHT, **settings) == expected


def test_the_search_page_in_words():
    assert situation_of(NO_FIT, Page.SEARCH) == "you are at the search page"


@pytest.mark.parametrize("attributes", [0b110, 0b100])
def test_moves_in_words(attributes):
    """Of three results a page; the second is the first that fits."""
    params = ShopParams(GOAL.replace(attributes=jnp.int32(attributes)), shelf=None)
    moves = jax.vmap(RULES_TINY.move, (0, None, None))(
        jnp.arange(Shop(TINY).num_actions), jnp.int32(3), params
    )
    every = "search for all that is asked"
    one = "search for the kind with one attribute of several"
    assert [RULES_TINY.moves[m] for m in moves] == [
        "search for the kind alone",
        *[one if attributes == 0b110 else every] * 3,
        "search for the attributes in any kind",
        every,
        "go back to the search page",
        "go to the previous page",
        "go to the next page",
        "open another result",
        "open the first that fits",
        "open another result",
        *["choose another size", SIZE, *["choose another size"] * 3],
        *["choose another colour"] * 2,
        COLOUR,
        *["choose another colour"] * 3,
        "buy it",
    ]


def test_where_no_result_fits_any_is_another():
    params = ShopParams(GOAL, shelf=None)
    for situation in range(7, len(RULES.situations)):
        for action in range(9, 14):
            move = RULES.move(jnp.int32(action), jnp.int32(situation), params)
            assert RULES.moves[move] == "open another result"


def test_types():
    options = jnp.array([[0, 0], [4, 0], [0, 1], [5, 6]], jnp.int32)
    params = ShopParams(GOAL.replace(options=options), shelf=None)
    np.testing.assert_array_equal(shop_type(params), [0, 1, 2, 3])
    assert len(SHOP_TYPES) == 4
    assert np.bincount(requests()[1]).min() > 96 / 8


def test_sentences_are_read_as_they_are_written():
    for s in range(1, len(RULES.situations)):
        for m in range(1, len(RULES.moves)):
            text = sentence(RULES, s, m)
            assert read_sentence(RULES, text) == (s, m)
            assert imperative_fault(text, max_words=25) is None


def test_names():
    assert len(set(RULES.situations)) == len(RULES.situations) == 18
    assert len(set(RULES.moves)) == len(RULES.moves) == 15
    assert not any("," in phrase for phrase in (*RULES.situations, *RULES.moves))
    assert hash(ENV) == hash(Situated(Shop(), ShopRules(ShopSize())))
    assert ENV.field_sizes[-1] == len(RULES.situations)


def test_examples():
    assert doctest.testmod(shop_rules).failed == 0
