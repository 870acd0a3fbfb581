import pytest

from experiments.bench.replay import Replay, measure
from jerp.errors import ConfigError


def test_the_replayed_episodes_are_the_live_ones(caplog):
    speed = measure(Replay(episodes=13, tasks=4, batch=8))
    assert speed.equal and speed.episodes == 13
    assert speed.steps >= 2 * 13
    assert min(speed.live, speed.load, speed.replay) > 0
    assert "infrastructure" not in caplog.text


@pytest.mark.parametrize("name", ["episodes", "tasks", "batch"])
def test_sizes_below_one_are_refused(name):
    with pytest.raises(ConfigError, match=f"{name}=0"):
        Replay(**{name: 0})
