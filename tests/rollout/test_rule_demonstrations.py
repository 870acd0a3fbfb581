"""Who follows rules does as they say, and of that the probabilities are known."""

from dataclasses import dataclass
from typing import ClassVar

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from jerp.envs.base import Observation, TimeStep
from jerp.envs.rule_language import Situated
from jerp.errors import InputError, ShapeError
from jerp.rollout.rule_demonstrations import rule_demonstrations
from jerp.typing import USAGE_KINDS, Outcome

# By situation, from 1 on. Actions 0 and 1 make move 1, 2 move 2, 3 and 4 move 3.
MOVES = (1, 1, 2, 3, 3)
LEGAL = ((1, 1, 1, 1, 0), (1, 1, 0, 1, 1), (0, 1, 1, 0, 1))
ORACLE = (3, 4, 2)


@dataclass(frozen=True)
class Round:
    """Situations 1, 2, 3 in turn; action 4 ends an episode. A task is the first."""

    num_actions: ClassVar[int] = 5
    field_sizes: ClassVar[tuple[int, ...]] = (9,)
    observation: ClassVar[str] = "fields"

    def reset(self, key, params):
        del key
        return self._now((params, jnp.zeros((), bool)), jnp.int32(0))

    def step(self, key, state, action, params):
        del key, params
        place, ended = state
        return self._now((place % 3 + 1, ended | (action == 4)), action)

    def observe(self, state, params):
        del params
        return Observation(fields=state[0][None], tokens=state[0][None])

    def oracle(self, state, params):
        del params
        return jnp.asarray(ORACLE)[state[0] - 1]

    def _now(self, state, action):
        place, ended = state
        return state, TimeStep(
            observation=place[None],
            legal=jnp.asarray(LEGAL, bool)[place - 1] & ~ended,
            reward=action.astype(jnp.float32),
            terminated=ended,
            truncated=jnp.zeros((), bool),
            outcome=jnp.int32(Outcome.SUCCESS),
            score=jnp.ones(()),
            anchor=place,
            usage=jnp.zeros(len(USAGE_KINDS)),
        )


@dataclass(frozen=True)
class Words:
    """Of rounds."""

    situations: ClassVar[tuple[str, ...]] = ("", "one", "two", "three")
    moves: ClassVar[tuple[str, ...]] = ("", "left", "middle", "right")

    def situation(self, state, params):
        del params
        return state[0]

    def move(self, action, situation, params):
        del situation, params
        return jnp.asarray(MOVES)[action]


ENV = Situated(Round(), Words())
RULES = np.array([[1, 1], [1, 2], [2, 2], [2, 3], [3, 1], [0, 0]], np.int32)
SETS = np.array(
    [[0, 1], [1, 0], [2, 3], [2, -1], [-1, 4], [-1, -1]], np.int32
)  # a row a task
TASKS = np.array([1, 1, 2, 2, 3, 1], np.int32)

O1, O2, O3 = np.eye(5)[list(ORACLE)]
FOLLOWED = np.array(
    [
        [[0.5, 0.5, 0, 0, 0], O2, O3],  # both rules are of one situation: the first
        [[0, 0, 1, 0, 0], O2, O3],
        [O1, [0, 0, 0, 0.5, 0.5], O3],  # the move of the first is impossible
        [O1, O2, O3],  # the move of the only one is
        [O1, O2, [0, 1, 0, 0, 0]],  # one of two actions that make the move is legal
        [O1, O2, O3],  # no rule
    ]
)
UNIFORM = np.array(LEGAL) / np.array([[4], [4], [3]])
UNKNOWN = (2,)
LEFT_TO_RULES = FOLLOWED.copy()
LEFT_TO_RULES[[0, 1, 3, 4, 5], 1] = UNIFORM[1]  # but where a rule can be followed
GUESS = 0.25
GUESSED = LEFT_TO_RULES.copy()
GUESSED[[0, 1, 3, 4, 5], 1] = 0.75 * UNIFORM[1] + 0.25 * O2


def eager(rules, working_set, noise, unknown, guess, batch_size):
    return rule_demonstrations(
        jax.random.key(0),
        ENV,
        TASKS,
        rules,
        working_set,
        num_steps=5,
        batch_size=batch_size,
        noise=noise,
        unknown=unknown,
        guess=guess,
    )


batch = jax.jit(eager, static_argnames=("unknown", "guess", "batch_size"))


def played(rules=RULES, working_set=SETS, *, noise=0.0, unknown=(), guess=0.0):
    data = batch(rules, working_set, noise, unknown, guess, 6 * 100)
    return jax.tree.map(np.asarray, data)


def same(one, other):
    jax.tree.map(np.testing.assert_array_equal, one, other)


def shares(followed, noise):
    return (1 - noise) * followed + noise * UNIFORM[None]


