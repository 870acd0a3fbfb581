"""The shop keeps its contract, and equals a slow one in every state."""

import doctest
import importlib
from functools import partial

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from jerp.envs.checks import check_environment
from jerp.envs.shop import Shop
from jerp.envs.shop_catalogue import shop_catalogue
from jerp.envs.shop_reward import attainable_reward, purchase_reward, type_factor
from jerp.envs.shop_state import Goal, Items, ShopParams, ShopState
from jerp.envs.shop_tasks import shop_tasks, split_catalogue
from jerp.envs.shop_text import describe, describe_action, describe_task
from jerp.envs.shop_things import CATEGORIES, Page, Query, ShopSize
from jerp.errors import InputError, UnknownNameError
from jerp.typing import Outcome
from tests.reference import shop as reference

SMALL = ShopSize(num_items=60, items_a_page=2, num_pages=2)
PAGES = ("search", "results", "item", "bought")
KEY = partial(jax.random.key, 0)
PAY = jax.jit(purchase_reward)

GOAL = Goal(
    category=jnp.int32(0),
    attributes=jnp.int32(0b110),
    options=jnp.asarray([3, 4], jnp.int32),
    limit=jnp.int32(40),
)
ITEM = Items(
    number=jnp.int32(0),
    category=jnp.int32(0),
    attributes=jnp.int32(0b1110),
    offers=jnp.asarray([0b110, 0b1001], jnp.int32),
    price=jnp.int32(40),
)


def on_host(tree):
    return jax.tree.map(np.asarray, tree)


def row(tree, index):
    return jax.tree.map(lambda leaf: leaf[index], tree)


def members(bits):
    return {i for i in range(16) if int(bits) >> i & 1}


def slow_item(items, *at):
    item = row(items, at)
    sizes, colours = map(members, item.offers)
    return {
        "category": int(item.category),
        "attributes": members(item.attributes),
        "sizes": sizes,
        "colours": colours,
        "price": int(item.price),
    }


def slow_goal(goal):
    size, colour = (int(v) - 1 if v else None for v in goal.options)
    return {
        "category": int(goal.category),
        "attributes": members(goal.attributes),
        "size": size,
        "colour": colour,
        "limit": int(goal.limit),
    }


def slow_shop(params):
    goal, (pages, slots) = slow_goal(params.goal), params.shelf.price.shape[1:]
    shelves = [
        [[slow_item(params.shelf, q, p, s) for s in range(slots)] for p in range(pages)]
        if reference.query(goal, q)
        else None
        for q in range(len(Query))
    ]
    return reference.Shop(goal, shelves)


def words(state):
    """A state of the slow shop as page, query, page of results, slot and options."""
    where = [PAGES.index(state[0]), *state[1:4], *[0] * (4 - len(state[:4]))]
    chosen = state[4:] or (None, None)
    return (*where, *(0 if v is None else v + 1 for v in chosen))


def fast_states(states, step):
    array = np.asarray([words(s) for s in states], np.int32)
    return ShopState(
        step=jnp.asarray(np.full(len(states), step, np.int32)),
        page=jnp.asarray(array[:, 0]),
        query=jnp.asarray(array[:, 1]),
        turned=jnp.asarray(array[:, 2]),
        slot=jnp.asarray(array[:, 3]),
        chosen=jnp.asarray(array[:, 4:]),
    )


@pytest.fixture(scope="module")
def tasks():
    return on_host(shop_tasks(KEY(), 24, size=SMALL))


@pytest.fixture(scope="module")
def everything(tasks):
    """All states of a task with options, each action from each, and the oracle's."""
    asked = np.bitwise_count(tasks.goal.attributes) + (tasks.goal.options > 0).sum(-1)
    params = row(tasks, int(asked.argmax()))
    slow = slow_shop(params)
    states, steps = slow.states()
    env = Shop(SMALL, observation="tokens")

    @jax.jit
    @partial(jax.vmap, in_axes=(0, None))
    def play(state, params):
        def one(action):
            return env.step(KEY(), state, action, params)

        shown = env.observe(state, params), env.anchor(state, params)
        after = jax.vmap(one)(jnp.arange(env.num_actions))
        return after, shown, env.admissible(state, params), env.oracle(state, params)

    def played(step, params=params):
        given = jax.tree.map(jnp.asarray, params)
        return on_host(play(fast_states(states, step), given))

    return slow, states, steps, played


