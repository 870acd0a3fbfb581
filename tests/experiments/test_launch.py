"""Stable ids, shards, and errors that name what was meant."""

import pytest

from experiments.catalogue import EXPERIMENTS, select
from experiments.settings import shard
from experiments.sweep.records import written_config
from jerp.errors import ConfigError, UnknownNameError


def test_ids_are_stable():
    """Append only: an id that changes its meaning breaks every note that cites it."""
    commands = [s.config.command for s in EXPERIMENTS["harness_control"]]
    assert commands[:5] == [
        "jerp run harness",
        "jerp run harness --domain coding --seeds 8",
        "jerp run harness --domain research --seeds 8",
        "jerp run harness --seed 1",
        "jerp run harness --seed 2",
    ]


def test_every_setting_can_be_placed_small_and_written(tmp_path):
    for setting in (s for group in EXPERIMENTS.values() for s in group):
        placed = setting.placed(tmp_path, smoke=True)
        assert placed.config.folder == tmp_path / setting.id
        written = written_config(placed)
        assert written["smoke"] is True and written["full"] is False
        assert "out" not in written
        assert "--smoke" in placed.config.command.split()


def test_an_id_selects_one_and_a_name_all():
    assert [s.id for s in select("harness_control/1")] == ["harness_control/1"]
    assert select("harness_control") == EXPERIMENTS["harness_control"]


def test_hyphens_stand_for_underscores():
    assert select("gigpo-vs-grpo") == select("gigpo_vs_grpo")
    assert select("harness-control/1") == select("harness_control/1")


def test_unknown_id_is_answered_with_the_nearest():
    with pytest.raises(UnknownNameError, match="did you mean 'harness_control"):
        select("harnes_control/1")


def test_shards_part_the_settings():
    settings = select("harness_control")
    parts = [shard(settings, f"{i}/3") for i in range(3)]
    assert sorted(s.id for part in parts for s in part) == sorted(
        s.id for s in settings
    )


@pytest.mark.parametrize("part", ["3/3", "-1/2", "a/b", "1", "0/0"])
def test_bad_shard_is_refused(part):
    with pytest.raises(ConfigError, match="shard"):
        shard(select("harness_control"), part)
