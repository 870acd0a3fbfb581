"""Vectors of texts, for choosing rules by what they are about.

A text's vector is the mean of a decoder's last states over its tokens, of length 1.
With `jerp.rules.selection.select_similar` it makes an exact search. A language model
was not trained for it: all of its vectors lie close together, and one text may be the
nearest to all others. Take from rules and from tasks what all of their kind share
(`centred`): SmolLM2 then finds the rules of four of five tasks, and else of two.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial

import jax
import jax.numpy as jnp
import numpy as np

from jerp.bridge.local import LoadedModel
from jerp.errors import InputError
from jerp.models.decoder import Decoder, hidden_states
from jerp.ops.checks import check_axes, check_count
from jerp.typing import Array, ArrayTree

__all__ = ["TextEmbedder", "centred"]

_SHORTEST = 16
"""Tokens of the smallest shape; others are twice as long, and so on."""


class TextEmbedder:
    """Embeds texts with a decoder.

        e(x) = m / |m|,   m = mean_t h_t,  h the normalised last states

    A text's vector depends on the text alone: the shape that it is computed in follows
    from its length, and rows do not see each other.

    Args:
      model: loaded weights and their tokenizer.
      batch_size: texts computed together.

    Raises:
      InputError: a batch size below 1.

    Deviations: the paper retrieves by score alone.
    """

    def __init__(self, model: LoadedModel, *, batch_size: int = 8):
        check_count("batch_size", batch_size)
        self._tokenizer, self._params = model.tokenizer, model.params
        self._decoder, self._batch_size = Decoder(model.config), batch_size
        self.fingerprint = model.fingerprint

    def embed(self, texts: Sequence[str]) -> np.ndarray:
        """The vectors of texts.

        Args:
          texts: n texts; one that comes twice is computed once.

        Returns:
          `[n, D]` float32, rows of length 1, D the decoder's width.

        Raises:
          InputError: a text without a token, or with more than the decoder reads.
        """
        if isinstance(texts, str):
            raise InputError(f"texts: expected a list of texts, got one: {texts!r}")
        distinct = list(dict.fromkeys(texts))
        tokens = [self._tokens(i, text) for i, text in enumerate(distinct)]
        vectors = np.zeros(
            (len(distinct), self._decoder.config.hidden_size), np.float32
        )
        shape = np.array([self._padded(len(t)) for t in tokens], int)
        for length in np.unique(shape):
            rows = np.flatnonzero(shape == length)
            for start in range(0, len(rows), self._batch_size):
                some = rows[start : start + self._batch_size]
                vectors[some] = self._batch([tokens[i] for i in some], int(length))
        place = {text: i for i, text in enumerate(distinct)}
        return vectors[np.array([place[text] for text in texts], int)]

    def _tokens(self, number: int, text: str) -> list[int]:
        tokens = self._tokenizer.encode(text, add_special_tokens=False).ids
        most = self._decoder.config.context_length
        if not 1 <= len(tokens) <= most:
            raise InputError(
                f"texts: expected 1 to {most} tokens, got {len(tokens)} in distinct "
                f"text {number}, {text[:40]!r}. Shorten it, or leave it out"
            )
        return tokens

    def _padded(self, length: int) -> int:
        shape = _SHORTEST
        while shape < length:
            shape *= 2
        return min(shape, self._decoder.config.context_length)

    def _batch(self, rows: list[list[int]], length: int) -> np.ndarray:
        tokens = np.zeros((self._batch_size, length), np.int32)
        for row, ids in enumerate(rows):
            tokens[row, : len(ids)] = ids
        lengths = [len(ids) for ids in rows] + [1] * (self._batch_size - len(rows))
        found = _mean_states(
            self._params, tokens, np.array(lengths, np.int32), decoder=self._decoder
        )
        return np.asarray(found)[: len(rows)]


def centred(vectors: np.ndarray, kind: np.ndarray) -> np.ndarray:
    """What vectors have beyond what all of their kind share.

        c_i = (e_i - mean_j k_j) / |e_i - mean_j k_j|

    Args:
      vectors: `[n, D]` float32.
      kind: `[m, D]` float32, vectors of texts of the same kind: of many rules for a
        rule, of many tasks for a task. A mean over both kinds would leave in what
        tells one kind from the other.

    Returns:
      `[n, D]` float32, rows of length 1; of zeros where nothing is left.

    Reference: Mu and Viswanath, "All-but-the-top", arXiv:1702.01417, without the top.

    Example:
      >>> kind = np.float32([[0.6, 0.8], [0.8, 0.6]])
      >>> np.round(centred(kind, kind).astype(float), 4).tolist()
      [[-0.7071, 0.7071], [0.7071, -0.7071]]
    """
    check_axes(vectors=(vectors, "N D"), kind=(kind, "M D"))
    rest = np.asarray(vectors, np.float32) - np.mean(kind, axis=0, dtype=np.float32)
    length = np.linalg.norm(rest, axis=1, keepdims=True)
    return rest / np.where(length > 0, length, 1)


@partial(jax.jit, static_argnames="decoder")
def _mean_states(
    params: ArrayTree, tokens: Array, length: Array, *, decoder: Decoder
) -> Array:
    """`[B, D]`: a token sees none behind it, so that padding changes no state."""
    position = jnp.broadcast_to(
        jnp.arange(tokens.shape[1], dtype=jnp.int32)[None], tokens.shape
    )
    states, _ = hidden_states(decoder, params, tokens, position)
    real = (position < length[:, None])[..., None]
    mean = jnp.sum(jnp.where(real, states, 0), axis=1) / length[:, None]
    return mean / jnp.linalg.norm(mean, axis=-1, keepdims=True)
