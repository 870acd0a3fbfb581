"""What a policy over whole episodes is: it acts with a memory, and it can be evaluated.

A `SequencePolicy` acts on all episodes of a batch at once and may remember what it saw:
a decoder keeps its keys and values from step to step. `evaluate` reads whole episodes
in one pass and gives the numbers that acting gave, as functions of the parameters: the
one thing that training needs. A plain `jerp.typing.PolicyFn` acts without memory.
"""

from __future__ import annotations

from typing import Any, Protocol

from flax import struct

from jerp.trajectory import Trajectory
from jerp.typing import Array, Key

__all__ = ["Acted", "Evaluated", "SequencePolicy"]


class Acted(struct.PyTreeNode):
    """What a policy did in one step of `B` episodes.

    Attributes:
      action: `[B]` int32.
      log_prob: `[B]` float32, of the action as a whole.
      tokens, token_log_prob, token_mask: `[B, L]`, what it generated to say so; None
        for a policy that chooses among actions directly.
    """

    action: Array
    log_prob: Array
    tokens: Array | None = None
    token_log_prob: Array | None = None
    token_mask: Array | None = None


class Evaluated(struct.PyTreeNode):
    """What a policy makes of the decisions of `B` episodes.

    A decision is an action or, for a policy that generates, one of its tokens; means
    are over those tokens that had an alternative, where the policy says which.

    Attributes:
      log_prob: `[B, T]` or `[B, T, L]` float32, of the decisions taken; finite in
        padding, and without meaning there.
      entropy: in the same shape, of the distribution that each was drawn from.
      value: `[B, T]` float32, of the states; None without a value head.
      choice: `[B, T, L]` bool, tokens that had an alternative; None where every one is
        counted as a decision.
    """

    log_prob: Array
    entropy: Array
    value: Array | None = None
    choice: Array | None = None


class SequencePolicy(Protocol):
    """A policy over whole episodes; hashable, so that it can be a static argument.

    One whose memory is full after a number of steps, whatever is in them, says so in an
    attribute `max_steps`; a rollout of more is refused. What depends on the episodes is
    said by log-probabilities that are NaN. One that reads rules says how many in an
    attribute `num_rules`, and its `start` takes them: `working_set`, `[B, R]` int32.
    """

    def start(self, params: Any, batch_size: int) -> Any:
        """The memory of `batch_size` episodes that have not begun."""
        ...

    def act(
        self, params: Any, memory: Any, keys: Key, observation: Any, legal: Array
    ) -> tuple[Any, Acted]:
        """One step of all episodes.

        Args:
          params: of the policy.
          memory: from the step before; the result replaces it.
          keys: `[B]` typed keys, consumed.
          observation: leaves `[B, ...]`.
          legal: `[B, A]` bool; a row without any is padding.
        """
        ...

    def evaluate(
        self, params: Any, trajectory: Trajectory, *, key: Key | None = None
    ) -> Evaluated:
        """The decisions of a batch of episodes, in one pass.

        Args:
          params: of the policy.
          trajectory: `[B, T]`.
          key: consumed; drops what the policy drops while it is cloned. None drops
            nothing, as acting does: the policy that acted is then the one evaluated.
        """
        ...
