"""A world with any one fault is caught, and the fault is named."""

import re
from dataclasses import dataclass

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from flax import struct

from jerp.envs.base import Observation, TimeStep
from jerp.envs.check_episodes import check_ends, check_values, drawn, played_twice
from jerp.envs.checks import check_environment
from jerp.errors import EnvironmentCheckError
from jerp.typing import USAGE_KINDS, Outcome

HAND = 2
MOVE, TAKE, PUT = range(3)


class Ball(struct.PyTreeNode):
    """Where one is, where the ball is (0, 1 or in the hand), and the time."""

    step: jax.Array
    at: jax.Array
    ball: jax.Array


@dataclass(frozen=True)
class Carrying:
    """Two rooms and a ball that is to be put into the second; without a fault."""

    horizon: int = 8
    observation: str = "fields"

    num_actions = 3
    field_sizes = (2, 2, 2)
    vocabulary = ("", "first", "second", "held", "ball", "go")
    num_observation_tokens = 3
    num_action_tokens = 1

    def reset(self, key, params):
        del key
        state = Ball(step=jnp.int32(0), at=jnp.int32(0), ball=params)
        return state, self.shown(state, params, jnp.float32(0))

    def step(self, key, state, action, params):
        del key
        plays = (jnp.arange(3) == action) & self.admissible(state, params)
        at = jnp.where(plays[MOVE], 1 - state.at, state.at)
        ball = jnp.where(plays[TAKE], HAND, state.ball)
        ball = jnp.where(plays[PUT] & (state.ball == HAND), at, ball)
        after = Ball(step=state.step + plays.any(), at=at, ball=ball)
        reward = plays[PUT] & self.done(after)
        return after, self.shown(after, params, reward.astype(jnp.float32))

    def done(self, state):
        return state.ball == 1

    def ended(self, state):
        return self.done(state) | (state.step >= self.horizon)

    def admissible(self, state, params):
        holds = state.ball == HAND
        options = jnp.stack([jnp.bool_(True), state.ball == state.at, holds])
        return options & ~self.ended(state)

    def anchor(self, state, params):
        return jnp.stack([state.at, state.ball])

    def observe(self, state, params):
        held, here = state.ball == HAND, state.ball == state.at
        fields = jnp.stack([state.at, held, here]).astype(jnp.int32)
        tokens = jnp.stack([1 + state.at, jnp.where(held, 3, 4 * here), 0 * state.at])
        return Observation(fields=fields, tokens=tokens)

    def action_tokens(self, params):
        return jnp.array([[5], [4], [3]], jnp.int32)

    def oracle(self, state, params):
        there = jnp.where(state.ball == HAND, 1, state.ball)
        act = jnp.where(state.ball == HAND, PUT, TAKE)
        return jnp.where(state.at == there, act, MOVE).astype(jnp.int32)

    def shown(self, state, params, reward):
        done = self.done(state)
        return TimeStep(
            observation=getattr(self.observe(state, params), self.observation),
            legal=self.admissible(state, params),
            reward=reward,
            terminated=done,
            truncated=self.ended(state) & ~done,
            outcome=jnp.where(done, Outcome.SUCCESS, Outcome.TRUNCATED).astype(int),
            score=done.astype(jnp.float32),
            anchor=self.anchor(state, params),
            usage=jnp.zeros(len(USAGE_KINDS)),
        )


WORLD = Carrying()
BALLS = jnp.array([0, HAND] * 8)


def check(world, **settings):
    check_environment(world, BALLS, jax.random.key(0), num_steps=10, **settings)


FAULTS = {}


def fault(expected):
    """Registers a world with one fault, and what the error must say."""

    def add(world):
        FAULTS[world.__name__] = (world, expected)
        return world

    return add


@fault("anchor: expected other words where fields differ")
class AnchorWithoutInventory(Carrying):
    """Says where the ball is, and forgets that it is in the hand there."""

    def anchor(self, state, params):
        return jnp.stack(
            [state.at, jnp.where(state.ball == HAND, state.at, state.ball)]
        )


@fault("anchor: expected other words where the next anchor differs")
class AnchorOfWhatIsSeen(Carrying):
    """In the second room nothing is seen, and one may try to put down nothing."""

    def admissible(self, state, params):
        blind = jnp.array([True, False, True]) & ~self.ended(state)
        return jnp.where(state.at == 1, blind, super().admissible(state, params))

    def observe(self, state, params):
        seen = super().observe(state, params)
        return jax.tree.map(lambda x: jnp.where(state.at == 1, x * 0, x), seen)

    def anchor(self, state, params):
        return jnp.stack([state.at, jnp.where(state.at == 1, 0, state.ball)])


@fault("anchor: expected the same words at another step number")
class AnchorWithStep(Carrying):
    def anchor(self, state, params):
        return jnp.stack([state.at, state.ball, state.step])


@fault("step: expected an end within num_steps")
class Endless(Carrying):
    def ended(self, state):
        return self.done(state)


@fault("oracle: expected an admissible action")
class ForbiddenOracle(Carrying):
    def oracle(self, state, params):
        return jnp.int32(PUT) + 0 * state.at


@fault("oracle: expected success in every task")
class IdleOracle(Carrying):
    def oracle(self, state, params):
        return jnp.int32(MOVE) + 0 * state.at


@fault("action_tokens: expected other tokens for each admissible action")
class AmbiguousActions(Carrying):
    def action_tokens(self, params):
        return jnp.array([[5], [5], [3]], jnp.int32)


@fault("action_tokens: expected a token of every admissible action")
class UnwrittenAction(Carrying):
    def action_tokens(self, params):
        return jnp.array([[5], [4], [0]], jnp.int32)


