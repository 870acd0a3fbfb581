"""A decoder as policy over pooled steps: one input vector a step, one action out.

A world shows a step as F fields, small integers. Every value of every field has an
embedding, every action another; the input of a step is the sum of the embeddings of its
fields and of the action before. The logits of the actions are the products of the
decoder's output with the actions' embeddings. So the vocabulary of an ordinary decoder
is all that there is: field values first, then the actions, then "no action yet". An
episode of 30 steps is 30 positions, where a token stream has hundreds.

All episodes of a batch are at the same step, those that ended included: their memory
is written and never read.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from typing import Any, cast

import chex
import jax
import jax.numpy as jnp
from flax import struct

from jerp.errors import ConfigError, ShapeError
from jerp.models.attention import grouped_attention
from jerp.models.decoder import Decoder, DecoderConfig, Mixer, causal_mixer
from jerp.models.generate import Cache, init_cache
from jerp.models.policy import Acted, Evaluated
from jerp.models.value_head import init_value_head, state_values
from jerp.ops.masked import categorical_entropy, masked_log_softmax
from jerp.trajectory import Trajectory
from jerp.typing import Array, Key

__all__ = ["StepMemory", "StepPolicy", "step_policy"]


class StepMemory(struct.PyTreeNode):
    """Where the episodes of a batch stand.

    Attributes:
      cache: of the decoder, one position a step.
      step: `[]` int32, steps so far.
      last_action: `[B]` int32; A before the first.
    """

    cache: Cache
    step: Array
    last_action: Array


@dataclass(frozen=True)
class StepPolicy:
    """A `SequencePolicy` of pooled steps.

    Attributes:
      config: of the decoder; its vocabulary is `sum(field_sizes) + num_actions + 1`,
        its context length the most steps of an episode.
      field_sizes: values of each of the F fields.
      num_actions: A.
      value: has a value head, which shares the decoder.
    """

    config: DecoderConfig
    field_sizes: tuple[int, ...]
    num_actions: int
    value: bool = False

    def __post_init__(self):
        needed = sum(self.field_sizes) + self.num_actions + 1
        if self.config.vocab_size != needed:
            raise ConfigError(
                f"config.vocab_size: expected {needed}, the field values, actions and "
                f"'no action yet', got {self.config.vocab_size}; see step_policy"
            )

    @property
    def max_steps(self) -> int:
        """The most steps of an episode."""
        return self.config.context_length

    def init(self, key: Key) -> dict[str, Any]:
        """Fresh parameters; `key` is consumed."""
        decoder = Decoder(self.config)
        params = {"decoder": decoder.init(key, jnp.zeros((1, 1), jnp.int32))["params"]}
        if self.value:
            params["value"] = init_value_head(self.config.hidden_size)
        return params

    def start(self, params: Any, batch_size: int) -> StepMemory:
        """The memory of episodes that have not begun."""
        return StepMemory(
            cache=init_cache(
                self.config, batch_size=batch_size, capacity=self.max_steps
            ),
            step=jnp.zeros((), jnp.int32),
            last_action=jnp.full(batch_size, self.num_actions, jnp.int32),
        )

    def act(
        self,
        params: Any,
        memory: StepMemory,
        keys: Key,
        observation: Array,
        legal: Array,
    ) -> tuple[StepMemory, Acted]:
        """Draws an action an episode, see `jerp.models.policy.SequencePolicy`.

        A log-probability is NaN once the memory is full, after `max_steps` steps.

        Raises:
          ShapeError: a world of another number of fields.
        """
        chex.assert_rank([observation, legal], 2)
        x = self._inputs(params, observation[:, None], memory.last_action[:, None])
        positions = jnp.broadcast_to(memory.step, x.shape[:2])
        mixer = partial(_next_step_mixer, step=memory.step)
        hidden, cache = self._states(params, x, positions, memory.cache, mixer)
        log_probs = self._log_probs(params, hidden[:, 0], legal)
        action = jax.vmap(jax.random.categorical)(keys, log_probs).astype(jnp.int32)
        taken = jnp.take_along_axis(log_probs, action[:, None], axis=1)[:, 0]
        taken = jnp.where(memory.step < self.max_steps, taken, jnp.nan)
        memory = StepMemory(cache=cache, step=memory.step + 1, last_action=action)
        return memory, Acted(action=action, log_prob=taken)

    def evaluate(
        self, params: Any, trajectory: Trajectory, *, key: Key | None = None
    ) -> Evaluated:
        """Log-probabilities, entropies and values of all steps, in one causal pass."""
        del key  # nothing here is dropped
        log_probs, hidden = self.log_probs(params, trajectory)
        taken = jnp.where(trajectory.mask, trajectory.action, 0)[..., None]
        return Evaluated(
            log_prob=jnp.take_along_axis(log_probs, taken, axis=-1)[..., 0],
            entropy=categorical_entropy(log_probs),
            value=self._value(params, hidden),
        )

    def log_probs(self, params: Any, trajectory: Trajectory) -> tuple[Array, Array]:
        """`[B, T, A]` of all actions, and the decoder's states `[B, T, F]`."""
        mask = trajectory.mask
        action = jnp.where(mask, trajectory.action, 0)
        first = jnp.full((mask.shape[0], 1), self.num_actions, jnp.int32)
        before = jnp.concatenate([first, action[:, :-1]], axis=1)
        fields = jnp.where(mask[..., None], cast(Array, trajectory.observation), 0)
        x = self._inputs(params, fields, before)
        positions = jnp.broadcast_to(jnp.arange(mask.shape[1])[None], mask.shape)
        hidden, _ = self._states(params, x, positions, None, causal_mixer)
        # In padding nothing is legal; a uniform row keeps every number finite.
        legal = cast(Array, trajectory.legal) | ~mask[..., None]
        return self._log_probs(params, hidden, legal), hidden

    def _inputs(self, params: Any, fields: Array, before: Array) -> Array:
        """`[B, T, F]` fields and the action before `[B, T]` to input vectors."""
        count = len(self.field_sizes)
        if fields.ndim != 3 or fields.shape[2] != count:
            raise ShapeError(
                f"observation: expected {count} fields a step, as many as field_sizes, "
                f"got {list(fields.shape[2:])}; make the policy of the world's sizes"
            )
        table = params["decoder"]["embedding"]
        sizes = jnp.asarray((0, *self.field_sizes[:-1]), jnp.int32)
        offset = jnp.cumsum(sizes)[None, None]
        x = jnp.sum(table[fields + offset], axis=-2)
        return x + table[before + sum(self.field_sizes)]

    def _states(
        self, params: Any, x: Array, positions: Array, cache: Any, mixer: Mixer
    ) -> tuple[Array, Any]:
        variables = {"params": params["decoder"]}
        apply = cast(Any, Decoder(self.config).apply)
        return apply(variables, x, positions, cache, mixer, method="states")

    def _log_probs(self, params: Any, hidden: Array, legal: Array) -> Array:
        first = sum(self.field_sizes)
        rows = params["decoder"]["embedding"][first : first + self.num_actions]
        return masked_log_softmax(hidden @ rows.T, legal)

    def _value(self, params: Any, hidden: Array) -> Array | None:
        return state_values(params["value"], hidden) if self.value else None