def test_the_shop_keeps_its_contract():
    env = Shop()
    assert env.size.num_items >= 1000
    assert env.num_observation_tokens <= 40
    tasks = row(shop_tasks(KEY(), 8), slice(None))
    check_environment(env, tasks, KEY(), num_steps=16)


def test_every_step_from_every_state_is_that_of_the_slow_shop(everything):
    slow, states, _, played = everything
    (after, now), (seen, anchor), admissible, _ = played(0)
    assert len(states) > 300
    number = {state: i for i, state in enumerate(states)}
    found = np.stack([after.page, after.query, after.turned, after.slot], axis=-1)
    found = np.concatenate([found, after.chosen], axis=-1)
    for i, state in enumerate(states):
        moves = slow.moves(state)
        assert set(np.flatnonzero(admissible[i])) == set(moves)
        then = [moves.get(action, state) for action in range(found.shape[1])]
        np.testing.assert_array_equal(found[i], [words(s) for s in then])
        index = [number[s] for s in then]
        np.testing.assert_array_equal(now.observation[i], seen.tokens[index])
        np.testing.assert_array_equal(now.anchor[i], anchor[index])
        np.testing.assert_array_equal(now.legal[i], admissible[index])
        worth = np.asarray([slow.worth(s) for s in then])
        ended = np.asarray([s[0] == "bought" for s in then])
        np.testing.assert_allclose(now.score[i], worth, rtol=1e-6)
        pays = worth * (state[0] != "bought")
        np.testing.assert_allclose(now.reward[i], pays, rtol=1e-6)
        np.testing.assert_array_equal(now.terminated[i], ended)
        success = now.outcome[i] == Outcome.SUCCESS
        np.testing.assert_array_equal(success, worth == 1)
    assert set(np.unique(now.score)) > {0, 1}


def test_running_out_of_steps_pays_nothing_and_ends(everything):
    _, states, _, played = everything
    live = np.asarray([s[0] != "bought" for s in states])
    (after, now), *_ = played(14)
    assert not now.legal.any()
    np.testing.assert_array_equal(now.truncated, after.page != Page.BOUGHT)
    assert not now.reward[now.truncated].any()
    assert not now.score[now.truncated].any()
    assert (now.outcome[now.truncated] == Outcome.TRUNCATED).all()
    assert now.reward[live].max() == 1  # the last step may still buy
    (after, now), (_, anchor), admissible, _ = played(15)
    assert not admissible.any()
    assert not now.reward.any()
    assert (after.step == 15).all()
    assert (now.anchor == anchor[:, None]).all()


def test_the_oracle_takes_a_shortest_way_from_every_state(everything):
    slow, states, steps, played = everything
    oracle = played(0)[-1]
    assert steps["search",] <= 6
    for state, action in zip(states, oracle.tolist(), strict=True):
        if state[0] != "bought":
            assert steps[slow.moves(state)[action]] == steps[state] - 1


def test_anchors_are_exact_and_hold_what_was_chosen(everything):
    _, states, _, played = everything
    anchor = played(0)[1][1]
    assert len(np.unique(anchor)) == len(states)
    # Two places with the same kettle look the same; their anchors tell them apart.
    (_, now), (seen, anchor), *_ = played(0, furnished())
    anchors_by_look = {}
    for state, look, number in zip(states, seen.fields, anchor, strict=True):
        if state[0] == "item" and state[4:] == (None, None):
            anchors_by_look.setdefault(look.tobytes(), set()).add(int(number))
    assert {len(found) for found in anchors_by_look.values()} == {SMALL.items_a_page}
    # What was chosen of it decides what it pays, so that the anchor must hold that.
    items = [i for i, s in enumerate(states) if s[0] == "item"]
    assert len(np.unique(now.reward[items, -1])) > 1


