"""What `check_environment` asks of episodes that were played, on the host.

Arrays are `[2 N, T + 1, ...]`: an episode of each task by random actions, then one by
the oracle's from the same start; with a record after every step and one before the
first. A time is live until the episode ended.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import Any, NamedTuple, NoReturn

import jax
import jax.numpy as jnp
import numpy as np
from flax import struct
from jax import lax

from jerp.envs.base import Observation, TimeStep, World
from jerp.errors import EnvironmentCheckError
from jerp.typing import Array, ArrayTree, Key, Outcome

__all__ = [
    "Draws",
    "Record",
    "check_action_tokens",
    "check_alone",
    "check_anchors",
    "check_ends",
    "check_oracle",
    "check_success",
    "check_values",
    "drawn",
    "played",
    "played_twice",
]

NUM_ALONE = 2
"""Tasks that are played again on their own."""

NUM_PAIRS = 512
"""Pairs of states with equal anchors that are followed for a step, at most."""


class Record(struct.PyTreeNode):
    """All that is known of each time, and the action that followed."""

    state: Any
    now: TimeStep
    seen: Observation
    legal: Array
    anchor: Array
    oracle: Array
    action: Array


class Draws(NamedTuple):
    """All chance of an episode: keys of reset and `T + 1` steps, `[T + 1, A]` noise."""

    reset: Key
    steps: Key
    noise: Array


@partial(jax.jit, static_argnames=("num_tasks", "num_steps", "num_actions"))
def drawn(key: Key, *, num_tasks: int, num_steps: int, num_actions: int) -> Draws:
    """Leaves `[N, ...]`; compiled apart from play, once for worlds of a size."""
    reset_key, act_key, step_key = jax.random.split(key, 3)
    return Draws(
        reset=jax.random.split(reset_key, num_tasks),
        steps=jax.random.split(step_key, (num_tasks, num_steps + 1)),
        noise=jax.random.uniform(act_key, (num_tasks, num_steps + 1, num_actions)),
    )


def played_twice(env: World, draws: Draws, params: ArrayTree) -> Record:
    """`2 N` episodes of `N` tasks, on the host. Consumes the keys of `draws`."""
    twice = jax.tree.map(lambda x: jnp.concatenate([x, x]), (draws, params))
    by_oracle = jnp.arange(2 * len(draws.noise)) >= len(draws.noise)
    play = jax.jit(jax.vmap(partial(played, env)))
    return jax.tree.map(np.asarray, play(*twice, by_oracle))


def played(env: World, draws: Draws, params: Any, by_oracle: Array) -> Record:
    """One episode by random admissible actions, or by the oracle's."""

    def body(carry: tuple[Any, TimeStep], chance: tuple[Array, Array]):
        (state, now), (noise, bits) = carry, chance
        key = jax.random.wrap_key_data(bits)
        legal, oracle = env.admissible(state, params), env.oracle(state, params)
        guess = jnp.argmax(legal * (1 + noise))
        action = jnp.where(by_oracle, oracle, guess).astype(jnp.int32)
        record = Record(
            state=state,
            now=now,
            seen=env.observe(state, params),
            legal=legal,
            anchor=env.anchor(state, params),
            oracle=oracle,
            action=action,
        )
        return env.step(key, state, action, params), record

    start = env.reset(draws.reset, params)
    # Keys in a batch of scans look used twice to jax's check of that, and are not.
    chances = (draws.noise, jax.random.key_data(draws.steps))
    return lax.scan(body, start, chances)[1]


def check_values(env: World, record: Record) -> None:
    """Ranges, and that a time step says what the methods say."""
    now, seen = record.now, record.seen
    _expect("step().legal", now.legal == record.legal, "what admissible says")
    _expect("step().anchor", now.anchor == record.anchor, "what anchor says")
    if env.observation in ("fields", "tokens"):
        shown = getattr(seen, env.observation)
        _expect("step().observation", now.observation == shown, "what observe says")
    fields, sizes = seen.fields, np.asarray(env.field_sizes)
    _expect("observe().fields", (fields >= 0) & (fields < sizes), "within field_sizes")
    _check_tokens("observe().tokens", env, seen.tokens)
    _expect("step().reward", np.isfinite(now.reward), "a finite number")
    _expect("step().score", (now.score >= 0) & (now.score <= 1), "in [0, 1]")
    _expect("step().usage", now.usage >= 0, "at least 0")
    _expect("step().outcome", np.isin(now.outcome, list(Outcome)), "an Outcome")


