"""Bands that compile nothing, for tests of what stands beside them."""

import numpy as np
import pytest

from jerp.records import Interval
from jerp.runs.pass_surface import comparison, one_agent


@pytest.fixture
def without_bands(monkeypatch):
    """Every band is its point."""

    def band(key, values, *, mask, **_):
        shape = values.shape[1:]
        mean = values[mask].mean(0) if mask.any() else np.full(shape, np.nan)
        return Interval(point=mean, low=mean, high=mean)

    for module in (one_agent, comparison):
        monkeypatch.setattr(module, "simultaneous_band", band)
