"""Trajectory folders of a layout that is not jerp's own, for the tests of training."""

import numpy as np

from jerp.storage.tensors import load_tree, save_tree
from jerp.storage.trajectories import TrajectoryFolder, TrajectoryMeta
from jerp.typing import Outcome
from tests.storage.episodes import episodes as plain_episodes

FEATURES = ("doubt", "cost", "drafts", "age", "length")
ACTIONS = ("draft", "check", "revise", "submit")


def episodes(seed=0, **fields):
    """12 episodes of at most 4 steps, of 4 tasks; even ones are cut, the last broke."""
    lengths = np.array([4, 1, 3, 2, 4, 2, 1, 3, 2, 4, 3, 1])
    base = plain_episodes(lengths, num_steps=4, num_actions=len(ACTIONS))
    row = np.arange(12, dtype=np.int32)
    is_cut = base.terminated & (row % 2 == 0)[:, None]
    legal = waves(seed + 1, 12, 4, len(ACTIONS)) > -0.5
    np.put_along_axis(legal, np.asarray(base.action)[..., None], True, -1)
    outcome = np.where(row % 2 == 0, Outcome.TRUNCATED, Outcome.SUCCESS)
    outcome[11] = Outcome.INFRASTRUCTURE
    made = {
        "observation": 2 * waves(seed + 2, 12, 4, len(FEATURES)),
        "final_observation": waves(seed + 3, 12, len(FEATURES)),
        "reward": waves(seed + 4, 12, 4) / 2,
        "terminated": base.terminated & ~is_cut,
        "truncated": is_cut,
        "task_id": row % 4,
        "group_id": row % 4,
        "outcome": outcome.astype(np.int32),
        "legal": legal,
    }
    return base.replace(**{**made, **fields})


def waves(seed, *shape):
    """Numbers between -1 and 1 that no generator has to keep."""
    index = np.arange(np.prod(shape), dtype=np.float32).reshape(shape)
    return np.sin(7 * index + seed).astype(np.float32)


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
