"""Logs on a disk that refuses, and under Ctrl-C: an episode is there once or never."""

import numpy as np
import pytest

from jerp.errors import (
    ConfigError,
    StorageError,
)
from jerp.storage import episode_log, trajectories
from jerp.storage.episode_log import EpisodeLog
from jerp.storage.trajectories import TrajectoryFolder
from tests.storage.test_episode_log import LAYOUT, written


@pytest.fixture
def disk(monkeypatch):
    """Files whose next writing fails; with `late`, after the file is in its place."""
    failing: dict[str, bool] = {}

    def refusing(real):
        def write(path, *data):
            late = failing.pop(path.name, None)
            if late is not False:
                real(path, *data)
            if late is not None:
                raise StorageError("disk full")

        return write

    for module, name in (
        (episode_log, "write_json"),
        (trajectories, "write_bytes"),
        (trajectories, "save_tree"),
    ):
        monkeypatch.setattr(module, name, refusing(getattr(module, name)))
    return failing


@pytest.mark.parametrize("shard_size", [1, 2])
@pytest.mark.parametrize(
    "name",
    ["meta.json", "transcripts-00000000.jsonl", "trajectories-00000000.safetensors"],
)
def test_an_end_that_the_disk_refused_is_logged_once_when_repeated(
    tmp_path, disk, name, shard_size
):
    with EpisodeLog(tmp_path, **LAYOUT, shard_size=shard_size) as log:
        for score in np.arange(shard_size - 1) / 4:
            written(log.begin("a"), score)
        episode = log.begin("b")
        disk[name] = False
        with pytest.raises(StorageError, match="disk full"):
            written(episode, 0.5)
        episode.end(0.75)
        with pytest.raises(ConfigError, match="this episode is over"):
            episode.end(0.75)
    folder = TrajectoryFolder.open(tmp_path)
    assert folder.load().score.tolist() == [*np.arange(shard_size - 1) / 4, 0.75]
    assert "b" in folder.meta.task_keys.values()


def test_an_end_that_the_disk_refused_and_nobody_repeats_is_not_logged(tmp_path, disk):
    with EpisodeLog(tmp_path, **LAYOUT) as log:
        disk["trajectories-00000000.safetensors"] = False
        with pytest.raises(StorageError, match="disk full"):
            written(log.begin("a"), 0.25)
        written(log.begin("a"), 0.5)
    assert TrajectoryFolder.open(tmp_path).load().score.tolist() == [0.5]


def test_a_shard_that_is_whole_when_the_disk_complains_is_not_written_again(
    tmp_path, disk
):
    with EpisodeLog(tmp_path, **LAYOUT) as log:
        disk["trajectories-00000000.safetensors"] = True
        written(log.begin("a"), 0.25)
        written(log.begin("a"), 0.5)
        TrajectoryFolder.open(tmp_path).write_shard("00000002", log_of(tmp_path))
        with pytest.raises(StorageError, match="complete shards are not overwritten"):
            written(log.begin("a"), 0.75)
    assert log_of(tmp_path).score.tolist() == [0.25, 0.5, 0.25, 0.5]


def log_of(path):
    return TrajectoryFolder.open(path).load()


@pytest.fixture
def interrupt(monkeypatch):
    """Ctrl-C right after one method has done its work, once it is told which."""
    pending = []

    def interrupted(owner, name):
        real = getattr(owner, name)

        def method(*arguments):
            done = real(*arguments)
            if name in pending:
                pending.remove(name)
                raise KeyboardInterrupt
            return done

        monkeypatch.setattr(owner, name, method)

    interrupted(trajectories, "save_tree")
    interrupted(TrajectoryFolder, "write_shard")
    interrupted(EpisodeLog, "_write")
    interrupted(EpisodeLog, "_add")
    return pending.append


@pytest.mark.parametrize("shard_size", [1, 2])
@pytest.mark.parametrize("moment", ["save_tree", "write_shard", "_write", "_add"])
@pytest.mark.parametrize("is_repeated", [True, False])
def test_an_interrupt_after_the_shard_is_whole_jams_nothing(
    tmp_path, interrupt, moment, shard_size, is_repeated
):
    with EpisodeLog(tmp_path, **LAYOUT, shard_size=shard_size) as log:
        for score in np.arange(shard_size - 1) / 4:
            written(log.begin("a"), score)
        episode = log.begin("b")
        interrupt(moment)
        with pytest.raises(KeyboardInterrupt):
            written(episode, 0.5)
        if is_repeated:
            episode.end(0.5)
        written(log.begin("c"), 0.75)
    scores = [*np.arange(shard_size - 1) / 4, 0.5, 0.75]
    assert log_of(tmp_path).score.tolist() == scores
    assert all(not r.problem for r in TrajectoryFolder.open(tmp_path).check())
