"""The benchmark of policies measures every way in every round."""

import pytest

from experiments.bench.policy import PolicyBench, measure
from jerp.errors import ConfigError


@pytest.mark.slow
def test_every_way_is_measured_in_every_round():
    seconds = measure(PolicyBench(groups=2, size=2, rounds=2))
    assert {name: len(found) for name, found in seconds.items()} == {
        "play": 2,
        "learn": 2,
        "both": 2,
    }
    assert min(map(min, seconds.values())) > 0


@pytest.mark.parametrize("name", ["groups", "size", "rounds"])
def test_impossible_settings_are_refused(name):
    with pytest.raises(ConfigError, match=f"{name}: expected >= 1, got 0"):
        PolicyBench(**{name: 0})
