"""pass@k and pass^k on the host: against rational numbers, for up to a million samples.

What both precisions share is in `test_passk.py`.
"""

from fractions import Fraction

import jax
import numpy as np
import pytest

from jerp.estimators.passk_float64 import pass_at_k_float64, pass_hat_k_float64
from tests.reference import passk as reference


def test_float64_is_as_accurate_as_measured():
    """Worst relative error as measured: pass@k 2e-16, pass^k 8e-14 (of 1e-302)."""
    worst = {pass_at_k_float64: 0.0, pass_hat_k_float64: 0.0}
    for n in (7, 64, 1000, 10**4, 10**6):
        few = [m for m in (1, 2, 5, 40, 300, 1000) if m <= n]
        many = [m for m in (1, n // 3, n // 2, n - 1, n) if m >= 1]
        pairs = [(a, b) for a in few for b in many]
        for excluded, k in pairs + [pair[::-1] for pair in pairs]:
            none = reference.avoidance(n, excluded, k)
            for function, truth, c in (
                (pass_at_k_float64, 1 - none, excluded),
                (pass_hat_k_float64, none, n - excluded),
            ):
                found = Fraction(float(function(n, c, k=k)))
                if truth == 0:
                    assert found == 0
                elif truth > Fraction(1, 10**300):
                    error = abs(float((found - truth) / truth))
                    worst[function] = max(worst[function], error)
    assert worst[pass_at_k_float64] < 3e-16
    assert worst[pass_hat_k_float64] < 1e-13


def test_a_million_samples_by_hand():
    """c / n; and one failure is met by k of n draws with probability k / n."""
    n = 10**6
    found = pass_at_k_float64(n, [1, n - 1], k=(1, n // 4))
    np.testing.assert_allclose(found, [[1e-6, 0.25], [1 - 1e-6, 1]], rtol=1e-15)
    found = pass_hat_k_float64(n, [1, n - 1], k=(1, n // 4))
    np.testing.assert_allclose(found, [[1e-6, 0], [1 - 1e-6, 0.75]], rtol=1e-13)


def test_what_float64_cannot_hold_is_zero():
    """1 / C(2000, 1000) is about 1e-601."""
    assert pass_hat_k_float64(2000, 1000, k=1000) == 0
    assert pass_at_k_float64(2000, 1000, k=1000) == 1


def test_nothing_is_traced():
    with pytest.raises(jax.errors.TracerArrayConversionError):
        jax.jit(lambda n: pass_at_k_float64(n, 1, k=1))(4)
