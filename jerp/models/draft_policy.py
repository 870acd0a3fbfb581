"""A decoder that writes one free text about what it reads: a policy of a single step.

What it reads is a prompt of tokens; what it writes ends with a stop token, or where
there is no room left. Nothing constrains the words: whether they are of any use is
found out by whoever carries out what they say, and that is the reward. Training knows
drafts as any other episodes, of one step each, whose groups read the same prompt.

Log-probabilities are those of the distribution that is drawn from, after temperature
and `top_k`, in training as in drawing. A token that was drawn stays possible when
training has pushed it out of the `top_k` most likely ones.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, cast

import chex
import jax
import jax.numpy as jnp

from jerp.errors import ConfigError, InputError
from jerp.models.adapted import adapted_variables, init_adapted
from jerp.models.continuation import append, generate_turn
from jerp.models.decoder import Decoder, DecoderConfig, output_logits
from jerp.models.generate import init_cache
from jerp.models.lora import LoraConfig
from jerp.models.policy import Acted, Evaluated
from jerp.models.sampling import SamplingRows
from jerp.models.token_stream import read_stream
from jerp.ops.masked import categorical_entropy, masked_log_softmax
from jerp.trajectory import Trajectory
from jerp.typing import Array, Key

__all__ = ["DraftPolicy"]


@dataclass(frozen=True)
class DraftPolicy:
    """A `SequencePolicy` of one step, whose action is a text.

    An observation is tokens `[B, P]`, padded with 0 on the right.

    Attributes:
      config: of the decoder; its context holds a prompt and a draft.
      num_prompt_tokens: P.
      num_draft_tokens: L, the most of a draft, its stop token included.
      stop_tokens: that end a draft.
      temperature: of drawing, above 0.
      top_k: tokens among which one is drawn; 0 for all.
      lora: of adapters beside the decoder, or None; see
        `jerp.models.token_policy.TokenPolicy`.
    """

    config: DecoderConfig
    num_prompt_tokens: int
    num_draft_tokens: int
    stop_tokens: tuple[int, ...]
    temperature: float = 1.0
    top_k: int = 0
    lora: LoraConfig | None = None

    max_steps = 1

    def __post_init__(self):
        if self.config.context_length < self.num_positions:
            raise ConfigError(
                f"config.context_length: expected at least {self.num_positions}, a "
                f"prompt and a draft, got {self.config.context_length}"
            )
        if self.temperature <= 0:
            raise ConfigError(
                f"temperature: expected > 0, got {self.temperature}: a draft that is "
                "not drawn has nothing to be compared with"
            )
        size = self.config.vocab_size
        if not self.stop_tokens or not all(0 < t < size for t in self.stop_tokens):
            raise ConfigError(
                f"stop_tokens: expected some of 1 to {size - 1}, got "
                f"{list(self.stop_tokens)}"
            )

    @property
    def num_positions(self) -> int:
        """Tokens of a prompt and its draft, at most."""
        return self.num_prompt_tokens + self.num_draft_tokens

    def init(self, key: Key) -> dict[str, Any]:
        """Fresh parameters; `key` is consumed.

        `decoder` is what a `Decoder` calls `params`: put a pretrained one there.
        """
        return init_adapted(key, self.config, self.lora)

    def start(self, params: Any, batch_size: int) -> tuple[()]:
        """Nothing is remembered."""
        del params, batch_size
        return ()

    def act(
        self, params: Any, memory: tuple[()], keys: Key, observation: Array, legal: Any
    ) -> tuple[tuple[()], Acted]:
        """Writes a draft a prompt; the action is 0 throughout.

        A prompt without a token has no draft, and a log-probability of 0.
        """
        del legal
        chex.assert_shape(observation, (None, self.num_prompt_tokens))
        batch, variables = observation.shape[0], adapted_variables(params, self.lora)
        decoder = Decoder(self.config)
        cache = init_cache(self.config, batch_size=batch, capacity=self.num_positions)
        start = jnp.zeros(batch, jnp.int32)
        count = jnp.sum(observation != 0, axis=-1, dtype=jnp.int32)
        rows = append(variables, cache, start, observation, count, decoder=decoder)
        sampling = SamplingRows(
            temperature=jnp.full(batch, self.temperature, jnp.float32),
            top_k=jnp.full(batch, self.top_k, jnp.int32),
            top_p=jnp.ones(batch, jnp.float32),
        )
        drawn = generate_turn(
            variables,
            rows.cache,
            rows.position,
            rows.last,
            keys,
            sampling,
            jnp.asarray(self.stop_tokens, jnp.int32),
            decoder=decoder,
            steps=self.num_draft_tokens,
        ).generated
        mask = drawn.mask & (count[:, None] > 0)
        log_prob = jnp.where(mask, drawn.log_prob, 0.0)
        return memory, Acted(
            action=start,
            log_prob=jnp.sum(log_prob, axis=-1),
            tokens=jnp.where(mask, drawn.tokens, 0),
            token_log_prob=log_prob,
            token_mask=mask,
        )

    def evaluate(
        self, params: Any, trajectory: Trajectory, *, key: Key | None = None
    ) -> Evaluated:
        """Log-probabilities and entropies `[B, 1, L]` of drafts, in one pass.

        Zeros behind a draft's end.

        Args:
          params: of the policy.
          trajectory: `[B, 1]`, with tokens.
          key: consumed, for the dropout of adapters; None drops nothing.

        Raises:
          InputError: a trajectory without tokens.
        """
        if trajectory.tokens is None:
            raise InputError("trajectory.tokens: expected drafts, got None")
        mask = trajectory.mask
        drawn = cast(Array, trajectory.token_mask) & mask[..., None]
        decoder = Decoder(self.config)
        variables = adapted_variables(params, self.lora, key)
        states = read_stream(
            variables,
            jnp.asarray(trajectory.observation),
            trajectory.tokens,
            drawn,
            mask,
            decoder=decoder,
            capacity=self.num_positions,
        ).states
        logits = output_logits(decoder, variables, states) / self.temperature
        tokens = jnp.where(drawn, trajectory.tokens, 0)[..., None]
        log_probs = self._log_probs(logits, tokens)
        taken = jnp.take_along_axis(log_probs, tokens, axis=-1)[..., 0]
        entropy = categorical_entropy(log_probs)
        return Evaluated(*(jnp.where(drawn, x, 0.0) for x in (taken, entropy)))

    def _log_probs(self, logits: Array, tokens: Array) -> Array:
        """`[..., V]`, over what may be drawn and `tokens` `[..., 1]`, which were."""
        if not 0 < self.top_k < self.config.vocab_size:
            return jax.nn.log_softmax(logits)
        most = jax.lax.top_k(jax.lax.stop_gradient(logits), self.top_k)[0]
        were_drawn = jax.nn.one_hot(tokens[..., 0], logits.shape[-1], dtype=bool)
        return masked_log_softmax(logits, (logits >= most[..., -1:]) | were_drawn)