@pytest.mark.parametrize("noise", [0.0, 0.4, 1.0])
@pytest.mark.parametrize(
    ("unknown", "guess", "followed"),
    [((), GUESS, FOLLOWED), (UNKNOWN, 0.0, LEFT_TO_RULES), (UNKNOWN, GUESS, GUESSED)],
)
def test_what_is_played_and_its_probabilities_are_the_mixture(
    noise, unknown, guess, followed
):
    data = played(noise=noise, unknown=unknown, guess=guess)
    expected = shares(followed, noise)
    task = np.broadcast_to(data.task_id[:, None], data.mask.shape)[data.mask]
    situation, action = data.observation[data.mask, -1], data.action[data.mask]
    np.testing.assert_allclose(
        data.log_prob[data.mask],
        np.log(expected[task, situation - 1, action]),
        rtol=1e-5,
        atol=1e-6,
    )
    for n, share in enumerate(expected):
        for s in range(3):
            here = action[(task == n) & (situation == s + 1)]
            if not here.size:
                continue
            found = np.bincount(here, minlength=5) / here.size
            error = np.sqrt(share[s] * (1 - share[s]) / here.size)
            assert (np.abs(found - share[s]) <= 5 * error + 1e-6).all()


def test_each_task_comes_to_the_situations_of_its_rules():
    """So that the test above has no cell of these to skip."""
    data = played(noise=0.4)
    for n, s in ((0, 1), (1, 1), (2, 2), (3, 2), (4, 3), (5, 2)):
        assert (data.observation[data.task_id == n, :, -1] == s).sum() > 50


def test_noise_one_knows_no_rules():
    same(
        played(noise=1.0).replace(working_set=None),
        played(working_set=np.full_like(SETS, -1), noise=1.0).replace(working_set=None),
    )


def test_episodes_say_which_rules_were_given_and_show_what_the_world_shows():
    data = played(noise=0.4)
    np.testing.assert_array_equal(data.working_set, SETS[data.task_id])
    assert data.working_set.dtype == np.int32
    assert data.observation.shape == (600, 5, 2)
    np.testing.assert_array_equal(data.observation[..., 0], data.observation[..., 1])
    assert data.final_observation.shape == (600, 2)
    np.testing.assert_array_equal(data.terminated.any(1), (data.action == 4).any(1))
    assert not data.log_prob[~data.mask].any()
    assert (~data.mask).any()


@pytest.mark.parametrize("row", [(1, 2), (7, -3), (2, 1)])
def test_a_rule_that_is_in_no_working_set_changes_nothing(row):
    rules = RULES.copy()
    rules[-1] = row
    same(played(rules, noise=0.4), played(noise=0.4))


def test_an_empty_place_is_no_rule_wherever_it_is():
    """The last rule of the table, which -1 could mean, is not read."""
    data = played(RULES[[0, 1, 2, 3, 4, 1]], np.full_like(SETS, -1))
    oracle = np.asarray(ORACLE)[data.observation[..., -1] - 1]
    np.testing.assert_array_equal(data.action[data.mask], oracle[data.mask])


@pytest.mark.parametrize("number", [0, 1])
def test_without_rules_the_oracle_plays(number):
    """No table yet, and no working sets or empty ones."""
    rules, empty = np.zeros((0, 2), np.int32), np.full((6, number), -1, np.int32)
    data = jax.device_get(batch(rules, empty, 0.0, (), 0.0, 6))
    oracle = np.asarray(ORACLE)[data.observation[..., -1] - 1]
    np.testing.assert_array_equal(data.action[data.mask], oracle[data.mask])
    assert data.working_set.shape == (6, number)


def test_compiled_and_not_are_the_same():
    data = played(noise=0.4, unknown=UNKNOWN, guess=GUESS)
    plain = eager(RULES, SETS, 0.4, UNKNOWN, GUESS, 600)
    np.testing.assert_allclose(data.log_prob, plain.log_prob, rtol=1e-6, atol=1e-7)
    same(data.replace(log_prob=None), plain.replace(log_prob=None))


@pytest.mark.parametrize(
    ("change", "error", "message"),
    [
        ({"noise": 1.5}, InputError, r"noise: expected in \[0, 1\], got 1.5"),
        ({"rules": RULES[:, :1]}, ShapeError, r"rules: .*\[6, 2\], got \[6, 1\]"),
        ({"rules": np.ones((6, 3), np.int32)}, ShapeError, r"rules: .*got \[6, 3\]"),
        ({"rules": RULES / 2}, ShapeError, "rules: expected type int"),
        ({"working_set": SETS[:5]}, ShapeError, r"working_set: .*= \[6, 2\], got \[5"),
        ({"working_set": SETS[:, 0]}, ShapeError, "working_set: expected axes"),
        ({"working_set": SETS + 2}, InputError, "working_set: .*0 to 5.*got 6"),
        ({"working_set": SETS - 1}, InputError, r"working_set: .*-1 for none, got -2"),
        ({"unknown": (0,)}, InputError, "unknown: expected situations from 1 to 3"),
        ({"unknown": (2, 4)}, InputError, "unknown: .*got 4"),
        ({"guess": 1.5}, InputError, "guess: expected in .0, 1., got 1.5"),
    ],
)
def test_mistakes_are_named(change, error, message):
    given = {"rules": RULES, "working_set": SETS} | change
    with pytest.raises(error, match=message):
        rule_demonstrations(
            jax.random.key(0), ENV, TASKS, num_steps=2, batch_size=6, **given
        )


def test_situations_that_are_left_to_rules_are_checked_in_a_compiled_program():
    with pytest.raises(InputError, match="unknown: expected"):
        played(unknown=(4,))


@pytest.mark.parametrize(
    "change", [{"noise": 1.5}, {"working_set": SETS - 1}, {"working_set": SETS + 2}]
)
def test_what_only_the_device_sees_is_no_probability(change):
    data = played(**change)
    assert np.isnan(data.log_prob[data.mask]).all()
