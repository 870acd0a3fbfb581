import shutil

import numpy as np
import pytest

from jerp.errors import ConfigError, InputError, StorageError, TrajectoryError
from jerp.runs.train_harness.buffer import read_buffer
from jerp.storage.trajectories import TrajectoryFolder, TrajectoryMeta
from jerp.trajectory import pad_steps
from tests.runs.train_harness.logs import ACTIONS, FEATURES, episodes, logged, spoilt


def test_tasks_of_one_key_are_one_task_in_all_folders(tmp_path):
    one = logged(tmp_path / "one")
    keys = {"0": "task-3", "1": "task-0", "2": "new", "3": "task-2"}
    two = logged(tmp_path / "two", pad_steps(episodes(1), 6), task_keys=keys)
    buffer = read_buffer([one, two])
    assert buffer.data.mask.shape == (24, 6)
    ids = buffer.data.task_id
    assert ids[:4].tolist() == [0, 1, 2, 3]
    assert ids[12:16].tolist() == [3, 0, 4, 2]
    assert [(s.episodes, s.tasks) for s in buffer.sources] == [(12, 4), (12, 4)]
    assert buffer.sources[0].fingerprint != buffer.sources[1].fingerprint


def test_tasks_without_keys_are_known_in_their_own_folder_alone(tmp_path):
    folders = [
        logged(tmp_path / name, episodes(seed), task_keys={})
        for seed, name in enumerate("ab")
    ]
    assert len(np.unique(read_buffer(folders).data.task_id)) == 8


def test_the_fingerprint_is_of_the_episodes_and_not_of_their_shards(tmp_path):
    whole = logged(tmp_path / "whole")
    data = TrajectoryFolder.open(whole).load()
    meta = TrajectoryFolder.open(whole).meta
    split = TrajectoryFolder.create(tmp_path / "split", meta)
    for name, rows in (("0", slice(0, 5)), ("1", slice(5, 12))):
        part = {k: v[rows] for k, v in vars(data).items() if v is not None}
        split.write_shard(name, data.replace(**part))
    prints = [read_buffer([f]).sources[0].fingerprint for f in (whole, split.folder)]
    assert prints[0] == prints[1]


def test_episodes_that_are_named_twice_would_count_twice(tmp_path):
    folder = logged(tmp_path / "log")
    other = logged(tmp_path / "other", episodes(1))
    copy = tmp_path / "copy"
    shutil.copytree(folder, copy)
    link = tmp_path / "link"
    link.symlink_to(folder)
    for again in (folder, copy, link):
        message = f"{folder} and {again}: expected .* the same 12 episodes"
        with pytest.raises(ConfigError, match=message):
            read_buffer([folder, other, again])


def test_foreign_logs_lack_legal_actions_and_probabilities(tmp_path):
    one = logged(tmp_path / "one", episodes(legal=None, log_prob=None))
    buffer = read_buffer([one, logged(tmp_path / "two")])
    legal = np.asarray(buffer.data.legal)
    assert legal.shape == (24, 4, len(ACTIONS)) and legal[:12].all()
    assert not legal[12:].all()
    assert buffer.data.log_prob is None
    assert [source.legal for source in buffer.sources] == [False, True]
    action = np.asarray(episodes().action).copy()
    action[3, 0] = 4
    bad = logged(tmp_path / "bad", episodes(legal=None, action=action))
    with pytest.raises(TrajectoryError, match="illegal at row 3, step 0"):
        read_buffer([bad])


@pytest.mark.parametrize(
    ("meta", "message"),
    [
        ({"feature_names": (*FEATURES[:4], "size")}, r'feature_names\[4\]: "length"'),
        ({"feature_version": 3}, "feature_version: 2 there, 3 here"),
        ({"action_names": ACTIONS[::-1]}, r'action_names\[0\]: "draft" there'),
        ({"feature_names": ()}, "feature_names: expected names in meta.json"),
        ({"action_names": ()}, "action_names: expected names in meta.json"),
    ],
)
def test_folders_of_other_layouts_are_refused_by_field(tmp_path, meta, message):
    one, two = logged(tmp_path / "one"), logged(tmp_path / "two", **meta)
    with pytest.raises(ConfigError, match=message):
        read_buffer([one, two])


@pytest.mark.parametrize(
    ("field", "index", "value", "message"),
    [
        ("observation", (2, 0, 3), np.nan, "row 2, step 0, 'age', in .*ries-0000"),
        ("action", (1, 0), 9, "illegal at row 1, step 0, in .*trajectories-0000"),
    ],
)
def test_what_was_logged_wrong_is_named(tmp_path, field, index, value, message):
    path = spoilt(logged(tmp_path / "one"), field, index, value)
    with pytest.raises(TrajectoryError, match=message):
        read_buffer([path])


def test_an_end_that_learning_bootstraps_from_must_be_finite(tmp_path):
    final = np.asarray(episodes().final_observation).copy()
    final[1], final[11] = np.nan, np.nan  # one ended naturally, one broke down
    read_buffer([logged(tmp_path / "one", episodes(final_observation=final))])
    final[2, 1] = np.inf
    path = logged(tmp_path / "two", episodes(final_observation=final))
    with pytest.raises(InputError, match="got inf for 'cost' in row 2"):
        read_buffer([path])


def test_nothing_to_learn_from_is_refused(tmp_path):
    broken = episodes(outcome=np.full(12, 4, np.int32))
    with pytest.raises(InputError, match="got 12 episodes without a valid one"):
        read_buffer([logged(tmp_path / "one", broken)])
    empty = TrajectoryFolder.create(
        tmp_path / "two", TrajectoryMeta(FEATURES, 2, ACTIONS)
    )
    with pytest.raises(StorageError, match="no episodes have been written here yet"):
        read_buffer([empty.folder])
    with pytest.raises(StorageError, match="not a trajectory folder"):
        read_buffer([tmp_path / "three"])
