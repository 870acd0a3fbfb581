"""Trajectory folders of a layout that is not jerp's own, for the tests of training."""

import numpy as np

from jerp.storage.tensors import load_tree, save_tree
from jerp.storage.trajectories import TrajectoryFolder, TrajectoryMeta
from tests.training.episodes import random_trajectory

FEATURES = ("doubt", "cost", "drafts", "age", "length")
ACTIONS = ("draft", "check", "revise", "submit")


def episodes(seed=0, **fields):
    """12 episodes of at most 4 steps, of 4 tasks; the last broke down."""
    data = random_trajectory(seed, batch=12, steps=4)
    outcome = np.where(np.arange(12) == 11, 4, data.outcome).astype(np.int32)
    return data.replace(**{"outcome": outcome, **fields})


def logged(path, data=None, **meta):
    """A folder of one shard."""
    settings = {
        "feature_names": FEATURES,
        "feature_version": 2,
        "action_names": ACTIONS,
        "task_keys": {str(i): f"task-{i}" for i in range(12)},
    }
    folder = TrajectoryFolder.create(path, TrajectoryMeta(**{**settings, **meta}))
    folder.write_shard("0000", episodes() if data is None else data)
    return path


def spoilt(path, field, index, value):
    """The folder with one entry changed as `write_shard` would never write it."""
    shard = path / "trajectories-0000.safetensors"
    tree, document = load_tree(shard)
    tree[field] = tree[field].copy()
    tree[field][index] = value
    save_tree(shard, tree, document)
    return path
