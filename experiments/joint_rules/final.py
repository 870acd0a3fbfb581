"""What a base and an arm come to in the end: success by split, and each rule's part."""

from __future__ import annotations

from functools import partial
from typing import Any

import jax
import numpy as np

from experiments.joint_rules.base import all_rules
from experiments.joint_rules.config import By, Sizes
from experiments.joint_rules.evaluation import Held, draw_held, played
from experiments.joint_rules.oracle import oracle_moves, right_moves, wrong_moves
from experiments.joint_rules.places import NUM_RULES, Place
from experiments.joint_rules.removal import removals
from experiments.joint_rules.training import Stage
from jerp.storage.rule_leaks import leaks, task_digests
from jerp.typing import Key

__all__ = ["SPLITS", "evaluate_arm", "evaluate_base", "tried_on"]

SPLITS = ("seen", "unseen")

Found = dict[str, Any]

ORACLE, REMOVE = 99, 98
"""Streams of random keys; those below belong to splits."""


def tried_on(
    key: Key, place: Place, sizes: Sizes, *, trained: Any = None
) -> dict[str, Held]:
    """The tasks that decide, by split.

    Args:
      key: of a seed's evaluations, not consumed: all that is compared has the same.
      place: where.
      sizes: numbers of tasks.
      trained: the training tasks, where these are tried as well.
    """
    splits = {
        split: draw_held(jax.random.fold_in(key, number), place, sizes.held_out, split)
        for number, split in enumerate(SPLITS)
    }
    if trained is not None:
        playing = jax.random.fold_in(key, len(SPLITS))
        splits["train"] = Held(playing, trained, place.keys_of(trained))
    return splits


def evaluate_base(
    key: Key, place: Place, splits: dict[str, Held], params: Any, sizes: Sizes
) -> Found:
    """Success without rules, with right and with wrong ones, by split.

    And what the oracle does, which says which rules are right.

    Args:
      key: not consumed.
      place: where.
      splits: see `tried_on`.
      params: of the base.
      sizes: numbers of tasks and episodes.
    """
    stream = jax.random.fold_in(key, ORACLE)
    oracle = oracle_moves(stream, place, sizes.oracle_tasks)
    right = right_moves(oracle)
    found: Found = {"oracle": oracle._asdict()}
    for split, held in splits.items():
        play = partial(
            _outcomes, place, held, params, all_rules(place.rule_sizes), sizes
        )
        found[split] = {
            "kind": held.kinds,
            "task": held.numbers,
            "without": play(None),
            "right": play(_told(place, right, held)),
            "wrong": play(_told(place, wrong_moves(right), held)),
        }
    return found


def evaluate_arm(
    key: Key,
    place: Place,
    splits: dict[str, Held],
    stage: Stage,
    sizes: Sizes,
    by: By,
) -> Found:
    """Success with the arm's rules and without, by split; what each removal costs.

    Args:
      key: not consumed.
      place: where.
      splits: see `tried_on`.
      stage: where it stands.
      sizes: numbers of tasks and episodes.
      by: what has a pool of its own; that of an instance has rules for the training
        tasks alone.
    """
    found: Found = {}
    for split, held in splits.items():
        keys = held.kinds if by == "type" else None
        if split == "train":
            keys = np.arange(len(held.kinds), dtype=np.int32)
        working = stage.working_set(keys)
        play = partial(_outcomes, place, held, stage.params, stage.rules(place), sizes)
        found[split] = {
            "kind": held.kinds,
            "task": held.numbers,
            "with": play(working),
            "without": play(None),
            "leaked": np.asarray(_leaked(stage, held), np.int32),
        }
    if sizes.removal and by == "type":
        stream = jax.random.fold_in(key, REMOVE)
        found["removal"] = removals(stream, place, splits, stage, samples=sizes.samples)
    return found


def _leaked(stage: Stage, held: Held) -> int:
    """Rules that were learned from tasks that are evaluated."""
    if stage.trained is None:
        return 0
    return len(leaks(stage.trained.document, task_digests(held.tasks)))


def _outcomes(
    place: Place,
    held: Held,
    params: Any,
    rules: np.ndarray,
    sizes: Sizes,
    working_set: np.ndarray | None,
) -> dict[str, np.ndarray]:
    return played(place, held, params, rules, working_set, samples=sizes.samples)


def _told(place: Place, moves: np.ndarray, held: Held) -> np.ndarray:
    """`[N, R]` working sets of the moves `[K, S]` of each task's type."""
    by_kind = np.full((len(moves), NUM_RULES), -1, np.int32)
    for kind, row in enumerate(moves):
        # The most special first: there are more situations than places.
        differs = [(moves[:, s] != row[s]).mean() for s in range(len(row))]
        order = sorted(np.flatnonzero(row), key=lambda s: (-differs[s], s))
        for place_in, situation in enumerate(order[:NUM_RULES]):
            rule = situation * place.rule_sizes[1] + row[situation]
            by_kind[kind, place_in] = rule
    return by_kind[held.kinds]
