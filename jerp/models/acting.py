"""A trained controller that acts in a plain Python loop: NumPy alone, no JAX.

The network of `jerp.models.controller`, one row at a time and at once. Sums run in
float64 in a fixed order and draws come from the caller's integer seed, so that a
decision depends on parameters, features, legal actions and seed, and on nothing else:
not on the batch it is in, nor on the machine. The last bit of `exp` alone may differ
between machines; it changes one decision in about 1e15.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple, SupportsIndex

import numpy as np
from numpy.typing import ArrayLike

from jerp.errors import ConfigError
from jerp.models.acting_checks import (
    check_features,
    check_greedy,
    check_legal,
    check_params,
    check_seeds,
    check_support,
    check_vector,
    layout_names,
)
from jerp.models.explanation import Explanation, explanation
from jerp.models.support import BufferSupport
from jerp.models.uniform import uniform

__all__ = ["Decision", "HarnessController"]

ILLEGAL = -1e30
ROWS_AT_ONCE = 1024


class Decision(NamedTuple):
    """What a controller chose; what a log of episodes needs of it.

    Attributes:
      action: index of the action.
      name: of the action.
      log_prob: under the distribution that was really drawn from; 0 if greedy.
    """

    action: int
    name: str
    log_prob: float


@dataclass(frozen=True, eq=False)
class HarnessController:
    """A controller on the host, with the names that give its numbers their meaning.

        logits = W2^T relu(W1^T (x - mean) / scale + b1) + b2
        pi(a | x) = softmax of the logits over the legal actions

    Attributes:
      params: of a `jerp.models.controller.Controller`, as NumPy arrays; they see
        normalised features.
      feature_names: of the F features, in order.
      action_names: of the A actions, in order.
      feature_version: of the layout of features.
      mean, scale: `[F]` float32, of the normalisation; None for the identity.
      training: JSON-able, how it was trained.
      support: of the buffer it learned from; None where nobody measured it.

    Raises:
      ConfigError: parameters, names and normalisation do not fit together, or are not
        finite.
    """

    params: Mapping[str, Any] = field(repr=False)
    feature_names: tuple[str, ...]
    action_names: tuple[str, ...]
    feature_version: int = 0
    mean: np.ndarray | None = field(default=None, repr=False)
    scale: np.ndarray | None = field(default=None, repr=False)
    training: Mapping[str, Any] = field(default_factory=dict)
    support: BufferSupport | None = field(default=None, repr=False)
    _weights: tuple[np.ndarray, ...] = field(init=False, repr=False)

    def __post_init__(self):
        setattr_ = object.__setattr__
        for name in ("feature_names", "action_names"):
            setattr_(self, name, layout_names(name, getattr(self, name)))
        sizes = len(self.feature_names), len(self.action_names)
        params = check_params(self.params, *sizes)
        setattr_(self, "params", params)
        setattr_(self, "_weights", _transposed(params))
        if (self.mean is None) != (self.scale is None):
            raise ConfigError("mean, scale: expected both or neither, got one")
        for name in ("mean", "scale") if self.mean is not None else ():
            given, positive = getattr(self, name), name == "scale"
            x = check_vector(name, given, sizes[0], positive=positive)
            setattr_(self, name, x)
        check_support(self.support, *sizes)

    def act(
        self,
        features: ArrayLike,
        legal: ArrayLike,
        *,
        seed: SupportsIndex | None = None,
        greedy: bool = False,
    ) -> Decision:
        """Draws one legal action; the same for the same arguments, everywhere.

        The first action whose cumulative probability exceeds
        `jerp.models.uniform.uniform(seed)`.

        Args:
          features: `[F]` numbers, in the order of `feature_names`; rounded to float32,
            as the log of an episode keeps them.
          legal: `[A]` bool.
          seed: 0 to 2**64 - 1; another one for every decision, such as a counter over
            all episodes. Not needed if `greedy`.
          greedy: take the most probable action, the first of equal ones.

        Raises:
          ShapeError: other lengths or types, a ragged list or a masked array.
          InputError: a feature that is not finite in float32, nothing legal, or a seed
            out of range.
        """
        x = check_features(features, self.feature_names, ndim=1)
        allowed = check_legal(legal, self.action_names, rows=())
        return self._decide(x[None], allowed[None], [seed], greedy)[0]

    def act_batch(
        self,
        features: ArrayLike,
        legal: ArrayLike,
        *,
        seeds: Iterable[SupportsIndex] | None = None,
        greedy: bool = False,
    ) -> list[Decision]:
        """`act` of `B` rows; each is what `act` gives for it, to the last bit.

        Args:
          features: `[B, F]` numbers.
          legal: `[B, A]` bool.
          seeds: `[B]` integers; not needed if `greedy`.
          greedy: as in `act`.

        Raises:
          ShapeError: other shapes or types.
          InputError: as in `act`; the row is named.
        """
        x = check_features(features, self.feature_names, ndim=2)
        allowed = check_legal(legal, self.action_names, rows=x.shape[:1])
        return self._decide(x, allowed, check_seeds(seeds, len(x)), greedy)

    def log_probs(self, features: ArrayLike, legal: ArrayLike) -> np.ndarray:
        """Log-probabilities of all actions; `jerp.models.controller.log_probs` here.

        Args:
          features: `[..., F]` numbers.
          legal: `[..., A]` bool.

        Returns:
          `[..., A]` float64. `exp` of an illegal action's is exactly 0.

        Raises:
          ShapeError: other shapes or types.
          InputError: a NaN or infinite feature, or a row in which nothing is legal.
        """
        x = check_features(features, self.feature_names)
        allowed = check_legal(legal, self.action_names, rows=x.shape[:-1])
        rows = self._logits(x.reshape(-1, x.shape[-1]))
        log_prob, _ = _log_softmax(rows, allowed.reshape(-1, allowed.shape[-1]))
        return log_prob.reshape(allowed.shape)

    def explain(
        self,
        features: ArrayLike,
        legal: ArrayLike | None = None,
        *,
        actions: Sequence[str] | None = None,
    ) -> Explanation:
        """Which features move the probabilities of actions, the strongest first.

            change_j = pi(a | x) - pi(a | x with x_j at its mean over the buffer)

        Exact for each feature alone; changes of several do not add up.

        Args:
          features: `[F]` numbers.
          legal: `[A]` bool; all actions if None.
          actions: names; "check" and "submit" where the layout has them, or else all.

        Raises:
          ConfigError: there are no support statistics.
          UnknownNameError: no action has that name.
          ShapeError, InputError: as in `act`, or `actions` are no different names.
        """
        if self.support is None:
            raise ConfigError(
                "explain: expected a controller with support statistics, got one "
                "without; `jerp train harness` measures them"
            )
        x = check_features(features, self.feature_names, ndim=1)
        legal = np.ones(len(self.action_names), bool) if legal is None else legal
        allowed = check_legal(legal, self.action_names, rows=())
        return explanation(
            lambda rows: np.exp(self.log_probs(rows, np.tile(allowed, (len(rows), 1)))),
            x,
            np.asarray(self.support.feature_mean, np.float32),
            feature_names=self.feature_names,
            action_names=self.action_names,
            actions=actions,
        )

    def _decide(
        self,
        x: np.ndarray,
        legal: np.ndarray,
        seeds: Sequence[SupportsIndex | None],
        greedy: bool,
    ) -> list[Decision]:
        check_greedy(greedy)
        log_prob, share = _log_softmax(self._logits(x), legal)
        if greedy:
            chosen = log_prob.argmax(axis=1).tolist()
            taken = [0.0] * len(chosen)
        else:
            draws = np.array([uniform(seed) for seed in seeds])
            # The last share is exactly 1, above every draw; an illegal action's is that
            # of the action before it, so it is never the first.
            chosen = (share > draws[:, None]).argmax(axis=1).tolist()
            taken = [log_prob[row, action] for row, action in enumerate(chosen)]
        names = self.action_names
        return [
            Decision(action, names[action], float(value))
            for action, value in zip(chosen, taken, strict=True)
        ]

    def _logits(self, x: np.ndarray) -> np.ndarray:
        """`[B, F]` float32 to `[B, A]` float64; each row as if it were alone."""
        starts = range(0, max(len(x), 1), ROWS_AT_ONCE)
        return np.concatenate([self._block(x[i : i + ROWS_AT_ONCE]) for i in starts])

    def _block(self, x: np.ndarray) -> np.ndarray:
        hidden, hidden_bias, output, output_bias = self._weights
        x = x.astype(np.float64)
        if self.mean is not None:
            x = (x - self.mean) / self.scale
        # Products and a sum, not a matrix product: a library may order that one's terms
        # by the number of rows and by the processor.
        hidden = np.sum(x[:, None] * hidden, axis=-1) + hidden_bias
        hidden = np.maximum(hidden, 0)
        return np.sum(hidden[:, None] * output, axis=-1) + output_bias


def _log_softmax(
    logits: np.ndarray, legal: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """`[B, A]` log-probabilities, and cumulative probabilities that end in 1."""
    shifted = np.where(legal, logits, -np.inf)
    shifted -= shifted.max(axis=1, keepdims=True)
    running = np.cumsum(np.exp(shifted), axis=1)
    total = running[:, -1:]
    return np.where(legal, shifted - np.log(total), ILLEGAL), running / total


def _transposed(
    params: Mapping[str, Mapping[str, np.ndarray]],
) -> tuple[np.ndarray, ...]:
    """Kernels with inputs last, where a sum runs over them, and biases, in float64."""
    return tuple(
        np.ascontiguousarray(params[layer][name].T, np.float64)
        for layer in ("hidden", "logits")
        for name in ("kernel", "bias")
    )
