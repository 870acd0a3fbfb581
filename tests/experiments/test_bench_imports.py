import pytest

from experiments.bench.imports import Imports, measure
from jerp.errors import ConfigError


def test_measures_every_part_in_every_round():
    found = measure(Imports(rounds=1), parts=["jerp"])
    ((jax, added),) = found["jerp"]
    # No bound on the figures: a test times nothing. Both imports did happen.
    assert jax > 0 and added > 0


def test_rounds_are_checked():
    with pytest.raises(ConfigError, match="rounds: expected at least 1, got 0"):
        Imports(rounds=0)
