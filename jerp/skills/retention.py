"""Which skills are worth revising: those that both succeeded and failed.

Symbols: `N` skills, each executed `n` times. The verifier's outcomes alone decide; form
and length of a draft play no part. Every run that someone answered is a success or a
failure; one that nobody answered (`Outcome.INFRASTRUCTURE`) is neither. Under jit, what
is no outcome is neither as well.
"""

from __future__ import annotations

from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from jerp.ops.checks import check_axes, check_settings, check_values
from jerp.typing import Array, ArrayLike, Outcome

__all__ = ["EvidencePair", "evidence_pair", "retained"]

FAILURES = (Outcome.FAILURE, Outcome.TRUNCATED, Outcome.MALFORMED)


class EvidencePair(NamedTuple):
    """One run of each kind; -1 where a skill has none.

    Attributes:
      success: `[N]` int32, index of the first run that succeeded.
      failure: `[N]` int32, of the first that failed.
    """

    success: Array
    failure: Array


def retained(outcome: ArrayLike, *, least: ArrayLike = 1) -> Array:
    """Whether a skill has runs of both kinds, so that they can be told apart.

        kept_k = [#{i : y_ki succeeded} >= least] [#{i : y_ki failed} >= least]

    With two runs that is exactly one success of two, the paper's rule.

    Args:
      outcome: `[N, n]` int32, see `Outcome`. Truncated and malformed runs failed;
        those of infrastructure count for nothing.
      least: >= 1, runs of each kind that are asked for.

    Returns:
      `[N]` bool; False where `least`, under jit, is below 1.

    Raises:
      InputError: an outcome, or `least`, that is seen to be out of range. `ShapeError`,
        one of them: other axes or types.

    Deviations: the paper has two runs a skill, this any number.

    Reference: Peng et al., "WER", arXiv:2608.17587, retention.

    Example:
      >>> retained(jnp.array([[1, 0], [1, 1], [0, 0], [1, 4]])).tolist()
      [True, False, False, False]
    """
    outcome = checked_outcome(outcome)
    poison = check_settings(least=(least, lambda v: v >= 1, ">= 1"))
    return _retained(outcome, jnp.asarray(least, jnp.float32) + poison)


def evidence_pair(outcome: ArrayLike) -> EvidencePair:
    """The first success and the first failure among the runs of each skill.

        success_k = min {i : y_ki succeeded},  failure_k = min {i : y_ki failed}

    Runs of one skill are alike in distribution, so that the first is as good as any,
    and does not move when more runs are added.

    Args:
      outcome: `[N, n]` int32, see `retained`.

    Returns:
      `EvidencePair`; -1 for none.

    Raises:
      InputError, ShapeError: see `retained`.

    Reference: Peng et al., "WER", arXiv:2608.17587, assembly: of two runs, where
      there is no choice.

    Example:
      >>> pair = evidence_pair(jnp.array([[4, 0, 1], [1, 1, 1]]))
      >>> pair.success.tolist(), pair.failure.tolist()
      ([2, 0], [1, -1])
    """
    return _evidence_pair(checked_outcome(outcome))


def checked_outcome(outcome: ArrayLike, mask: ArrayLike | None = None) -> Array:
    """Outcomes `[N, n]`, refused where a row of the mask `[N]` holds what is none."""
    check_axes(outcome=(outcome, "N M", int))
    rows = None
    if mask is not None:
        rows = jnp.broadcast_to(jnp.asarray(mask)[:, None], np.shape(outcome))
    known = f"one of {', '.join(f'{o.name} {o:d}' for o in Outcome)}"
    check_values(
        "outcome", outcome, lambda v: (v >= 0) & (v < len(Outcome)), known, mask=rows
    )
    return jnp.asarray(outcome)


def failed(outcome: Array) -> Array:
    """Whether a run was answered, and not by a success."""
    found = jnp.zeros(outcome.shape, bool)
    for kind in FAILURES:
        found = found | (outcome == kind)
    return found


@jax.jit
def _retained(outcome: Array, least: Array) -> Array:
    successes = jnp.sum(outcome == Outcome.SUCCESS, axis=1)
    failures = jnp.sum(failed(outcome), axis=1)
    return jnp.minimum(successes, failures).astype(jnp.float32) >= least


@jax.jit
def _evidence_pair(outcome: Array) -> EvidencePair:
    return EvidencePair(_first(outcome == Outcome.SUCCESS), _first(failed(outcome)))


def _first(found: Array) -> Array:
    """Index of the first True of each row, -1 without one."""
    index = jnp.arange(found.shape[1], dtype=jnp.int32)
    none = jnp.int32(found.shape[1])
    first = jnp.min(jnp.where(found, index[None], none), axis=1, initial=none)
    return jnp.where(first < none, first, -1)
