"""A decoder as policy over a stream of tokens: it reads observations, writes actions.

An episode is one sequence: the tokens of an observation, the tokens of the action that
was written, the next observation, and so on, without padding in between. Acting appends
to a cache and writes an action constrained to the admissible ones
(`jerp.models.constrained`); evaluating reads whole episodes in one causal pass, and
renormalises alike. Token 0 is padding, in observations and at the end of actions.

What may be written is fixed, or comes with observations: `jerp.envs.with_actions`.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, cast

import chex
import jax
import jax.numpy as jnp
from flax import struct

from jerp.errors import ConfigError, InputError
from jerp.models.action_tokens import check_actions, written_out
from jerp.models.adapted import adapted_variables, init_adapted
from jerp.models.constrained import constrained_log_probs, generate_constrained
from jerp.models.continuation import append
from jerp.models.decoder import Decoder, DecoderConfig, output_logits
from jerp.models.generate import Cache, init_cache
from jerp.models.lora import LoraConfig
from jerp.models.policy import Acted, Evaluated
from jerp.models.token_stream import read_stream
from jerp.models.value_head import init_value_head, state_values
from jerp.trajectory import Trajectory
from jerp.typing import Array, Key

__all__ = ["TokenMemory", "TokenPolicy", "token_policy"]


class TokenMemory(struct.PyTreeNode):
    """Where the episodes of a batch stand.

    Attributes:
      cache: of the decoder, one position a token.
      position: `[B]` int32, tokens so far.
      last: `[B, F]` float32, the state of each last token.
    """

    cache: Cache
    position: Array
    last: Array


@dataclass(frozen=True)
class TokenPolicy:
    """A `SequencePolicy` of token streams.

    An observation is tokens `[B, L_o]` if actions are fixed, else a dict of `tokens`
    and `actions` `[B, A, L_a]`.

    Attributes:
      config: of the decoder; its vocabulary is the world's.
      num_observation_tokens: L_o.
      num_action_tokens: L_a.
      num_steps: the most steps of an episode.
      actions: A different tuples of L_a tokens, padded with 0, the same in all tasks;
        None if they come with the observation.
      value: has a value head, which shares the decoder.
      lora: of adapters beside the decoder, or None. Training leaves alone what it is
        given as `frozen`: `{"decoder": params["decoder"]}` trains the adapters alone.
        Its dropout is for cloning: what acts drops nothing, and neither does training
        that compares with what acted.
      capacity: tokens of an episode that are remembered; None for as many as
        `num_steps` steps can have. Beyond it all numbers are NaN.
    """

    config: DecoderConfig
    num_observation_tokens: int
    num_action_tokens: int
    num_steps: int
    actions: tuple[tuple[int, ...], ...] | None = None
    value: bool = False
    lora: LoraConfig | None = None
    capacity: int | None = None

    def __post_init__(self):
        if self.config.context_length < self.num_positions:
            raise ConfigError(
                f"config.context_length: expected at least {self.num_positions}, the "
                f"capacity or the tokens of {self.num_steps} steps, got "
                f"{self.config.context_length}"
            )
        check_actions(
            self.actions or (),
            num_tokens=self.num_action_tokens,
            vocab_size=self.config.vocab_size,
        )

    @property
    def num_positions(self) -> int:
        """Tokens of an episode, at most."""
        if self.capacity is not None:
            return self.capacity
        return self.num_steps * (self.num_observation_tokens + self.num_action_tokens)

    def init(self, key: Key) -> dict[str, Any]:
        """Fresh parameters; `key` is consumed.

        `decoder` is what a `Decoder` calls `params`: put a pretrained one there.
        """
        params = init_adapted(key, self.config, self.lora)
        if self.value:
            params["value"] = init_value_head(self.config.hidden_size)
        return params

    def start(self, params: Any, batch_size: int) -> TokenMemory:
        """The memory of episodes that have not begun."""
        capacity = self.num_positions
        return TokenMemory(
            cache=init_cache(self.config, batch_size=batch_size, capacity=capacity),
            position=jnp.zeros(batch_size, jnp.int32),
            last=jnp.zeros((batch_size, self.config.hidden_size)),
        )

    def act(
        self,
        params: Any,
        memory: TokenMemory,
        keys: Key,
        observation: Any,
        legal: Array,
    ) -> tuple[TokenMemory, Acted]:
        """Writes an action an episode, see `jerp.models.policy.SequencePolicy`.

        A log-probability is NaN for an episode whose memory is full.
        """
        tokens, actions = self._seen(observation)
        chex.assert_rank([tokens, actions, legal], [2, 3, 2])
        decoder = Decoder(self.config)
        variables = adapted_variables(params, self.lora)
        count = jnp.sum(tokens != 0, axis=-1, dtype=jnp.int32)
        # Episodes that ended are not written to: they would run out of memory.
        count = jnp.where(jnp.any(legal, axis=-1), count, 0)
        rows = append(
            variables, memory.cache, memory.position, tokens, count, decoder=decoder
        )
        spoken = generate_constrained(
            variables,
            rows.cache,
            rows.position,
            jnp.where(count[:, None] > 0, rows.last, memory.last),
            keys,
            actions,
            legal,
            decoder=decoder,
        )
        written = spoken.written
        capacity = spoken.cache[0][1].shape[2]
        poison = jnp.where(spoken.position <= capacity, 0.0, jnp.nan)
        acted = Acted(
            action=written.action,
            log_prob=written.log_prob + poison,
            tokens=written.tokens,
            token_log_prob=written.token_log_prob + poison[:, None],
            token_mask=written.token_mask,
        )
        return TokenMemory(spoken.cache, spoken.position, spoken.last), acted

    def evaluate(
        self, params: Any, trajectory: Trajectory, *, key: Key | None = None
    ) -> Evaluated:
        """Log-probabilities and entropies `[B, T, L_a]` of all tokens, in one pass.

        Zeros in padding; values are of the states in which actions begin.

        Args:
          params: of the policy.
          trajectory: with `legal` and tokens; see `with_tokens` for one without.
          key: consumed, for the dropout of adapters; None drops nothing.

        Raises:
          InputError: a trajectory without tokens.
        """
        if trajectory.tokens is None:
            raise InputError(
                "trajectory.tokens: expected what the policy wrote, got None. Make it "
                "from the actions by `with_tokens`"
            )
        mask = trajectory.mask
        seen, actions = self._seen(trajectory.observation)
        decoder = Decoder(self.config)
        variables = adapted_variables(params, self.lora, key)
        hidden = read_stream(
            variables,
            seen,
            trajectory.tokens,
            cast(Array, trajectory.token_mask),
            mask,
            decoder=decoder,
            capacity=self.num_positions,
        ).states
        logits = output_logits(decoder, variables, hidden)
        found = jax.vmap(constrained_log_probs)(
            logits,
            jnp.where(mask[..., None], trajectory.tokens, 0),
            actions,
            cast(Array, trajectory.legal),
        )
        log_prob, entropy = (
            jnp.where(mask[..., None], x, 0.0)
            for x in (found.token_log_prob, found.token_entropy)
        )
        value = self._value(params, hidden[:, :, 0])
        return Evaluated(log_prob, entropy, value, found.choice & mask[..., None])

    def with_tokens(self, trajectory: Trajectory) -> Trajectory:
        """A trajectory whose actions are written out, for what another policy did.

        The log-probability of an action stands at its first token, 0 if it is unknown.
        """
        return written_out(trajectory, self._seen(trajectory.observation)[1])

    def _seen(self, observation: Any) -> tuple[Array, Array]:
        """Tokens `[..., L_o]` and actions `[..., A, L_a]`."""
        if self.actions is None:
            return observation["tokens"], observation["actions"]
        actions = jnp.asarray(self.actions, jnp.int32)
        lead = observation.shape[:-1]
        expanded = actions.reshape((1,) * len(lead) + actions.shape)
        return observation, jnp.broadcast_to(expanded, (*lead, *actions.shape))

    def _value(self, params: Any, hidden: Array) -> Array | None:
        return state_values(params["value"], hidden) if self.value else None


def token_policy(
    vocab_size: int,
    num_observation_tokens: int,
    num_action_tokens: int,
    *,
    num_steps: int,
    actions: tuple[tuple[int, ...], ...] | None = None,
    hidden_size: int = 64,
    num_layers: int = 2,
    num_heads: int = 4,
    value: bool = False,
) -> TokenPolicy:
    """A `TokenPolicy` of a size; the default is the preset `tiny`.

    Args:
      vocab_size: of the world.
      num_observation_tokens: L_o, of the world.
      num_action_tokens: L_a, of the world.
      num_steps: the most steps of an episode.
      actions: see `TokenPolicy`.
      hidden_size: of the decoder; its feed-forward is four times as wide.
      num_layers: of the decoder.
      num_heads: of the decoder.
      value: whether it has a value head.

    Returns:
      The policy; `init` makes its parameters.

    Example:
      >>> policy = token_policy(9, 3, 2, num_steps=4, hidden_size=8, num_layers=1)
      >>> policy.config.context_length
      20
    """
    config = DecoderConfig(
        vocab_size=vocab_size,
        hidden_size=hidden_size,
        intermediate_size=4 * hidden_size,
        num_layers=num_layers,
        num_heads=num_heads,
        num_kv_heads=num_heads,
        head_dim=hidden_size // num_heads,
        context_length=num_steps * (num_observation_tokens + num_action_tokens),
    )
    tokens = (num_observation_tokens, num_action_tokens)
    return TokenPolicy(config, *tokens, num_steps, actions, value)
