"""Settings of a joint run: what is refused, and what follows from them."""

import pytest

from experiments.joint_rules.config import ARMS, SIZES, JerpConfig, Sizes
from experiments.joint_rules.jobs import Work, jobs_of
from jerp.errors import ConfigError, UnknownNameError


@pytest.mark.parametrize(
    ("settings", "error", "word"),
    [
        ({"seeds": 0}, ConfigError, "seeds: expected at least 1, got 0"),
        ({"seeds": -2}, ConfigError, "seeds: expected at least 1, got -2"),
        ({"workers": -1}, ConfigError, "workers: expected at least 1"),
        ({"seed": -1}, ConfigError, "seed"),
        ({"by": "kind"}, UnknownNameError, "unknown by 'kind'"),
        ({"smoke": True, "full": True}, ConfigError, "exclude each other"),
        ({"rules": "r.json", "by": "instance"}, ConfigError, "rules: expected none"),
        ({"policy": "nonsense"}, UnknownNameError, "unknown policy 'nonsense'"),
        ({"policy": "./nothere"}, ConfigError, "policy: ./nothere: no such file or fo"),
        (
            {"policy": "no/where"},
            ConfigError,
            "no/where: no such file or folder; check",
        ),
    ],
)
def test_bad_settings_name_themselves(settings, error, word):
    with pytest.raises(error, match=word):
        JerpConfig(**settings)


def test_numbers_of_seeds_and_folders():
    assert JerpConfig().num_seeds == 3 and JerpConfig(full=True).num_seeds == 5
    assert JerpConfig(smoke=True, seeds=4).num_seeds == 4
    assert JerpConfig(smoke=True).num_seeds == 1
    assert JerpConfig(seeds=4).num_seeds == 4
    assert JerpConfig(by="instance").folder.name == "jerp-instance"
    assert JerpConfig(smoke=True).folder.name == "jerp-smoke"
    assert JerpConfig(seed=2, full=True).command == "jerp run jerp --seed 2 --full"
    assert set(SIZES["full"].arms) == set(ARMS)


def test_looks_along_the_way_divide_the_iterations():
    with pytest.raises(ConfigError, match="every: expected a divisor of 200"):
        Sizes(iterations=200, every=30)


def test_jobs_of_an_arm_are_neighbours():
    work = Work(SIZES["full"], seed=0, num_seeds=2)
    base = jobs_of("base", work)
    assert [job.world for job in base] == ["house"] * 2 + ["shop"] * 2
    first = jobs_of("arms", work)[:3]
    names = [(job.arm, job.seed) for job in first]
    assert names == [("rules-only", 0), ("rules-only", 1), ("rloo", 0)]
