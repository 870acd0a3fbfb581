"""Rows of steps for the benchmark of GiGPO, and the released code that takes them.

A row is one step: names of its task and episode, the text of its state, its reward.
"""

from __future__ import annotations

import contextlib
import importlib
import importlib.util
import io
import sys
import types
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import jax
import numpy as np

from jerp.errors import InputError, MissingExtraError

__all__ = ["DISCOUNT", "ROWS_A_TASK", "Peer", "Rows", "make_rows"]

EPISODES, STEPS = 8, 50
"""Of the released scripts, whose 16 tasks make 6,400 rows."""
ROWS_A_TASK = EPISODES * STEPS
ROOMS = 30
DISCOUNT = 0.95


@dataclass(frozen=True)
class Rows:
    """N rows in the order of the batch; `score` is the return of the row's episode."""

    task: list[str]
    episode: list[str]
    anchor: list[str]
    reward: np.ndarray
    score: np.ndarray


def make_rows(number: int, seed: int, spread: int) -> Rows:
    """Tasks of 8 episodes of 50 +- `spread` steps in 30 rooms; 10 or 0 at their end.

    All tasks call their rooms alike. Every text is a new object: no hash is known yet.
    """
    count = number // STEPS
    offset = np.arange(count // 2) * 7 % (spread + 1)
    length = STEPS + np.stack([offset, -offset], 1).ravel()
    key, other = jax.random.split(jax.random.key(seed))
    room = np.array(jax.random.randint(key, (number,), 0, ROOMS))
    won = np.asarray(jax.random.bernoulli(other, 0.5, (count,)))
    last, episode = np.cumsum(length) - 1, np.repeat(np.arange(count), length)
    room[last - length + 1] = 0
    reward = np.zeros(number, np.float32)
    reward[last] = 10 * won
    return Rows(
        task=[f"task-{e // EPISODES:06d}" for e in episode.tolist()],
        episode=[f"episode-{e:08d}" for e in episode.tolist()],
        anchor=[
            f"You arrive at room {r}. On the desk {r}, you see a lamp {r % 7}, a book "
            f"{r % 3} and a key. The cabinet {r % 5} is closed. What do you do?"
            for r in room.tolist()
        ],
        reward=reward,
        score=np.repeat(10 * won, length).astype(np.float32),
    )


class Peer:
    """`gigpo/core_gigpo.py` of a checkout of verl-agent, unchanged."""

    def __init__(self, checkout: Path):
        source = checkout / "gigpo" / "core_gigpo.py"
        if not source.is_file():
            raise InputError(f"peer: expected a checkout of verl-agent, no {source}")
        if importlib.util.find_spec("torch") is None:
            raise MissingExtraError("torch", "parity")
        self._torch: Any = importlib.import_module("torch")
        if importlib.util.find_spec("verl") is None:
            # The file names one class of it in annotations; the real one is a trainer.
            stub: Any = types.ModuleType("verl")
            stub.DataProto = object
            sys.modules["verl"] = stub
        spec: Any = importlib.util.spec_from_file_location("core_gigpo", source)
        self._code: Any = importlib.util.module_from_spec(spec)
        spec.loader.exec_module(self._code)

    def batch(self, rows: Rows) -> Any:
        """The rows as the code takes them, with one response token each."""
        text = {"uid": rows.task, "traj_uid": rows.episode, "anchor_obs": rows.anchor}
        return types.SimpleNamespace(
            non_tensor_batch={k: np.array(v, object) for k, v in text.items()}
            | {"rewards": rows.reward, "active_masks": np.ones(len(rows.task))},
            batch={
                "input_ids": self._torch.zeros(len(rows.task), 1),
                "score": self._torch.tensor(rows.score)[:, None],
            },
        )

    def returns(self, batch: Any) -> Any:
        """Discounted returns of the steps."""
        return self._code.compute_step_discounted_returns(batch, DISCOUNT)

    def advantages(
        self, batch: Any, returns: Any, *, mode: str = "mean_std_norm"
    ) -> np.ndarray:
        """`[N]` advantages from given returns."""
        with contextlib.redirect_stdout(io.StringIO()):
            total, _ = self._code.compute_gigpo_outcome_advantage(
                token_level_rewards=batch.batch["score"],
                step_rewards=returns,
                response_mask=self._torch.ones_like(batch.batch["score"]),
                anchor_obs=batch.non_tensor_batch["anchor_obs"],
                index=batch.non_tensor_batch["uid"],
                traj_index=batch.non_tensor_batch["traj_uid"],
                mode=mode,
            )
        return total[:, 0].numpy()
