"""Which estimators there are off-policy, and what each needs."""

from __future__ import annotations

from typing import Literal, get_args

from jerp.errors import ConfigError
from jerp.ops.checks import check_choice
from jerp.typing import ArrayLike

__all__ = ["METHODS", "MODELLED", "NON_NEGATIVE", "Limits", "LowerBound"]
__all__ += ["check_methods"]

LowerBound = Literal["bootstrap", "bernstein"]

Limits = Literal["studentized", "percentile", "bca"]
"""How an interval is read off the resamples: `jerp.estimators.studentized`, or as in
`jerp.bootstrap_interval`."""

METHODS = (
    "ordinary",
    "weighted",
    "per_decision",
    "weighted_per_decision",
    "fitted_q",
    "doubly_robust",
)
"""Estimators, in the order of tables."""

MODELLED = ("fitted_q", "doubly_robust")
NON_NEGATIVE = ("ordinary", "per_decision")
"""Means of terms that are at least 0 where rewards are, as Bernstein's bound needs."""


def check_methods(
    methods: tuple[str, ...],
    features: ArrayLike | None,
    lower_bound: str,
    interval: str,
) -> None:
    """Raises unless every method is known and has what it needs.

    Args:
      methods: of `METHODS`.
      features: None where there are none.
      lower_bound: of `LowerBound`.
      interval: of `Limits`.

    Example:
      >>> check_methods(("ordinary",), None, "bernstein", "bca")
    """
    if not methods:
        raise ConfigError("methods: expected at least one, got none")
    for name in methods:
        check_choice("method", name, METHODS)
    check_choice("lower_bound", lower_bound, get_args(LowerBound))
    check_choice("interval", interval, get_args(Limits))
    modelled = sorted({*methods} & {*MODELLED})
    if features is None and modelled:
        raise ConfigError(
            f"features: expected them for {modelled[0]!r}, got None; leave it out of "
            "methods"
        )
    without = sorted({*methods} - {*NON_NEGATIVE})
    if lower_bound == "bernstein" and without:
        raise ConfigError(
            "lower_bound: expected 'bootstrap' for what is no mean of terms of at "
            f"least 0, such as {without[0]!r}; use it, or methods={NON_NEGATIVE}"
        )
