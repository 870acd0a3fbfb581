"""A decoder that chooses among actions by what it gives to their texts.

    pi(a | h) = exp(s_a) / sum over admissible b of exp(s_b),
    s_a = sum_j log p(c_aj | h, c_a1 .. c_a(j-1)), per token or not

`TokenPolicy` writes an action token by token and renormalises at each; here whole texts
compete, as candidates do in `jerp.models.scoring`, and a decision is an action, one a
step. What is chosen is appended to the memory as it is there.

All candidates have to be read to know one probability. Beside the N tokens of an
episode, acting reads T A (L_a - 1) more, and so does evaluating: one causal pass over
the episode, then one over the candidates of each step, which read its keys and values
where they lie and are computed a second time for the gradient. Actions of one token
cost nothing. Texts that are long, or many, are cheaper to write than to score: with 24
actions of three tokens, in a small household, playing took four times as long as where
actions are written, and a gradient two and a half times.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from typing import Any, cast

import chex
import jax
import jax.numpy as jnp
from jax import lax

from jerp.models.adapted import adapted_variables
from jerp.models.continuation import append
from jerp.models.decoder import Decoder
from jerp.models.policy import Acted, Evaluated
from jerp.models.prefix import Prefix
from jerp.models.scoring import score_continuations
from jerp.models.token_policy import TokenMemory, TokenPolicy
from jerp.models.token_stream import read_stream
from jerp.ops.masked import categorical_entropy, masked_log_softmax
from jerp.trajectory import Trajectory
from jerp.typing import Array, Key

__all__ = ["ScoredPolicy"]


@dataclass(frozen=True)
class ScoredPolicy(TokenPolicy):
    """A `TokenPolicy` that chooses by score; see the module's first lines.

    Attributes:
      normalise: a score is a mean over an action's tokens, so that long texts are not
        at a disadvantage. Without, the beginning of another action is always at least
        as likely as that one: give actions an end of their own, or normalise.

    Example:
      >>> from jerp.models.presets import tiny_decoder
      >>> actions = ((1, 0), (2, 3))
      >>> policy = ScoredPolicy(tiny_decoder(9), 3, 2, num_steps=4, actions=actions)
      >>> policy.num_positions, policy.normalise
      (20, False)

    Reference: Brown et al., arXiv:2005.14165, section 2.4 (scores per token); Tan et
    al., "True Knowledge Comes from Practice", arXiv:2401.14151 (both as a policy).
    """

    normalise: bool = False

    def act(
        self,
        params: Any,
        memory: TokenMemory,
        keys: Key,
        observation: Any,
        legal: Array,
    ) -> tuple[TokenMemory, Acted]:
        """Chooses an action an episode, see `jerp.models.policy.SequencePolicy`.

        A log-probability is NaN where the memory is too small for what was seen and for
        the action.
        """
        seen, actions = self._seen(observation)
        chex.assert_rank([seen, actions, legal], [2, 3, 2])
        decoder, variables = Decoder(self.config), adapted_variables(params, self.lora)
        live = jnp.any(legal, axis=-1)
        # Episodes that ended are not written to: they would run out of memory.
        count = jnp.where(live, _length(seen), 0)
        rows = append(
            variables, memory.cache, memory.position, seen, count, decoder=decoder
        )
        last = jnp.where(count[:, None] > 0, rows.last, memory.last)
        prefix = Prefix(rows.cache, rows.position, last)
        log_probs = self._choice(variables, prefix, actions, legal)
        action = jax.vmap(jax.random.categorical)(keys, log_probs).astype(jnp.int32)
        log_prob = jnp.take_along_axis(log_probs, action[:, None], axis=1)[:, 0]
        words = jnp.take_along_axis(actions, action[:, None, None], axis=1)[:, 0]
        count = jnp.where(live, _length(words), 0)
        rows = append(
            variables, rows.cache, rows.position, words, count, decoder=decoder
        )
        last = jnp.where(count[:, None] > 0, rows.last, last)
        log_prob = jnp.where(rows.fits, log_prob, jnp.nan)
        return TokenMemory(rows.cache, rows.position, last), Acted(action, log_prob)

    def evaluate(
        self, params: Any, trajectory: Trajectory, *, key: Key | None = None
    ) -> Evaluated:
        """Log-probabilities, entropies and values `[B, T]` of all steps.

        Args:
          params: of the policy.
          trajectory: with `legal`; its tokens are not read, they follow from actions.
          key: consumed, for the dropout of adapters; None drops nothing.
        """
        mask = trajectory.mask
        seen, actions = self._seen(trajectory.observation)
        decoder = Decoder(self.config)
        variables = adapted_variables(params, self.lora, key)
        action = jnp.where(mask, trajectory.action, 0)
        words = jnp.take_along_axis(actions, action[..., None, None], axis=2)[:, :, 0]
        stream = read_stream(
            variables,
            seen,
            words,
            words != 0,
            mask,
            decoder=decoder,
            capacity=self.num_positions,
        )
        starts = stream.before[:, :, 0]
        states = stream.states[:, :, 0]

        @jax.checkpoint
        def step(each: tuple[Array, Array, Array, Array]) -> Array:
            start, state, actions, legal = each
            prefix = Prefix(stream.cache, start, state)
            return self._choice(variables, prefix, actions, legal)

        legal = cast(Array, trajectory.legal) & mask[..., None]
        by_step = (starts, states, actions, legal)
        by_step = jax.tree.map(partial(jnp.swapaxes, axis1=0, axis2=1), by_step)
        log_probs = jnp.swapaxes(lax.map(step, by_step), 0, 1)
        taken = jnp.take_along_axis(log_probs, action[..., None], axis=-1)[..., 0]
        # Acting has no number either for an action that it cannot remember.
        beyond = starts + _length(words) > self.num_positions
        taken = jnp.where(beyond, jnp.nan, taken)
        return Evaluated(
            log_prob=jnp.where(mask, taken, 0.0),
            entropy=jnp.where(mask, categorical_entropy(log_probs), 0.0),
            value=self._value(params, states),
        )

    def with_tokens(self, trajectory: Trajectory) -> Trajectory:
        """The trajectory without tokens: a decision is an action, whoever took it."""
        return trajectory.replace(tokens=None, token_log_prob=None, token_mask=None)

    def _choice(
        self, variables: Any, prefix: Prefix, actions: Array, legal: Array
    ) -> Array:
        """`[B, A]` log-probabilities; where nothing is legal, of all, to be finite."""
        scores = score_continuations(
            variables,
            prefix,
            actions,
            _length(actions),
            decoder=Decoder(self.config),
            normalise=self.normalise,
        )
        return masked_log_softmax(scores, legal | ~jnp.any(legal, axis=-1)[:, None])


def _length(tokens: Array) -> Array:
    """`[...]` int32, tokens `[..., L]` that are no padding."""
    return jnp.sum(tokens != 0, axis=-1, dtype=jnp.int32)
