"""A world that shows a prompt and takes one answer."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import jax.numpy as jnp

from jerp.envs.base import TimeStep
from jerp.typing import USAGE_KINDS, Array, Key, Outcome

__all__ = ["OneText"]


@dataclass(frozen=True)
class OneText:
    """Tasks are prompts `[N, P]`; whatever is answered is right."""

    def reset(self, key: Key, params: Array) -> tuple[Array, TimeStep]:
        del key
        return params, _shown(params, jnp.zeros((), bool))

    def step(
        self, key: Key, state: Array, action: Array, params: Array
    ) -> tuple[Any, TimeStep]:
        del key, action, params
        return state, _shown(state, jnp.ones((), bool))


def _shown(prompt: Array, done: Array) -> TimeStep:
    return TimeStep(
        observation=prompt,
        legal=jnp.ones(1, bool),
        reward=done.astype(jnp.float32),
        terminated=done,
        truncated=jnp.zeros((), bool),
        outcome=jnp.int32(Outcome.SUCCESS),
        score=done.astype(jnp.float32),
        anchor=jnp.zeros((), jnp.int32),
        usage=jnp.zeros(len(USAGE_KINDS)),
    )
