"""A decoder as policy over pooled steps: one input vector a step, one action out.

A world shows a step as F fields, small integers. Every value of every field has an
embedding, every action another; the input of a step is the sum of the embeddings of its
fields and of the action before. The logits of the actions are the products of the
decoder's output with the actions' embeddings. So the vocabulary of an ordinary decoder
is all that there is: field values first, then the actions, then "no action yet". An
episode of 30 steps is 30 positions, where a token stream has hundreds.

A policy may read rules before the first step, one position a rule: see
`jerp.models.rule_prefix`. Its parameters then have an entry `rules` that is not
trained, what each rule says, and rows for what rules are made of after all others.

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
from jerp.models.rule_prefix import rule_inputs, working_sets
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
      config: of the decoder; its vocabulary is `sum(field_sizes) + num_actions + 1 +
        sum(rule_sizes)`, its context length the rules and the most steps of an episode.
      field_sizes: values of each of the F fields.
      num_actions: A.
      value: has a value head, which shares the decoder.
      rule_sizes: values of each of the W fields of a rule.
      num_rules: R, the most rules that it reads; without any it refuses working sets.
    """

    config: DecoderConfig
    field_sizes: tuple[int, ...]
    num_actions: int
    value: bool = False
    rule_sizes: tuple[int, ...] = ()
    num_rules: int = 0

    def __post_init__(self):
        needed = self._first_rule_row + sum(self.rule_sizes)
        if self.config.vocab_size != needed:
            raise ConfigError(
                f"config.vocab_size: expected {needed}, the field values, actions, "
                "'no action yet' and what rules are made of, got "
                f"{self.config.vocab_size}; see step_policy"
            )
        if bool(self.num_rules) != bool(self.rule_sizes) or self.num_rules < 0:
            raise ConfigError(
                "num_rules, rule_sizes: expected both or neither, got "
                f"{self.num_rules} and {self.rule_sizes}"
            )

    @property
    def max_steps(self) -> int:
        """The most steps of an episode."""
        return self.config.context_length - self.num_rules

    @property
    def _first_rule_row(self) -> int:
        return sum(self.field_sizes) + self.num_actions + 1

    def init(self, key: Key) -> dict[str, Any]:
        """Fresh parameters; `key` is consumed."""
        decoder = Decoder(self.config)
        params = {"decoder": decoder.init(key, jnp.zeros((1, 1), jnp.int32))["params"]}
        if self.value:
            params["value"] = init_value_head(self.config.hidden_size)
        return params

    def start(
        self, params: Any, batch_size: int, working_set: Array | None = None
    ) -> StepMemory:
        """The memory of episodes that have not begun, but for the rules of each.

        Args:
          params: of the policy.
          batch_size: B.
          working_set: `[B, R]` int32 rule ids, -1 for none; None is none for all.

        Raises:
          ConfigError: rules for a policy that reads none, or without their table.
          ShapeError: more or fewer of them than it reads.
        """
        cache = init_cache(
            self.config, batch_size=batch_size, capacity=self.config.context_length
        )
        x = self._rules(params, batch_size, working_set)
        if x is not None:
            positions = jnp.broadcast_to(jnp.arange(self.num_rules), x.shape[:2])
            mixer = partial(_writing_mixer, first=jnp.zeros((), jnp.int32))
            _, cache = self._states(params, x, positions, cache, mixer)
        return StepMemory(
            cache=cache,
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
        position = memory.step + self.num_rules
        positions = jnp.broadcast_to(position, x.shape[:2])
        mixer = partial(_writing_mixer, first=position)
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
        rules = self._rules(params, mask.shape[0], trajectory.working_set)
        x = x if rules is None else jnp.concatenate([rules, x], axis=1)
        positions = jnp.broadcast_to(jnp.arange(x.shape[1])[None], x.shape[:2])
        hidden, _ = self._states(params, x, positions, None, causal_mixer)
        hidden = hidden[:, self.num_rules :]
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

    def _rules(
        self, params: Any, batch_size: int, working_set: Array | None
    ) -> Array | None:
        """`[B, R, F]` input vectors of the working sets; None where none are read."""
        rules = working_sets(self.num_rules, batch_size, working_set)
        if rules is None:
            return None
        if "rules" not in params:
            raise ConfigError(
                "params: expected an entry 'rules', what each rule says, for a policy "
                "that reads rules, got none"
            )
        rows = params["decoder"]["embedding"][self._first_rule_row :]
        return rule_inputs(rows, params["rules"], rules, sizes=self.rule_sizes)

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
    rule_sizes: tuple[int, ...] = (),
    num_rules: int = 0,
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
      rule_sizes: of the fields that a rule is told in, see `jerp.models.rule_prefix`.
      num_rules: R, the most rules that it reads before an episode.

    Returns:
      The policy; `init` makes its parameters.

    Example:
      >>> policy = step_policy((3, 2), 4, num_steps=5, hidden_size=8, num_layers=1)
      >>> params = policy.init(jax.random.key(0))
      >>> params["decoder"]["embedding"].shape
      (10, 8)
    """
    config = DecoderConfig(
        vocab_size=sum(field_sizes) + num_actions + 1 + sum(rule_sizes),
        hidden_size=hidden_size,
        intermediate_size=4 * hidden_size,
        num_layers=num_layers,
        num_heads=num_heads,
        num_kv_heads=num_heads,
        head_dim=hidden_size // num_heads,
        context_length=num_steps + num_rules,
    )
    return StepPolicy(
        *(config, tuple(field_sizes), num_actions, value),
        rule_sizes=tuple(rule_sizes),
        num_rules=num_rules,
    )


def _writing_mixer(query: Array, key: Array, value: Array, cache: Any, *, first: Array):
    """Writes positions from `first` on, in all rows; each sees up to itself."""
    keys, values = cache
    zero = jnp.zeros((), jnp.int32)
    key, value = jnp.moveaxis(key, 1, 3), jnp.moveaxis(value, 1, 2)
    keys = jax.lax.dynamic_update_slice(keys, key, (zero, zero, zero, first))
    values = jax.lax.dynamic_update_slice(values, value, (zero, zero, first, zero))
    own = first + jnp.arange(query.shape[1])
    seen = jnp.arange(values.shape[2])[None] <= own[:, None]
    mask = jnp.broadcast_to(seen[None], (query.shape[0], *seen.shape))
    return grouped_attention(query, keys, values, mask), (keys, values)