def test_fields_say_how_the_item_compares(everything):
    slow, states, _, played = everything
    _, (seen, _), *_ = played(0)
    assert (seen.fields >= 0).all()
    assert (seen.fields < np.asarray(Shop(SMALL).field_sizes)).all()
    real = seen.tokens > 0
    assert (real[:, 1:] <= real[:, :-1]).all()
    at_item = np.asarray([s[0] in ("item", "bought") for s in states])
    title = seen.fields[:, 7 + 3 * SMALL.items_a_page :]
    assert not title[~at_item].any()
    near, goal = {1.0: 4, 0.5: 3, 0.1: 2, 0.0: 1}, slow.goal

    def compared(item):
        factor = reference.type_factor(goal["category"], item["category"])
        matched = len(goal["attributes"] & item["attributes"])
        return [near[factor], 1 + matched, 1 + (item["price"] > goal["limit"])]

    def offered(asked, had):
        return 1 if not had else 3 if asked is None or asked in had else 2

    for i, state in enumerate(states):
        head, shown = seen.fields[i, 4:7], seen.fields[i, 7:-7].tolist()
        page, *where = words(state)[:3]
        assert head.tolist() == [page + 1, *(w + (page > 0) for w in where)]
        if state[0] == "results":
            items = slow.shelves[state[1]][state[2]]
            assert shown == [x for item in items for x in compared(item)]
        else:
            assert not any(shown)
        if at_item[i]:
            item = slow.item(state)
            offers = [offered(goal[x], item[f"{x}s"]) for x in ("size", "colour")]
            expected = [*compared(item), *offers, *words(state)[4:]]
            assert title[i].tolist() == expected


@pytest.mark.parametrize(
    ("changes", "chosen", "expected"),
    [
        ({}, (3, 4), 1.0),
        ({}, (3, 1), 4 / 5),  # another colour
        ({}, (0, 0), 3 / 5),  # nothing chosen
        ({"price": 41}, (3, 4), 4 / 5),
        ({"attributes": 0b1010}, (3, 4), 4 / 5),
        ({"attributes": 0, "price": 41}, (0, 0), 0.0),
        ({"category": 3}, (3, 4), 0.5),  # a knife for a kettle
        ({"category": 23}, (3, 1), 0.1 * 4 / 5),
        ({"category": 11}, (3, 4), 0.0),
    ],
)
def test_rewards_worked_out_by_hand(changes, chosen, expected):
    item = ITEM.replace(**{k: jnp.int32(v) for k, v in changes.items()})
    found = PAY(GOAL, item, jnp.asarray(chosen, jnp.int32))
    np.testing.assert_allclose(found, expected, rtol=1e-6)


def test_rewards_are_those_of_the_slow_shop(tasks):
    items = row(on_host(split_catalogue(SMALL, "train")), slice(24))
    chosen = np.array(jax.random.randint(KEY(), (24, 2), 0, 6))
    chosen[::3] = tasks.goal.options[::3]
    found = PAY(tasks.goal, items, chosen)
    one_by_one = jax.jit(jax.vmap(purchase_reward))(tasks.goal, items, chosen)
    np.testing.assert_array_equal(found, one_by_one)
    expected = [
        reference.reward(
            slow_goal(row(tasks.goal, i)),
            slow_item(items, i),
            *(v - 1 if v else None for v in chosen[i].tolist()),
        )
        for i in range(24)
    ]
    np.testing.assert_allclose(found, expected, rtol=1e-6)
    assert 0 < np.count_nonzero(expected) < 24


