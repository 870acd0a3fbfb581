import numpy as np

from jerp.models.uniform import uniform


def test_uniform_is_the_published_generator_from_its_first_draw():
    """Outputs of SplitMix64 for the seeds 0 and 1234567, as its reference code has."""
    assert uniform(0) == (0xE220A8397B1DCDAF >> 11) / 2**53
    assert uniform(np.int64(1234567)) == (6457827717110365317 >> 11) / 2**53


def test_consecutive_seeds_are_even_and_unrelated():
    draws = np.array([uniform(seed) for seed in range(20_000)])
    counts = np.histogram(draws, 20, (0, 1))[0]
    assert ((counts - 1000) ** 2 / 1000).sum() < 43.8  # 99.9% at 19 degrees
    assert abs(np.corrcoef(draws[:-1], draws[1:])[0, 1]) < 0.03
    assert uniform((1 << 64) - 1) != uniform(0)
