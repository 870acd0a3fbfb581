"""What single precision would hide: the estimators compare `spent <= T` in float32.

Numbers that agree in 12 digits count as the same, because sums such as 0.1 + 0.2 differ
from 0.3 in no digit that anybody wrote. All other numbers must compare in float32 as
they do in the file.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from jerp.errors import ConfigError, InputError
from jerp.readers.outcomes import OutcomeTable
from jerp.runs.pass_surface.settings import PassktSettings, number_text

__all__ = ["as_written", "check_float32"]

_ADVICE = (
    "jerp computes with about 7 digits, in which these are the same; write spent and "
    "horizons in a larger unit, rounded to what matters"
)


def as_written(values: np.ndarray) -> np.ndarray:
    """The values, rounded to the digits in which they are told apart, float64."""
    found, place = np.unique(values, return_inverse=True)
    return np.array([float(number_text(v)) for v in found.tolist()])[place]


def check_float32(
    settings: PassktSettings, tables: Sequence[OutcomeTable], horizons: Sequence[float]
) -> None:
    """Refuses numbers that float32 would compare otherwise than they are written.

    Raises:
      ConfigError: two of `--horizons` are one in float32.
      InputError: two horizons of the files are, or a run's `spent` would move to the
        other side of a horizon.
    """
    single = np.array(horizons, np.float32)
    if (merged := np.flatnonzero(single[1:] == single[:-1])).size:
        pair = horizons[merged[0]], horizons[merged[0] + 1]
        text = " and ".join(f"{value:.17g}" for value in pair)
        if settings.chosen_horizons is not None:
            raise ConfigError(
                f"--horizons: expected budgets apart, got {text}: {_ADVICE}"
            )
        names = ", ".join(map(str, settings.files))
        raise InputError(f"{names}: expected horizons apart, got {text}: {_ADVICE}")
    for table in tables:
        _check_spent(table, horizons)


def _check_spent(table: OutcomeTable, horizons: Sequence[float]) -> None:
    """Every `spent` must be on the same side of its horizons in either precision."""
    known = ~np.isnan(table.spent)
    if table.horizon is not None:
        # A rerun meets no horizon but its own.
        _check_sides(table, table.spent[known], table.horizon[known])
        return
    spent = np.unique(table.spent[known])
    for horizon in horizons:
        _check_sides(table, spent, np.full_like(spent, horizon))


def _check_sides(table: OutcomeTable, spent: np.ndarray, horizon: np.ndarray) -> None:
    within = as_written(spent) <= as_written(horizon)
    moved = within != (spent.astype(np.float32) <= horizon.astype(np.float32))
    if moved.any():
        first = int(moved.argmax())
        raise InputError(
            f"{table.path}: spent {number_text(spent[first])} cannot be told from the "
            f"horizon {number_text(horizon[first])}: {_ADVICE}"
        )
