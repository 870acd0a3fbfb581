"""A frozen model that is prompted, as what plays in a run of rules only."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import jax

from jerp.bridge.executor import Executor
from jerp.bridge.prompted_episodes import play_prompted
from jerp.bridge.prompting import Prompting
from jerp.envs.base import World, WorldText
from jerp.trajectory import Trajectory
from jerp.typing import Key

__all__ = ["PromptedPlay"]

_SAMPLES = 2**30
"""So many that two iterations hardly draw numbers which overlap."""


@dataclass(frozen=True)
class PromptedPlay:
    """`play` and `tell` of `train_jerp` for a model behind an executor.

    The task's policy is None and its parameters are `{}`: nothing is trained, so
    `learn_policy` has to be False and `max_rounds` 1. A reflector reads the
    transcripts; only the ones of the last episodes are kept. Rollout numbers, on which
    answers depend, count from one that is drawn from the key: iterations ask anew, and
    a run that goes on asks as one that never stopped.

    Attributes:
      executor: the model.
      text: the world in words.
      prompting: how it is asked for actions, after a thought (ReAct) or without.
    """

    executor: Executor
    text: WorldText
    prompting: Prompting
    _told: list[str] = field(default_factory=list, compare=False, repr=False)

    def __call__(
        self,
        key: Key,
        env: World,
        env_params: Any,
        policy: None,
        params: Any,
        **settings: Any,
    ) -> Trajectory:
        """See `jerp.bridge.prompted_episodes.play_prompted`."""
        del policy, params
        playing, sampling = jax.random.split(key)
        found = play_prompted(
            *(playing, env, jax.device_get(env_params)),
            *(self.executor, self.text, self.prompting),
            first_sample=int(jax.random.randint(sampling, (), 0, _SAMPLES)),
            **settings,
        )
        self._told[:] = found.transcripts
        return found.trajectory

    def tell(self, data: Trajectory, env_params: Any) -> Sequence[str]:
        """The transcripts of the episodes that were played last, which `data` are."""
        del data, env_params
        return tuple(self._told)
