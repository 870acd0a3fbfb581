"""What taking rules out of the prompts costs, and which can be retired.

A rule may be needed by itself or stand in for another, so rules are tried one by one,
and then taken out in turn for as long as all that are out cost less than the margin.
What decides is played on seen tasks; what retiring does, on unseen ones.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from experiments.joint_rules.evaluation import Held, played
from experiments.joint_rules.places import NUM_RULES, Place
from experiments.joint_rules.training import Stage
from jerp.rules.absorption import absorbed, removal_loss
from jerp.rules.pool import only
from jerp.rules.selection import select_top
from jerp.typing import Key

__all__ = ["MARGIN", "removals"]

MARGIN = 0.02
"""A rule is absorbed if its removal is shown to cost less success than this."""

ALONE, IN_TURN = range(2)
"""Streams of random keys."""

Without = Callable[[np.ndarray], np.ndarray]
"""Success `[N, samples]` of a pool without the rules that are True in `[K, R]`."""


def removals(
    key: Key,
    place: Place,
    splits: dict[str, Held],
    stage: Stage,
    *,
    samples: int,
) -> dict[str, Any]:
    """The rules of every type's working set, and what they cost when they go.

    Args:
      key: consumed.
      place: where.
      splits: "seen" decides, "unseen" shows what retiring does.
      stage: of the policy and its rules.
      samples: episodes a task.

    Returns:
      By name: `rule` `[K, R]` ids, -1 for none; and if there are any, `loss`
      `[3, K, R]` (point, low, high) of each rule's removal alone, `absorbed` and
      `in_turn` `[K, R]` bool, and of unseen tasks `retired` and `retired_in_turn`,
      success `[N, samples]` without all that are absorbed alone, and without those
      that went in turn.
    """
    kinds = np.arange(len(place.types), dtype=np.int32)
    sets = stage.working_set(kinds)
    if sets is None or (sets < 0).all():
        return {"rule": np.full((len(kinds), NUM_RULES), -1, np.int32)}
    seen, unseen = (
        partial(_without, place, splits[name], stage, sets, samples)
        for name in ("seen", "unseen")
    )
    held, shown = splits["seen"], sets >= 0
    whole = seen(np.zeros_like(shown))
    tried = partial(_losses, held=held, whole=whole)
    loss, alone = _alone(jax.random.fold_in(key, ALONE), shown, seen, tried)
    order = np.argsort(np.where(shown, loss[0], np.inf), axis=1)
    stream = jax.random.fold_in(key, IN_TURN)
    in_turn = _in_turn(stream, shown, order, seen, tried)
    return {
        "rule": sets,
        "loss": loss,
        "absorbed": alone,
        "in_turn": in_turn,
        "retired": unseen(alone),
        "retired_in_turn": unseen(in_turn),
    }


def _without(
    place: Place,
    held: Held,
    stage: Stage,
    sets: np.ndarray,
    samples: int,
    gone: np.ndarray,
) -> np.ndarray:
    """Success once rules are out of the pool: what is next in it takes their places."""
    assert stage.trained is not None  # it has rules
    pool = stage.trained.state.pool
    ids = np.where(gone, sets, -2)
    kept = only(pool, ~jnp.any(pool.rule_id[..., None] == ids[:, None], axis=-1))
    working = select_top(kept, jnp.asarray(held.kinds), num_rules=NUM_RULES)
    rules = stage.rules(place)
    found = played(
        place, held, stage.params, rules, np.asarray(working), samples=samples
    )
    return found["success"]


def _alone(
    key: Key, shown: np.ndarray, without: Without, tried: Any
) -> tuple[np.ndarray, np.ndarray]:
    """Loss `[3, K, R]` of each rule's removal, and which are absorbed."""
    loss = np.full((3, *shown.shape), np.nan, np.float32)
    gone = np.zeros_like(shown)
    for column in range(shown.shape[1]):
        out = np.zeros_like(shown)
        out[:, column] = shown[:, column]
        stream = jax.random.fold_in(key, column)
        loss[..., column], gone[:, column] = tried(stream, left=without(out), out=out)
    return loss, gone


def _in_turn(
    key: Key, shown: np.ndarray, order: np.ndarray, without: Without, tried: Any
) -> np.ndarray:
    """`[K, R]` bool, the rules that go together, tried in an order `[K, R]`."""
    gone, kinds = np.zeros_like(shown), np.arange(len(shown))
    for rank in range(shown.shape[1]):
        out = gone.copy()
        out[kinds, order[:, rank]] = shown[kinds, order[:, rank]]
        stream = jax.random.fold_in(key, rank)
        _, fine = tried(stream, left=without(out), out=out)
        gone = np.where(fine[:, None], out, gone)
    return gone


def _losses(
    key: Key, *, left: np.ndarray, out: np.ndarray, held: Held, whole: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """`[3, K]` point and limits of what removal costs each type, and which is fine.

    NaN, and not fine, of a type without a task or without a removal.
    """
    loss = np.full((3, len(out)), np.nan, np.float32)
    fine = np.zeros(len(out), bool)
    task = np.broadcast_to(held.numbers[:, None], whole.shape)
    for kind in np.flatnonzero(out.any(axis=1)):
        rows = np.broadcast_to((held.kinds == kind)[:, None], whole.shape)
        if rows.any():
            interval = removal_loss(
                jax.random.fold_in(key, int(kind)),
                jnp.asarray(whole.reshape(-1), jnp.float32),
                jnp.asarray(left.reshape(-1), jnp.float32),
                jnp.asarray(task.reshape(-1), jnp.int32),
                mask=jnp.asarray(rows.reshape(-1)),
            )
            loss[:, kind] = interval.point, interval.low, interval.high
            fine[kind] = bool(absorbed(interval, margin=MARGIN))
    return loss, fine