def check_ends(record: Record) -> None:
    """Something to do until the end, an end, and nothing after it."""
    now, ended = record.now, ~_live(record)
    _expect("reset", ~ended[:, 0], "an episode that has not ended")
    both = np.asarray(now.terminated) & now.truncated
    _expect("step", ~both, "terminated or truncated, not both")
    some = record.legal.any(-1)
    _expect("admissible", some | ended, "an action before the end")
    _expect("admissible", ~(some & ended), "none after the end")
    _expect("step", ended[:, -1], "an end within num_steps")
    before = ended[:, :-1]
    for name, tree in (("state", record.state), ("time step", now)):
        zeroed = {"reward", "usage"} if tree is now else set()
        for path, x in jax.tree_util.tree_leaves_with_path(tree):
            place = jax.tree_util.keystr(path).lstrip(".")
            same = x[:, 1:] == (0 if place in zeroed else x[:, :-1])
            same = same.reshape(*before.shape, -1).all(-1)
            expected = "0 after the end" if place in zeroed else "no change after it"
            _expect(f"step, {name} {place}", same | ~before, expected)


def check_alone(env: World, draws: Draws, params: ArrayTree, record: Record) -> None:
    """The same episodes from a trace of their own, without a batch."""
    alone = jax.jit(partial(played, env))
    for i in range(min(NUM_ALONE, len(draws.noise))):
        one, task = jax.tree.map(lambda x, i=i: x[i], (draws, params))
        again = alone(one, task, jnp.zeros((), bool))
        for path, x in jax.tree_util.tree_leaves_with_path(again):
            same = np.isclose(x, _leaf(record, path)[i], rtol=1e-5, atol=1e-6)
            place = jax.tree_util.keystr(path).lstrip(".")
            _expect(f"step, {place}", same, "the same alone as in a batch")


def check_action_tokens(env: World, params: ArrayTree, record: Record) -> None:
    """Tokens of what can be done at one time differ."""
    tokens = np.tile(jax.jit(jax.vmap(env.action_tokens))(params), (2, 1, 1))
    _check_tokens("action_tokens", env, tokens)
    written = (tokens[..., 0] > 0) | ~record.legal.any(1)
    _expect("action_tokens", written, "a token of every admissible action")
    legal = record.legal.astype(np.int32)
    together = np.einsum("nta,ntb->nab", legal, legal) > 0
    same = (tokens[:, :, None] == tokens[:, None]).all(-1)
    clash = same & together & ~np.eye(env.num_actions, dtype=bool)
    _expect("action_tokens", ~clash, "other tokens for each admissible action")


def check_anchors(
    env: World,
    params: ArrayTree,
    key: Key,
    record: Record,
    counters: Sequence[int],
) -> None:
    """Equal anchors show alike and go on alike; the step number is in none."""
    live = _live(record)
    clocks = _clocks(record.state, live)
    params = jax.tree.map(lambda x: jnp.concatenate([x, x]), params)
    _check_clocks(env, params, record, live, clocks)
    first, other = _pairs(record, live)
    fields = np.delete(record.seen.fields, list(counters), -1)
    shown = {"fields": fields, "admissible actions": record.legal}
    if not counters:
        shown["tokens"] = record.seen.tokens
    for name, x in shown.items():
        same = (x[first] == x[other]).reshape(len(first[0]), -1).all(1)
        _expect("anchor", same, f"other words where {name} differ")
    _check_pairs(env, params, key, record, (first, other), clocks)


def check_oracle(env: World, record: Record) -> None:
    """What it says can be done, whoever plays."""
    index = np.clip(record.oracle, 0, env.num_actions - 1)
    allowed = np.take_along_axis(np.asarray(record.legal), index[..., None], -1)[..., 0]
    allowed = allowed & (index == record.oracle)
    _expect("oracle", allowed | ~_live(record), "an admissible action")


