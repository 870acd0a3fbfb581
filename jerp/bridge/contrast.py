"""Where failing and successful episodes part: how they leave each situation.

Of every episode and situation one move counts: the one of the last visit. A success
left there for good with what went on; a failure did so too, or was still there when its
time was up. An episode that wandered about therefore counts once, and what it tried on
the way does not count at all. Situations are compared in which both kinds of episodes
stood in the same state, that is at one anchor; earlier successes are of other
instances, where states are others, and are compared by situation.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
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

        gain(s, m) = Σ_k w_k (S_km / S_k - F_km / F_k) / Σ_k w_k
        w_k = S_k F_k / n_k,    n_k = S_k + F_k
        z(s, m) = gain Σ_k w_k / sqrt(Σ_k w_k (p_k - p_k^2) n_k / (n_k - 1))
        p_k = (S_km + F_km) / n_k

    over the strata `k`: the group, if its successes and failures met at an anchor of
    the situation, and the references beside the group's failures. `S_k` successes and
    `F_k` failures came to the situation, of which `S_km` and `F_km` left it with `m`.

    Args:
      occasion: trials that failed on infrastructure are left out.
      num_situations: S, of the language; of situation 0, "none", nothing is said.
      num_moves: M, of the language; move 0, "none", is one like any other.

    Raises:
      InputError: a situation or move that the language does not have.

    Reference: Mantel & Haenszel, "Statistical aspects of the analysis of data from
      retrospective studies of disease", 1959 (z, without the correction for
      continuity); Greenland & Robins, "Estimation of a common effect parameter from
      sparse follow-up data", 1985 (gain).
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
    strata = (
        (made[won & current], _met(trials, num_situations)),
        (made[won & ~current], 1),
    )
    support, share, tasks = _successes(
        made[won], [r.task_digest for r in rows if r.success]
    )
    gain, z = _compared(lost, strata)
    return Contrast(support, share, tasks, lost.sum(axis=0, dtype=float), gain, z)


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


def _compared(
    lost: np.ndarray, strata: Iterable[tuple[np.ndarray, np.ndarray | int]]
) -> tuple[np.ndarray, np.ndarray]:
    """Gain and z of `Contrast`: failures `[F, S, M]` beside successes of strata."""
    fails = lost.sum(axis=0)
    failures = fails.sum(axis=-1, keepdims=True)
    total = weight = variance = np.zeros(fails.shape)
    for won, where in strata:
        wins = won.sum(axis=0)
        successes = wins.sum(axis=-1, keepdims=True)
        number = np.maximum(successes + failures, 1)
        pairs = successes * failures * np.reshape(where, (-1, 1)) / number
        gap = wins / np.maximum(successes, 1) - fails / np.maximum(failures, 1)
        part = (wins + fails) / number
        total = total + pairs * gap
        weight = weight + pairs
        unbiased = number / np.maximum(number - 1, 1)
        variance = variance + pairs * unbiased * part * (1 - part)
    gain = total / np.where(weight > 0, weight, 1)
    return gain, total / np.sqrt(np.where(variance > 0, variance, np.inf))
