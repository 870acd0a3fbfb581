"""One check that every world must pass before a policy is trained in it.

Random admissible actions and the oracle's are played from many tasks at once, and all
that a `World` promises is asked of what came. A world that fails teaches the wrong
thing without a word: an anchor that forgets the inventory puts two states in one group,
a mask that is off by one lets an episode go on after its end.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NoReturn

import jax
import jax.numpy as jnp

from jerp.envs.base import World
from jerp.envs.check_episodes import (
    check_action_tokens,
    check_alone,
    check_anchors,
    check_ends,
    check_oracle,
    check_success,
    check_values,
    drawn,
    played_twice,
)
from jerp.errors import EnvironmentCheckError
from jerp.typing import USAGE_KINDS, ArrayTree, Key

__all__ = ["check_environment"]


def check_environment(
    env: World,
    params: ArrayTree,
    key: Key,
    *,
    num_steps: int,
    counters: Sequence[int] = (),
) -> None:
    """Raises unless a world keeps the contract of `jerp.envs.base.World`.

    Asked are: types and shapes that stay; fields, tokens, scores, outcomes and rewards
    in range; something to do until the end, and nothing after; an end within
    `num_steps`, which then stays; equal anchors only where fields, tokens, what can be
    done and what follows from the same action and key are equal; anchors without the
    step number; the same results alone and in a batch; actions whose tokens differ; an
    oracle that always gives an admissible action, and succeeds from the start of every
    task.

    Args:
      env: the world.
      params: leaves `[N, ...]`, the tasks; each is played once at random and once by
        the oracle.
      key: consumed.
      num_steps: at least as many as an episode can have, and better one or two more.
      counters: positions of fields that count steps, which may differ where anchors
        are equal. With any, tokens are not compared there, either.

    Raises:
      EnvironmentCheckError: names the method that broke its promise.
    """
    one = jax.tree.map(lambda x: x[0], params)
    _check_description(env)
    _check_types(env, one, key)
    play_key, pair_key = jax.random.split(key)
    draws = drawn(
        play_key,
        num_tasks=jax.tree.leaves(params)[0].shape[0],
        num_steps=num_steps,
        num_actions=env.num_actions,
    )
    record = played_twice(env, jax.tree.map(jnp.copy, draws), params)
    check_values(env, record)
    check_oracle(env, record)
    check_ends(record)
    check_alone(env, draws, params, record)
    check_action_tokens(env, params, record)
    check_anchors(env, params, pair_key, record, counters)
    check_success(record)


def _fail(method: str, expected: str, actual: str) -> NoReturn:
    raise EnvironmentCheckError(method, expected, actual)


def _check_description(env: World) -> None:
    try:
        hash(env)
    except TypeError as error:
        _fail("__hash__", "a hashable world", str(error))
    words = env.vocabulary
    if len(words) < 2 or len(set(words)) != len(words):
        _fail("vocabulary", "padding and distinct words", f"{len(words)} words")
    if min(env.field_sizes, default=0) < 1:
        _fail("field_sizes", "at least one field, sizes >= 1", str(env.field_sizes))


def _check_types(env: World, params: Any, key: Key) -> None:
    """Shapes and types, of which no value need be computed."""
    action = jax.ShapeDtypeStruct((), jnp.int32)
    state, now = jax.eval_shape(env.reset, key, params)
    for x in jax.tree.leaves(state):
        if jnp.issubdtype(x.dtype, jax.dtypes.extended):
            _fail("reset", "a state of numbers, as step is given its keys", str(x))
    after, then = jax.eval_shape(env.step, key, state, action, params)
    for method, old, new in (("state", state, after), ("time step", now, then)):
        if _types(old) != _types(new):
            _fail("step", f"{method} {_types(old)}", _types(new))
    count, seen = env.num_actions, jax.eval_shape(env.observe, state, params)
    anchor = jax.eval_shape(env.anchor, state, params)
    if anchor.ndim > 1 or anchor.dtype != jnp.int32:
        _fail("anchor", "int32 [] or [W]", _types(anchor))
    numbers, tokens = len(env.field_sizes), env.num_observation_tokens
    expected = {
        "admissible": (jax.eval_shape(env.admissible, state, params), bool, (count,)),
        "observe().fields": (seen.fields, jnp.int32, (numbers,)),
        "observe().tokens": (seen.tokens, jnp.int32, (tokens,)),
        "oracle": (jax.eval_shape(env.oracle, state, params), jnp.int32, ()),
        "action_tokens": (
            jax.eval_shape(env.action_tokens, params),
            jnp.int32,
            (count, env.num_action_tokens),
        ),
        "step().legal": (now.legal, bool, (count,)),
        "step().anchor": (now.anchor, jnp.int32, anchor.shape),
        "step().usage": (now.usage, jnp.float32, (len(USAGE_KINDS),)),
    }
    for name, kind in _SCALARS.items():
        expected[f"step().{name}"] = (getattr(now, name), kind, ())
    if env.observation in ("fields", "tokens"):
        shown = getattr(seen, env.observation)
        expected["step().observation"] = (now.observation, shown.dtype, shown.shape)
    for method, (found, dtype, shape) in expected.items():
        wanted = jax.ShapeDtypeStruct(shape, dtype)
        if _types(found) != _types(wanted):
            _fail(method, _types(wanted), _types(found))


_SCALARS = {
    "reward": jnp.float32,
    "terminated": bool,
    "truncated": bool,
    "outcome": jnp.int32,
    "score": jnp.float32,
}


def _types(tree: Any) -> str:
    leaves = jax.tree_util.tree_leaves_with_path(tree)
    return ", ".join(
        f"{jax.tree_util.keystr(path)} {x.dtype}{list(x.shape)}".strip()
        for path, x in leaves
    )