def step_policy(
    field_sizes: tuple[int, ...],
    num_actions: int,
    *,
    num_steps: int,
    hidden_size: int = 64,
    num_layers: int = 2,
    num_heads: int = 4,
    value: bool = False,
) -> StepPolicy:
    """A `StepPolicy` of a size; the default is the preset `tiny`.

    Args:
      field_sizes: of the world.
      num_actions: A, of the world.
      num_steps: the most steps of an episode.
      hidden_size: of the decoder; its feed-forward is four times as wide.
      num_layers: of the decoder.
      num_heads: of the decoder.
      value: whether it has a value head.

    Returns:
      The policy; `init` makes its parameters.

    Example:
      >>> policy = step_policy((3, 2), 4, num_steps=5, hidden_size=8, num_layers=1)
      >>> params = policy.init(jax.random.key(0))
      >>> params["decoder"]["embedding"].shape
      (10, 8)
    """
    config = DecoderConfig(
        vocab_size=sum(field_sizes) + num_actions + 1,
        hidden_size=hidden_size,
        intermediate_size=4 * hidden_size,
        num_layers=num_layers,
        num_heads=num_heads,
        num_kv_heads=num_heads,
        head_dim=hidden_size // num_heads,
        context_length=num_steps,
    )
    return StepPolicy(config, tuple(field_sizes), num_actions, value)


def _next_step_mixer(
    query: Array, key: Array, value: Array, cache: Any, *, step: Array
):
    """Writes one position, the same in all rows, and sees all up to it."""
    keys, values = cache
    zero = jnp.zeros((), jnp.int32)
    key, value = jnp.moveaxis(key, 1, 3), jnp.moveaxis(value, 1, 2)
    keys = jax.lax.dynamic_update_slice(keys, key, (zero, zero, zero, step))
    values = jax.lax.dynamic_update_slice(values, value, (zero, zero, step, zero))
    seen = jnp.arange(values.shape[2])[None, None] <= step
    mask = jnp.broadcast_to(seen, (query.shape[0], 1, values.shape[2]))
    return grouped_attention(query, keys, values, mask), (keys, values)
