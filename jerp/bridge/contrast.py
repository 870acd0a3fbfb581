"""Where failing and successful episodes part: how they leave each situation.

Of every episode and situation one move counts: the one of the last visit. A success
left there for good with what went on; a failure did so too, or was still there when its
time was up. An episode that wandered about therefore counts once, and what it tried on
the way does not count at all. Situations are compared in which both kinds of episodes
stood in the same state, that is at one anchor; earlier successes are of other
instances, where states are others, and are compared by situation.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from jerp.bridge.reflection import Occasion, Trial, judged
from jerp.errors import InputError

__all__ = ["Contrast", "contrast"]


class Contrast(NamedTuple):
    """Of each situation and move `[S, M]`, float64; zeros where nothing is known.

    Attributes:
      support: successful episodes that left the situation with the move.
      share: their part of the successes that came there, the mean over tasks.
      tasks: of how many tasks most such successes left with it.
      failed: failing episodes of the group that left with the move, or stayed with it.
      gain: by how much larger the move's part is in success than in failure.
      z: the same in standard errors; 0 where they all did alike.
    """

    support: np.ndarray
    share: np.ndarray
    tasks: np.ndarray
    failed: np.ndarray
    gain: np.ndarray
    z: np.ndarray


def contrast(occasion: Occasion, *, num_situations: int, num_moves: int) -> Contrast:
    """Compares how successes and failures left each situation.

        gain(s, m) = S_m / S - F_m / F
        z(s, m) = gain / sqrt(p (1 - p) n^2 / (S F (n - 1)))
        p = (S_m + F_m) / n,    n = S + F

    `S` successes and `F` failures came to the situation, of which `S_m` and `F_m` left
    it with `m`. References are successes beside the group's own, which count if they
    met a failure at an anchor of the situation; failures are the group's. All are one
    table: two of them, one for references, would use the failures twice, and z would be
    too large. The table is small and its counts are whole, so that 1.64 is not 5%:
    where all episodes draw a move alike, z passes it in at most 8% of groups of up to
    16 with up to 8 references if the move is as likely as not, and in at most 15% if
    nearly all or few make it.

    Args:
      occasion: trials that failed on infrastructure are left out.
      num_situations: S, of the language; of situation 0, "none", nothing is said.
      num_moves: M, of the language; move 0, "none", is one like any other.

    Raises:
      InputError: a situation or move that the language does not have.

    Reference: Mantel & Haenszel, "Statistical aspects of the analysis of data from
      retrospective studies of disease", 1959: z of one table, without the correction
      for continuity.
    """
    trials, earlier = judged(occasion.trials), judged(occasion.references)
    rows = [*trials, *(row for row in earlier if row.success)]
    current = np.arange(len(rows)) < len(trials)
    won = np.asarray([row.success for row in rows], bool)
    left = np.full((len(rows), num_situations), -1)
    for row, moves in zip(rows, left, strict=True):
        _note_last(row, moves, num_moves)
    made = left[..., None] == np.arange(num_moves)
    lost = made[current & ~won]
    met = _met(trials, num_situations)[:, None]
    wins = made[won & current].sum(axis=0) * met + made[won & ~current].sum(axis=0)
    support, share, tasks = _successes(
        made[won], [r.task_digest for r in rows if r.success]
    )
    failed = lost.sum(axis=0, dtype=float)
    gain, z = _compared(wins, failed)
    return Contrast(support, share, tasks, failed, gain, z)


def _note_last(trial: Trial, found: np.ndarray, num_moves: int) -> None:
    """Into `[S]`, the move of the last visit of each situation."""
    for name, known in (("situation", len(found)), ("move", num_moves)):
        seen = getattr(trial, name)
        if seen.size and (seen.min() < 0 or seen.max() >= known):
            raise InputError(
                f"{name}: expected numbers from 0 to {known - 1}, which the language "
                f"has, got {seen.min()} to {seen.max()} in episode {trial.episode!r}"
            )
    # Of one situation's visits the last assignment stands.
    found[trial.situation] = trial.move
    found[0] = -1


def _met(trials: Sequence[Trial], num_situations: int) -> np.ndarray:
    """`[S]` bool: a success and a failure stood in one state of the situation."""
    states: tuple[set[tuple[str, int, int]], ...] = (set(), set())
    for trial in trials:
        steps = zip(trial.anchor.tolist(), trial.situation.tolist(), strict=True)
        states[trial.success].update((trial.task_digest, *step) for step in steps)
    met = np.zeros(num_situations, bool)
    met[[situation for *_, situation in states[0] & states[1]]] = True
    return met


def _successes(
    made: np.ndarray, digests: Sequence[str]
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Support, share and tasks of `Contrast`, of successes `[R, S, M]`."""
    names = np.asarray(digests, str)
    of_task = np.unique(names)[:, None] == names[None]
    moves = np.tensordot(of_task.astype(float), made, axes=1)
    came = moves.sum(axis=-1, keepdims=True)
    shares = moves / np.maximum(came, 1)
    known = np.maximum((came > 0).sum(axis=0), 1)
    return moves.sum(axis=0), shares.sum(axis=0) / known, (shares > 0.5).sum(axis=0)


def _compared(wins: np.ndarray, fails: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Gain and z of `Contrast`, from counts `[S, M]` of successes and failures."""
    successes, failures = (x.sum(axis=-1, keepdims=True) for x in (wins, fails))
    number = np.maximum(successes + failures, 1)
    gap = wins / np.maximum(successes, 1) - fails / np.maximum(failures, 1)
    pairs = successes * failures
    gain = np.where(pairs > 0, gap, 0.0)
    part = (wins + fails) / number
    # Of gain * pairs; 0 where all did alike.
    variance = pairs * part * (1 - part) * number**2 / np.maximum(number - 1, 1)
    return gain, gain * pairs / np.sqrt(np.where(variance > 0, variance, np.inf))