def test_the_attainable_reward_is_the_best_of_all_choices():
    choices = np.stack(np.meshgrid(np.arange(6), np.arange(7)), -1).reshape(-1, 2)
    sizes, colours = ({0} | {v + 1 for v in members(bits)} for bits in ITEM.offers)
    offered = np.asarray([s in sizes and c in colours for s, c in choices.tolist()])
    found = []
    for options in ((3, 4), (1, 4), (0, 2), (0, 0)):
        goal = GOAL.replace(options=jnp.asarray(options, jnp.int32))
        best = np.asarray(PAY(goal, ITEM, choices))[offered].max()
        found.append(jax.jit(attainable_reward)(goal, ITEM).item())
        assert found[-1] == best
    np.testing.assert_allclose(found, [1, 4 / 5, 3 / 4, 1], rtol=1e-6)


def test_categories_are_as_near_as_in_the_slow_shop():
    every = jnp.arange(len(CATEGORIES))
    found = type_factor(every[:, None], every[None])
    expected = [[reference.type_factor(w, c) for c in range(24)] for w in range(24)]
    np.testing.assert_allclose(found, expected, rtol=1e-6)


def test_searches_rank_as_the_slow_shop_does(tasks):
    catalogue = on_host(split_catalogue(SMALL, "train"))
    slow = [slow_item(catalogue, i) for i in range(SMALL.num_items)]
    for i in range(24):
        goal = slow_goal(row(tasks.goal, i))
        for q in range(len(Query)):
            if reference.query(goal, q) is not None:
                expected = reference.search(slow, goal, q)[: SMALL.num_results]
                found = tasks.shelf.number[i, q].reshape(-1)
                np.testing.assert_array_equal(found, expected)


def test_a_large_catalogue_has_all_that_it_asks_for():
    tasks = on_host(shop_tasks(KEY(), 16, split="unseen"))
    catalogue = split_catalogue(ShopSize(), "unseen")
    attainable = jax.jit(jax.vmap(attainable_reward, in_axes=(0, None)))
    worth = np.asarray(attainable(tasks.goal, catalogue))
    np.testing.assert_array_equal(worth.max(axis=1), 1.0)
    number = tasks.shelf.number[:, Query.CATEGORY_ATTRIBUTES].reshape(16, -1)
    shown = np.take_along_axis(worth, number, axis=1)
    np.testing.assert_array_equal(shown.max(axis=1), 1.0)
    # Not every item that comes first will do.
    assert 0 < np.count_nonzero(shown[:, 0] == 1) < 16


def test_a_catalogue_is_as_described():
    catalogue = on_host(shop_catalogue(KEY(), 1200))
    assert set(np.bitwise_count(catalogue.attributes)) == {2, 3, 4}
    assert set(catalogue.category) == set(range(24))
    assert (catalogue.price.min(), catalogue.price.max()) == (5, 120)
    several = np.bitwise_count(catalogue.offers)
    assert not (several == 1).any()
    assert (several.max(axis=0) == (5, 6)).all()
    np.testing.assert_allclose((several == 0).mean(axis=0), 0.35, atol=0.05)


def combinations(tasks):
    goal = tasks.goal
    return set(zip(goal.category.tolist(), goal.attributes.tolist(), strict=True))


def test_splits_share_no_task():
    splits = ("train", "seen", "unseen")
    train, seen, unseen = (
        on_host(shop_tasks(KEY(), 200, size=SMALL, split=split)) for split in splits
    )
    asked, kept = combinations(train), combinations(seen)
    assert not asked & kept
    assert min(len(asked), len(kept)) > 20
    numbers = np.bitwise_count(train.goal.attributes)
    assert (np.bincount(numbers)[1:] > 40).all()
    # Another catalogue: no task of it shows the same goods.
    shown, others = (
        {price.tobytes() for tasks in group for price in tasks.shelf.price}
        for group in ((train, seen), (unseen,))
    )
    assert not shown & others