def check_success(record: Record) -> None:
    """What the oracle says succeeds from the start of every task."""
    outcome = record.now.outcome[len(record.action) // 2 :, -1]
    _expect("oracle", outcome == Outcome.SUCCESS, "success in every task")


def _expect(method: str, holds: Any, expected: str) -> None:
    holds = np.asarray(holds)
    if not holds.all():
        where = np.argwhere(~holds)[0].tolist()
        _fail(method, expected, f"another in {(~holds).sum()} cases, first at {where}")


def _fail(method: str, expected: str, actual: str) -> NoReturn:
    raise EnvironmentCheckError(method, expected, actual)


def _check_tokens(method: str, env: World, tokens: Any) -> None:
    known = (tokens >= 0) & (tokens < len(env.vocabulary))
    _expect(method, known, "tokens of the vocabulary")
    padding = tokens == 0
    _expect(method, padding[..., 1:] >= padding[..., :-1], "padding at the end alone")


def _live(record: Record) -> np.ndarray:
    return ~np.asarray(record.now.terminated | record.now.truncated)


def _leaf(tree: Any, path: Any) -> Any:
    return dict(jax.tree_util.tree_leaves_with_path(tree))[path]


def _pairs(record: Record, live: np.ndarray) -> tuple[Any, Any]:
    """Indices of live states of a task: the first of an anchor, and each other."""
    task, time = np.nonzero(live)
    words = record.anchor[task, time].reshape(len(task), -1)
    rows = np.concatenate([task[:, None] % (len(live) // 2), words], axis=1)
    _, first, group = np.unique(rows, axis=0, return_index=True, return_inverse=True)
    origin = first[group.reshape(-1)]
    again = np.flatnonzero(origin != np.arange(len(task)))
    return (task[origin[again]], time[origin[again]]), (task[again], time[again])


def _clocks(state: Any, live: np.ndarray) -> Any:
    """Of each leaf of the state, whether it counts steps, up or down."""
    both = live[:, :-1] & live[:, 1:]

    def counts(x: np.ndarray) -> bool:
        if x.shape != live.shape or x.dtype.kind != "i" or not both.any():
            return False
        change = np.diff(x, axis=1)[both]
        return abs(int(change[0])) == 1 and bool((change == change[0]).all())

    return jax.tree.map(counts, state)


def _check_clocks(
    env: World, params: ArrayTree, record: Record, live: np.ndarray, clocks: Any
) -> None:
    """The anchor of a state is that of the same state a step later."""
    later = jax.tree.map(
        lambda x, clock: np.roll(x, -1, axis=1) if clock else x, record.state, clocks
    )
    anchor = jax.vmap(jax.vmap(env.anchor, (0, None)))
    same = np.asarray(jax.jit(anchor)(later, params)) == record.anchor
    same = same.reshape(*live.shape, -1).all(-1)[:, :-1]
    both = live[:, :-1] & live[:, 1:]
    _expect("anchor", same | ~both, "the same words at another step number")


def _check_pairs(
    env: World, params: ArrayTree, key: Key, record: Record, pairs: Any, clocks: Any
) -> None:
    """The same action and key, at the same time, lead to what looks the same."""
    first, other = (tuple(i[:NUM_PAIRS] for i in index) for index in pairs)
    if not len(first[0]):
        return
    one = jax.tree.map(lambda x: x[first], record.state)
    two = jax.tree.map(
        lambda x, clock: x[first if clock else other], record.state, clocks
    )
    task = jax.tree.map(lambda x: x[first[0]], params)
    keys = jax.random.split(key, len(first[0]))
    step = jax.jit(jax.vmap(lambda k, s, a, p: env.step(k, s, a, p)[1]))
    action = record.action[first]
    after = jax.tree.map(np.asarray, step(jax.random.clone(keys), one, action, task))
    again = jax.tree.map(np.asarray, step(keys, two, action, task))
    timed = after.truncated != again.truncated
    for name in ("anchor", "legal", "reward", "terminated"):
        same = getattr(after, name) == getattr(again, name)
        same = same.reshape(len(keys), -1).all(1)
        _expect("anchor", same | timed, f"other words where the next {name} differs")
