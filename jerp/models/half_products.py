"""Policies whose decoder multiplies in bfloat16 while what is trained stays float32.

The matrices are rounded where they are used, inside what is differentiated: gradients,
the optimizer's moments and the parameters themselves are float32, as are sums, norms,
attention and losses. A decoder that is not trained is better rounded once and for all,
by `jerp.models.decoder.cast_products`.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any, cast

import jax.numpy as jnp

from jerp.models.decoder import cast_products
from jerp.models.policy import Acted, Evaluated, SequencePolicy
from jerp.trajectory import Trajectory
from jerp.typing import Array, Key

__all__ = ["HalfProducts"]


@dataclass(frozen=True)
class HalfProducts:
    """A `SequencePolicy` with the parameters of another one, and its numbers nearly.

    Attributes:
      policy: with a decoder, such as a `StepPolicy` or a `TokenPolicy`.

    Example:
      >>> import jax
      >>> from jerp.models.step_policy import step_policy
      >>> policy = step_policy((3, 2), 4, num_steps=5, hidden_size=8, num_layers=1)
      >>> params = jax.eval_shape(HalfProducts(policy).init, jax.random.key(0))
      >>> params["decoder"]["layer_0"]["qkv"].dtype.name
      'float32'

    Deviations: log-probabilities of acting and of evaluating are of the same rounded
    matrices, but inputs of products are rounded too: where a sum came out in another
    order, they may differ by more than the 1e-4 of float32.

    Reference: Micikevicius et al., "Mixed precision training", arXiv:1710.03740,
    section 3.1; bfloat16 has the range of float32, so no loss is scaled.
    """

    policy: Any

    def init(self, key: Key) -> dict[str, Any]:
        """Fresh parameters, float32; `key` is consumed."""
        return self.policy.init(key)

    def start(self, params: Any, batch_size: int) -> Any:
        """The memory of episodes that have not begun."""
        policy, params = self._rounded(params)
        return policy.start(params, batch_size)

    def act(
        self, params: Any, memory: Any, keys: Key, observation: Any, legal: Array
    ) -> tuple[Any, Acted]:
        """One step of all episodes."""
        policy, params = self._rounded(params)
        return policy.act(params, memory, keys, observation, legal)

    def evaluate(
        self, params: Any, trajectory: Trajectory, *, key: Key | None = None
    ) -> Evaluated:
        """The decisions of a batch of episodes, in one pass."""
        policy, params = self._rounded(params)
        return policy.evaluate(params, trajectory, key=key)

    def _rounded(self, params: Any) -> tuple[SequencePolicy, Any]:
        decoder = {"params": params["decoder"]}
        config, rounded = cast_products(self.policy.config, decoder, jnp.bfloat16)
        policy = replace(self.policy, config=config)
        return policy, {**params, "decoder": cast(Any, rounded)["params"]}