def test_a_task_does_not_depend_on_how_many_are_drawn_with_it(tasks):
    more = on_host(shop_tasks(KEY(), 65, size=SMALL))
    jax.tree.map(np.testing.assert_array_equal, row(more, slice(24)), tasks)
    # The last comes from a second call of the program, and is no copy of the first.
    assert not np.array_equal(more.shelf.number[64], more.shelf.number[0])


def furnished():
    """A task in which every place on the shelves has the same kettle."""
    shelf = jax.tree.map(lambda x: np.tile(x, (6, 2, 2, *[1] * x.ndim)), ITEM)
    return ShopParams(goal=GOAL, shelf=shelf)


def test_text_says_what_the_arrays_hold():
    params = furnished()
    assert describe_task(params) == (
        "Buy a lightweight, waterproof kettle in size large and colour blue, "
        "for $40 at most."
    )
    possible = set(range(Shop(SMALL).num_actions)) - {Query.CATEGORY_THIRD}
    assert len({describe_action(a, params) for a in possible}) == len(possible)
    assert describe_action(2, params) == "search for waterproof kettle"
    title = "lightweight waterproof organic kettle, $40"
    pages = {
        ("search",): "You are at the search page of the shop.",
        ("results", 0, 1): f"Results, page 2 of 2:\n1. {title}\n2. {title}",
        ("item", 0, 1, 1, None, 3): f"{title}.\nTo choose by size: medium, large.\n"
        "To choose by colour: black, blue.\nChosen, colour blue.",
        ("bought", 0, 1, 1, None, 3): f"You bought: {title}, colour blue.",
    }
    for state, text in pages.items():
        assert describe(row(fast_states([state], 0), 0), params) == text


def test_tokens_say_the_same_in_words(everything):
    _, states, _, played = everything
    env, params = Shop(SMALL), furnished()
    _, (seen, _), *_ = played(0, params)

    def said(tokens):
        return [env.vocabulary[token] for token in tokens.tolist() if token]

    goal = ["kettle", "lightweight", "waterproof", "large", "blue", "$40"]
    title = ["kettle", "lightweight", "waterproof", "organic", "$40"]
    own = [*title, "medium", "large", "black", "blue"]
    chosen = next(s for s in states if s[0] == "bought" and s[4:] == (None, 3))
    expected = {
        ("search",): ["page: search"],
        ("results", 0, 1): ["page: results", "two", *title, *title],
        ("item", 0, 0, 1, None, None): ["page: item", *own],
        chosen: ["page: bought", *own, "chosen", "blue"],
    }
    for state, text in expected.items():
        assert said(seen.tokens[states.index(state)]) == [*goal, *text]
    actions = [said(tokens) for tokens in on_host(jax.jit(env.action_tokens)(params))]
    assert actions[2] == ["search", "kettle", "waterproof"]
    assert actions[4:6] == [["search", "anything", "all"], ["search", "kettle", "all"]]
    assert actions[-1] == ["buy"]


def test_bad_input_is_refused():
    with pytest.raises(InputError, match="items_a_page: expected 1 to 5, got 6"):
        ShopSize(items_a_page=6)
    with pytest.raises(InputError, match="num_items"):
        ShopSize(num_items=14)
    with pytest.raises(UnknownNameError, match="did you mean 'unseen'"):
        shop_tasks(KEY(), 1, split="unsen")  # pyright: ignore[reportArgumentType]


def test_a_catalogue_without_tasks_for_a_split_is_refused(monkeypatch):
    catalogue = row(on_host(split_catalogue(SMALL, "train")), slice(0, 0))
    monkeypatch.setattr("jerp.envs.shop_tasks.split_catalogue", lambda *_: catalogue)
    with pytest.raises(InputError, match="'seen', got 60 items without one"):
        shop_tasks(KEY(), 1, size=SMALL, split="seen")


@pytest.mark.parametrize("name", ["catalogue", "reward", "tasks", "text", "tokens"])
def test_examples_print_what_they_say(name):
    module = importlib.import_module(f"jerp.envs.shop_{name}")
    result = doctest.testmod(module)
    assert result.attempted
    assert result.failed == 0
