"""What the settings of all experiments of jobs refuse, and what follows from them."""

from dataclasses import dataclass
from pathlib import Path

import pytest

from experiments.gigpo_vs_grpo.config import GigpoConfig
from experiments.jobs.config import ReaderConfig
from experiments.joint_rules.config import JerpConfig
from experiments.pass_surface.config import PassSurfaceConfig
from jerp.errors import ConfigError, UnknownNameError


@dataclass(frozen=True)
class Small(ReaderConfig):
    name = "small"
    options = ("shade", "seeds", "policy", "smoke", "full", "out")
    single = ("seeds", "shade")

    shade: str = "red"
    seeds: int | None = None
    workers: int = 2
    policy: str = "tiny"
    out: Path | None = None
    smoke: bool = False
    full: bool = False
    seed: int = 0


@pytest.mark.parametrize("make", [Small, GigpoConfig, JerpConfig, PassSurfaceConfig])
@pytest.mark.parametrize(
    ("changes", "word"),
    [
        ({"seeds": 0}, "seeds: expected at least 1, got 0"),
        ({"workers": -1}, "workers: expected at least 1, got -1"),
        ({"seed": -1}, "seed"),
        ({"smoke": True, "full": True}, "smoke and full exclude each other"),
    ],
)
def test_what_cannot_be_meant_is_refused_by_its_name(make, changes, word):
    with pytest.raises(ConfigError, match=word):
        make(**changes)


@pytest.mark.parametrize("make", [Small, GigpoConfig, JerpConfig])
def test_a_language_model_has_a_name_or_a_path_and_one_run(make, tmp_path):
    with pytest.raises(UnknownNameError, match="did you mean 'tiny'"):
        make(policy="Tiny")
    with pytest.raises(ConfigError, match="policy: no/where: no such file or folder"):
        make(policy="no/where")
    for policy in ("smollm2-135m", str(tmp_path)):
        assert make(policy=policy).reads
        with pytest.raises(ConfigError, match=r"seeds: expected none .+, got 3"):
            make(policy=policy, seeds=3)
    assert not make().reads


def test_an_experiment_says_what_else_its_language_model_has_one_of():
    with pytest.raises(ConfigError, match=r"shade: expected none .+, got blue"):
        Small(policy="smollm2-135m", shade="blue")
    assert Small(policy="smollm2-135m", workers=3).workers == 3
    assert Small(shade="blue").shade == "blue"


def test_folder_and_command_say_what_differs(tmp_path):
    assert str(Small().folder) == "jerp-runs/small"
    assert Small().command == "jerp run small"
    config = Small(policy="smollm2-135m", smoke=True, workers=3, seed=2)
    assert str(config.folder) == "jerp-runs/small-smollm2-135m-smoke"
    assert config.command == "jerp run small --policy smollm2-135m --smoke"
    assert str(Small(full=True).folder) == "jerp-runs/small-full"
    assert Small(out=tmp_path).folder == tmp_path
    arms = PassSurfaceConfig(arms=("ppo", "sft"), out=Path("there"))
    assert arms.command == "jerp run pass-surface --arms ppo sft --out there"


def test_seeds_are_as_many_as_befit_the_scale_or_were_asked_for():
    scales = ({}, {"smoke": True}, {"full": True})
    found = [Small(**scale) for scale in scales]
    assert [config.scale for config in found] == ["default", "smoke", "full"]
    assert [config.num_seeds for config in found] == [3, 1, 5]
    assert [Small(seeds=4, **scale).num_seeds for scale in scales] == [4, 4, 4]
