"""Small trajectories with every field known, for the tests of storage and viewer."""

import numpy as np

from jerp.trajectory import Trajectory
from jerp.typing import USAGE_KINDS, Outcome

FEATURES = ("progress", "has_draft")
ACTIONS = ("draft", "check", "submit")


def episodes(lengths=(3, 1), *, num_steps=3, num_actions=3, **fields) -> Trajectory:
    """Episodes of the given lengths; entry (b, t) of a field is a function of both."""
    batch = len(lengths)
    mask = np.arange(num_steps) < np.asarray(lengths)[:, None]
    step = np.arange(num_steps) + 10 * np.arange(batch)[:, None]
    last = np.arange(num_steps) == np.asarray(lengths)[:, None] - 1
    defaults = dict(
        observation=np.stack([step, -step], axis=-1).astype(np.float32) / 100,
        action=(step % num_actions).astype(np.int32),
        reward=np.where(last, 0.5, 0).astype(np.float32),
        terminated=last,
        truncated=np.zeros_like(mask),
        mask=mask,
        anchor=step.astype(np.int32),
        usage=np.ones((batch, num_steps, len(USAGE_KINDS)), np.float32),
        final_observation=np.zeros((batch, 2), np.float32),
        task_id=np.arange(batch, dtype=np.int32) % 2,
        group_id=np.arange(batch, dtype=np.int32) % 2,
        seed=np.arange(batch, dtype=np.int32),
        outcome=np.full(batch, Outcome.SUCCESS, np.int32),
        score=np.full(batch, 0.5, np.float32),
        version=np.zeros(batch, np.int32),
        legal=np.ones((batch, num_steps, num_actions), bool),
        log_prob=np.full((batch, num_steps), np.log(0.25), np.float32),
    )
    return Trajectory(**{**defaults, **fields})


def texts(lengths=(3, 1)) -> list[list[dict]]:
    """A step dict for each step of `episodes`."""
    return [
        [{"action": ACTIONS[t % 3], "completion": f"{b}.{t}"} for t in range(length)]
        for b, length in enumerate(lengths)
    ]