@fault("action_tokens: expected padding at the end alone")
class ActionWithAHole(Carrying):
    num_action_tokens = 2

    def action_tokens(self, params):
        return jnp.array([[5, 0], [0, 4], [3, 0]], jnp.int32)


@fault("step: expected state .*int32")
class StateOfAnotherType(Carrying):
    def step(self, key, state, action, params):
        after, now = super().step(key, state, action, params)
        return after.replace(at=after.at / 1), now


@fault(r"admissible: expected bool\[3\], got int32\[3\]")
class MaskOfNumbers(Carrying):
    def admissible(self, state, params):
        return super().admissible(state, params).astype(jnp.int32)


@fault("reset: expected a state of numbers")
class KeyInState(Carrying):
    def reset(self, key, params):
        state, now = super().reset(key, params)
        return (state, key), now


@fault("vocabulary: expected padding and distinct words")
class WordTwice(Carrying):
    vocabulary = ("", "a", "a", "b", "c", "d")


@fault("field_sizes: expected at least one field")
class NoFields(Carrying):
    field_sizes = ()


@fault("__hash__: expected a hashable world")
class Unhashable(Carrying):
    __hash__ = None


@fault("step, .*: expected the same alone as in a batch")
class Remembering(Carrying):
    """A number of its own, kept in Python, decides what a trace does."""

    traces = iter(range(9))

    def reset(self, key, params):
        state, _ = super().reset(key, params)
        state = state.replace(at=state.at + next(self.traces) % 2)
        return state, self.shown(state, params, jnp.float32(0))


@pytest.fixture(scope="module")
def record():
    """Sixteen tasks played twice, without a fault."""
    settings = {"num_tasks": 16, "num_steps": 10, "num_actions": 3}
    return played_twice(WORLD, drawn(jax.random.key(0), **settings), BALLS)


def spoil(tree, path, change):
    """The tree with `change(leaf)` at `path`, a dotted one."""
    name, _, rest = path.partition(".")
    leaf = getattr(tree, name)
    leaf = spoil(leaf, rest, change) if rest else change(leaf)
    return tree.replace(**{name: leaf})


def at_times(value, *times):
    """A change to `value` at these times of every episode."""

    def change(x):
        x = x.copy()
        x[:, list(times)] = value
        return x

    return change


@pytest.mark.parametrize(
    ("path", "change", "expected"),
    [
        (
            "now.legal",
            at_times(True, 1),
            r"step().legal: expected what admissible says",
        ),
        ("now.anchor", lambda x: x + 1, "step().anchor: expected what anchor says"),
        ("now.observation", lambda x: 1 - x, "step().observation: expected what obser"),
        ("seen.fields", lambda x: x + 1, "step().observation: expected what observe"),
        (
            "seen.tokens",
            lambda x: x + 2,
            "observe().tokens: expected tokens of the voc",
        ),
        (
            "seen.tokens",
            lambda x: x - 9,
            "observe().tokens: expected tokens of the voc",
        ),
        (
            "seen.tokens",
            lambda x: x[..., ::-1],
            "observe().tokens: expected padding at",
        ),
        ("now.reward", at_times(np.nan, 0), "step().reward: expected a finite number"),
        ("now.score", at_times(1.5, 3), "step().score: expected in [0, 1]"),
        ("now.score", at_times(np.nan, 3), "step().score: expected in [0, 1]"),
        ("now.usage", at_times(-1, 3), "step().usage: expected at least 0"),
        ("now.outcome", at_times(9, 3), "step().outcome: expected an Outcome"),
    ],
)
def test_a_wrong_value_is_named(record, path, change, expected):
    with pytest.raises(EnvironmentCheckError, match=re.escape(expected)):
        check_values(WORLD, spoil(record, path, change))


def test_a_field_out_of_range_is_named(record):
    both = spoil(record, "seen.fields", at_times(2, 4))
    both = spoil(both, "now.observation", at_times(2, 4))
    with pytest.raises(EnvironmentCheckError, match=r"fields: expected within field_s"):
        check_values(WORLD, both)


@pytest.mark.parametrize(
    ("path", "change", "expected"),
    [
        ("now.truncated", at_times(True, 0), "reset: expected an episode that has not"),
        ("now.truncated", lambda x: x | True, "reset: expected an episode that has"),
        (
            "now.terminated",
            at_times(True, 8, 9, 10),
            "step: expected terminated or trun",
        ),
        ("legal", at_times(False, 0), "admissible: expected an action before the end"),
        ("legal", at_times(True, 10), "admissible: expected none after the end"),
        ("now.reward", at_times(1, 10), "step, time step reward: expected 0 after the"),
        ("now.score", at_times(0.5, 10), "step, time step score: expected no change"),
        ("state.step", at_times(9, 10), "step, state step: expected no change after"),
    ],
)
def test_a_wrong_end_is_named(record, path, change, expected):
    check_ends(record)
    with pytest.raises(EnvironmentCheckError, match=re.escape(expected)):
        check_ends(spoil(record, path, change))


def test_a_world_without_fault_passes():
    check(Carrying(observation="tokens"))


@pytest.mark.parametrize("name", FAULTS)
def test_a_fault_is_named(name):
    world, expected = FAULTS[name]
    with pytest.raises(EnvironmentCheckError, match=expected) as caught:
        check(world())
    assert str(caught.value).startswith(caught.value.method + ": expected")


class ShowsSteps(Carrying):
    """A field counts the steps, which is no fault if it is said."""

    field_sizes = (2, 2, 2, 9)

    def observe(self, state, params):
        seen = super().observe(state, params)
        return seen.replace(fields=jnp.append(seen.fields, state.step))


def test_fields_that_count_steps_are_named():
    with pytest.raises(EnvironmentCheckError, match=r"anchor: .* where fields"):
        check(ShowsSteps())
    check(ShowsSteps(), counters=(3,))
