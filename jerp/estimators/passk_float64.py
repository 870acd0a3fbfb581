"""pass@k and pass^k of tasks from counts, on the host, in float64, for any n.

The equations of `jerp.estimators.passk`, for counts in the millions, for values that
float32 cannot hold and as a check of it. Relative errors stay below 1e-12. Nothing here
can be traced; each distinct pair of counts is computed once.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from jerp.estimators.passk import budgets, check_counts
from jerp.typing import ArrayLike

__all__ = ["pass_at_k_float64", "pass_hat_k_float64"]


def pass_at_k_float64(
    num_samples: ArrayLike, num_correct: ArrayLike, *, k: int | Sequence[int]
) -> NDArray[np.float64]:
    """Probability that at least one of k samples is correct, in float64.

        pass@k = 1 - C(n - c, k) / C(n, k) = 1 - prod_{i<m} (1 - M / (n - i)),
        m = min(c, k), M = max(c, k)

    as -expm1 of a sum of logarithms, so that small values are accurate too.

    Args:
      num_samples: `[...]` whole numbers, n. The counts broadcast against each other.
      num_correct: `[...]` whole numbers in [0, n], c.
      k: one budget, or several.

    Returns:
      `[...]` float64 for one k, `[..., K]` for several; NaN where n < k.

    Raises:
      InputError: see `jerp.estimators.passk.pass_at_k`.

    Deviations: see `jerp.estimators.passk.pass_at_k`.

    Reference: Chen et al., arXiv:2107.03374, eq. 1.

    Example:
      >>> print(f"{pass_at_k_float64(1_000_000, 1, k=1):.15e}")
      1.000000000000000e-06
    """
    none = _log_none(num_samples, num_correct, k, failures=True)
    return 0 - np.expm1(none)  # never -0.0


def pass_hat_k_float64(
    num_samples: ArrayLike, num_correct: ArrayLike, *, k: int | Sequence[int]
) -> NDArray[np.float64]:
    """Probability that all of k samples are correct, in float64.

        pass^k = C(c, k) / C(n, k) = prod_{i<m} (1 - M / (n - i)),
        m = min(n - c, k), M = max(n - c, k)

    as exp of a sum of logarithms: 0 only where c < k, or below 1e-308.

    Args:
      num_samples: `[...]` whole numbers, n. The counts broadcast against each other.
      num_correct: `[...]` whole numbers in [0, n], c.
      k: one budget, or several.

    Returns:
      `[...]` float64 for one k, `[..., K]` for several; NaN where n < k.

    Raises:
      InputError: see `jerp.estimators.passk.pass_at_k`.

    Deviations: see `jerp.estimators.passk.pass_hat_k`.

    Reference: Yao et al., "tau-bench", arXiv:2406.12045, section 3.

    Example:
      >>> print(f"{pass_hat_k_float64(1_000_000, 500_000, k=1000):.6e}")
      5.660531e-302
    """
    return np.exp(_log_none(num_samples, num_correct, k, failures=False))


def _log_none(
    num_samples: ArrayLike,
    num_correct: ArrayLike,
    k: int | Sequence[int],
    *,
    failures: bool,
) -> NDArray[np.float64]:
    """Log-probability that k samples are all failures, or else all correct."""
    check_counts(num_samples, num_correct)
    ks = budgets(k)
    samples, correct = np.broadcast_arrays(num_samples, num_correct)
    excluded = correct if failures else samples - correct
    pairs, inverse = np.unique(
        np.stack([samples.ravel(), excluded.ravel()]), axis=1, return_inverse=True
    )
    table = [[_log_avoided(int(n), int(x), each) for each in ks] for n, x in pairs.T]
    found = np.array(table, np.float64).reshape(-1, len(ks))[inverse.ravel()]
    found = found.reshape(*samples.shape, len(ks))
    return found if isinstance(k, Sequence) else found[..., 0]


def _log_avoided(num_samples: int, num_excluded: int, k: int) -> float:
    """Log-probability that k draws without replacement meet nothing of the excluded.

    Draws and excluded samples play the same part: the shorter product is taken.
    """
    if k > num_samples:
        return np.nan
    if num_excluded + k > num_samples:
        return -np.inf
    few, many = min(num_excluded, k), max(num_excluded, k)
    left = num_samples - np.arange(few, dtype=np.float64)
    share = many / left
    # Each form where it is accurate: log1p for small shares, log for small remainders.
    term = np.where(
        share < 0.5, np.log1p(-np.minimum(share, 0.5)), np.log((left - many) / left)
    )
    return float(np.sum(term))
