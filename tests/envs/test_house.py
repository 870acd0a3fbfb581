"""The household: its rules against a slow reference, and its words."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from jerp.advantages.anchors import anchor_ids
from jerp.advantages.gigpo import gigpo_advantages
from jerp.envs.check_episodes import drawn, played_twice
from jerp.envs.house_state import HouseParams
from jerp.envs.house_text import (
    describe,
    describe_action,
    describe_hand,
    describe_task,
)
from jerp.envs.house_things import OBJECTS, PLACES, HouseTask
from jerp.typing import Outcome
from tests.envs.homes import SMALL, all_tasks
from tests.reference import house as reference

KINDS = {kind.name: i for i, kind in enumerate(OBJECTS)}
PLACE = {"fridge": 0, "microwave": 1, "sink": 2, "desk": 3, "cabinet 1": 4}
PLACE |= {"cabinet 2": 5, "drawer 1": 6, "drawer 2": 7, "shelf": 8, "table": 9}
ACTION = {
    describe_action(a, None, size=SMALL.size): a for a in range(SMALL.num_actions)
}


def home(task, goal_kind, goal_place, **objects):
    """A small home without the counter and the sofa."""
    things = [(k.rstrip("0123456789"), PLACE[p]) for k, p in objects.items()]
    things += [("pen", PLACE["table"])] * (SMALL.size.num_objects - len(things))
    kinds = [kind.name for kind in PLACES]
    place = kinds.index(goal_place)
    bits = sum(1 << i for i, kind in enumerate(SMALL.size.places) if kind == place)
    return HouseParams(
        task=jnp.int32(task),
        goal_kind=jnp.int32(KINDS[goal_kind]),
        goal_place=jnp.int32(place),
        goal_bits=jnp.int32(bits),
        present=jnp.int32(0b001111111111),
        room=jnp.array([0, 0, 3, 1, 0, 0, 2, 2, 1, 1, 0, 1], jnp.int32),
        kind=jnp.array([KINDS[kind] for kind, _ in things], jnp.int32),
        place=jnp.array([at for _, at in things], jnp.int32),
    )


@pytest.fixture(scope="module")
def small():
    return jax.jit(SMALL.reset), jax.jit(SMALL.step)


def run(small, params, *actions):
    """States and time steps of an episode of named actions, as NumPy arrays."""
    reset, step = small
    key = jax.random.key(0)
    episode = [reset(key, params)]
    for name in actions:
        episode.append(step(key, episode[-1][0], jnp.int32(ACTION[name]), params))
    return [jax.tree.map(np.asarray, pair) for pair in episode]


def options(now):
    names = list(ACTION)
    return {names[i] for i in np.flatnonzero(now.legal)}


HEAT = home(HouseTask.HEAT, "mug", "shelf", mug="cabinet 2", book="cabinet 2")


def test_a_whole_episode_by_hand(small):
    actions = ["go to the cabinet 2", "open it", "take a mug", "go to the microwave"]
    actions += ["open it", "use it", "go to the shelf", "put it down"]
    episode = run(small, HEAT, *actions)
    places = {f"go to the {name}" for name in PLACE}
    holding = {"put it down"}
    assert [options(now) for _, now in episode] == [
        places,
        places - {actions[0]} | {"open it"},
        places - {actions[0]} | {"close it", "take a mug", "take a book"},
        places - {actions[0]} | {"close it"} | holding,
        places - {actions[3]} | {"open it"},
        places - {actions[3]} | {"close it", "use it"} | holding,
        places - {actions[3]} | {"close it", "use it"} | holding,
        places - {actions[6]} | holding,
        set(),
    ]
    names = ["task", "goal", "place", "at", "room", "hand", "treated", "barrier"]
    fields = [dict(zip(names, now.observation[:8], strict=True)) for _, now in episode]
    assert [f["at"] for f in fields] == [0, 6, 6, 6, 2, 2, 2, 9, 9]
    assert [f["room"] for f in fields] == [0, 1, 1, 1, 1, 1, 1, 2, 2]
    assert [f["hand"] for f in fields] == [0, 0, 0, 2, 2, 2, 2, 2, 0]
    assert [f["treated"] for f in fields] == [0, 0, 0, 1, 1, 1, 2, 2, 0]
    assert [f["barrier"] for f in fields] == [0, 1, 2, 2, 1, 2, 2, 0, 0]
    assert {(f["task"], f["goal"], f["place"]) for f in fields} == {(4, 2, 7)}
    seen = [np.flatnonzero(now.observation[8:]).tolist() for _, now in episode]
    assert seen == [[], [], [1, 5], [5], [], [], [], [], [1]]
    scores = [float(now.score) * 3 for _, now in episode]
    np.testing.assert_allclose(scores, [0, 0, 0, 1, 1, 1, 2, 2, 3], rtol=1e-6)
    assert [float(now.reward) for _, now in episode] == [0] * 8 + [1]
    assert [bool(now.terminated) for _, now in episode] == [False] * 8 + [True]
    assert episode[-1][1].outcome == Outcome.SUCCESS
    words = [SMALL.vocabulary[i] for i in SMALL.observe(episode[2][0], HEAT).tokens]
    assert words[:7] == ["task: put hot", "mug", "shelf", "cabinet", "two", *words[5:7]]
    assert words[5:] == ["kitchen", "open", "nothing", "nothing", "mug", "book", ""]


def test_the_same_episode_in_sentences(small):
    actions = ["go to the cabinet 2", "open it", "take a mug", "go to the microwave"]
    episode = run(small, HEAT, *actions, "open it", "use it")
    params = jax.tree.map(np.asarray, HEAT)
    text = describe_task(params, size=SMALL.size).splitlines()
    assert text[0] == "Put a hot mug in or on a shelf."
    assert text[1] == "In the kitchen: fridge, microwave, cabinet 1, cabinet 2."
    assert len(text) == 5
    seen = [describe(state, params, size=SMALL.size) for state, _ in episode]
    hand = [describe_hand(state, params, size=SMALL.size) for state, _ in episode]
    assert seen[0] == "You stand in the hall."
    assert seen[1] == "You stand at the cabinet 2 in the kitchen. It is closed."
    assert seen[2].endswith("It is open. You see: book, mug.")
    assert seen[3].endswith("You see: book.")
    assert seen[5].endswith("It is open. You see: nothing.")
    assert hand[2] == "Your hand is empty."
    assert (hand[3], hand[6]) == ("You hold: mug.", "You hold: hot mug.")


def test_several_of_a_kind_are_counted_in_the_text(small):
    params = home(HouseTask.PICK, "mug", "shelf", mug="cabinet 1", book="table")
    state, now = run(small, params, "go to the table")[-1]
    text = describe(state, jax.tree.map(np.asarray, params), size=SMALL.size)
    assert text.endswith("You see: book, pen (4).")
    assert now.observation[8:].tolist() == [0, 0, 0, 0, 0, 1, 2, 0]


def test_anchors_hold_the_inventory_and_why_they_must(small):
    """The same text, a mug in the hand or not: one group for who reads the text alone.

    Two episodes stand at the shelf, one with the mug, one without; the first succeeds.
    Grouped by text, who came without is told that standing there was worth less than
    average, and who came with it that it was the place that was good.
    """
    params = home(HouseTask.PICK, "mug", "sofa", mug="table")
    params = params.replace(present=params.present | 1 << 11, goal_bits=jnp.int32(2048))
    loaded = run(small, params, "go to the table", "take a mug", "go to the shelf")
    empty = run(small, params, "go to the table", "go to the desk", "go to the shelf")
    row = jax.tree.map(np.asarray, params)
    (one, now), (two, then) = loaded[-1], empty[-1]
    text = [describe(state, row, size=SMALL.size) for state in (one, two)]
    assert text[0] == text[1]
    hand = [describe_hand(state, row, size=SMALL.size) for state in (one, two)]
    assert hand[0] != hand[1]
    assert (now.anchor != then.anchor).any()

    def step_advantage(ids):
        found = gigpo_advantages(
            jnp.array([[1.0], [0.0]]),
            jnp.ones((2, 1), bool),
            jnp.arange(2),
            jnp.zeros(2, jnp.int32),
            jnp.asarray(ids)[:, None],
            num_groups=2,
            step_scale="none",
        )
        return found.step[:, 0].tolist()

    assert step_advantage(anchor_ids(text)) == [0.5, -0.5]
    anchors = [tuple(x.anchor.tolist()) for x in (now, then)]
    assert step_advantage(anchor_ids(anchors)) == [0.0, 0.0]


def test_anchors_of_other_ways_to_one_state_are_equal(small):
    end = ["go to the fridge", "open it", "go to the table"]
    ways = (end, ["go to the desk", *end], [*end[:2], "go to the sink", end[2]])
    anchors = [run(small, HEAT, *way)[-1][1].anchor.tolist() for way in ways]
    assert anchors[0] == anchors[1] == anchors[2]


@pytest.mark.parametrize("action", ["take a mug", "put it down", "go to the sofa"])
def test_an_inadmissible_action_only_costs_the_step(small, action):
    (_, before), (state, after) = run(small, HEAT, action)
    assert (int(state.step), options(after)) == (1, options(before))
    np.testing.assert_array_equal(before.anchor, after.anchor)


def test_two_in_two_cabinets_are_not_two_in_one(small):
    params = home(HouseTask.PICK_TWO, "mug", "cabinet", mug="cabinet 1", mug2="table")
    start = ["go to the table", "take a mug", "go to the cabinet 2", "open it"]
    episode = run(small, params, *start, "put it down")
    assert not episode[-1][1].terminated
    assert float(episode[-1][1].score) == 0.75
    more = ["take a mug", "go to the cabinet 1", "open it", "put it down"]
    assert run(small, params, *start, "put it down", *more)[-1][1].terminated


def as_reference(params):
    """The same task in words."""
    names = [(PLACES[k].name, o) for k, o in zip(*SMALL_NAMES, strict=True)]
    places = [name for i, name in enumerate(names) if params.present >> i & 1]
    things = [
        (OBJECTS[kind].name, names[place])
        for kind, place in zip(params.kind, params.place, strict=True)
    ]
    task = HouseTask(params.task).name.lower()
    goal = OBJECTS[params.goal_kind].name, PLACES[params.goal_place].name
    return names, reference.Home(task, *goal, places, things)


SMALL_NAMES = (SMALL.size.places, SMALL.size.ordinals)


def test_the_rules_are_those_of_the_slow_reference():
    """In episodes of random actions, and of the oracle's, every time of each."""
    params, steps = all_tasks(SMALL, 8), SMALL.horizon + 2
    settings = {"num_tasks": 24, "num_steps": steps, "num_actions": SMALL.num_actions}
    record = played_twice(SMALL, drawn(jax.random.key(2), **settings), params)
    kinds = [kind.name for kind in OBJECTS[: SMALL.size.num_kinds]]
    verbs = [("put",), ("open",), ("close",), ("use",)]
    for row in range(48):
        task = jax.tree.map(lambda x, row=row: x[row % 24], params)
        names, slow = as_reference(task)
        every = [("go", name) for name in names] + [("take", k) for k in kinds] + verbs
        reward = 0
        for t in range(SMALL.horizon):
            legal = {every[i] for i in np.flatnonzero(record.legal[row, t])}
            assert legal == slow.options(), (row, t)
            assert record.now.reward[row, t] == reward
            assert record.now.terminated[row, t] == slow.done
            assert abs(record.now.score[row, t] - slow.score()) < 1e-6
            seen = [thing[0] for thing in slow.seen()]
            count = [min(seen.count(kind), 2) for kind in kinds]
            assert record.seen.fields[row, t, 8:].tolist() == count
            reward = slow.play(every[record.action[row, t]])
