"""Numbers of an arm's rules: what they are, and how far the policy needs them."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from experiments.jobs.job_files import JobRules, read_job_rules, read_job_tree
from experiments.joint_rules.config import JerpConfig, Sizes
from experiments.joint_rules.oracle import RIGHT_SHARE, OracleMoves
from experiments.joint_rules.places import Place
from experiments.joint_rules.removal import MARGIN
from experiments.joint_rules.training import along_path
from jerp.envs.rule_language import read_sentence
from jerp.estimators.intervals import paired_difference
from jerp.rules.instructions import imperative_fault
from jerp.runs.cells import plain_interval
from jerp.storage.rule_fields import PoolRule
from jerp.storage.rule_history import WRITES, RuleEdit
from jerp.typing import Key

__all__ = ["Yardstick", "rules_of_arm"]

MAX_WORDS = 25


class Active(NamedTuple):
    """A rule of a pool after training; `written` is when its text was."""

    seed: int
    kind: int
    rule: PoolRule
    pair: tuple[int, int] | None
    written: int


class Yardstick(NamedTuple):
    """What rules are held against.

    Attributes:
      oracle: what it does.
      as_good: `[K, S, M]`, how often a move is as good, see `as_good_moves`.
    """

    oracle: OracleMoves
    as_good: np.ndarray


def rules_of_arm(
    streams: Iterator[Key],
    config: JerpConfig,
    place: Place,
    paths: list[Path],
    found: list[dict[str, Any]],
    yardstick: Yardstick,
    untaught: list[Path],
) -> dict[str, Any]:
    """Quality and absorption of the rules of an arm, all seeds together.

    Args:
      streams: random keys.
      config: of the run.
      place: the world.
      paths: folders of the arm's jobs, by seed.
      found: what their evaluations hold.
      yardstick: what rules are held against.
      untaught: folders of the jobs, by seed, of an arm that never saw a rule, whose
        policies say what comes of training alone; none without such an arm.
    """
    kept = [read_job_rules(path) for path in paths]
    active = [
        rule
        for i, rules in enumerate(kept)
        for rule in _active(config, place, rules, i)
    ]
    numbers: dict[str, Any] = _quality(place, yardstick, active)
    if config.by == "type":
        numbers["injected"] = _injected(kept)
        numbers["pools"] = _texts(place, active)
        numbers["following"] = _following(config.sizes, paths, active, untaught)
        if config.sizes.removal:
            numbers["removal"] = _removal(streams, found)
    return numbers


def _active(
    config: JerpConfig, place: Place, kept: JobRules, seed: int
) -> Iterator[Active]:
    written = _written(kept)
    for key, rules in kept.pool.pools.items():
        kind = key if config.by == "type" else key.rsplit(" ", 1)[0]
        for rule in rules:
            pair = read_sentence(place.env.language, rule.text)
            when = written.get((key, rule.text), rule.born)
            yield Active(seed, place.types.index(kind), rule, pair, when)


def _written(kept: JobRules) -> dict[tuple[str, str], int]:
    """By task key and text the iteration in which it last became a rule.

    The birth that a pool knows is that of the oldest rule that a text was made of.
    """
    return {
        (row.task_key, row.text): row.step
        for row in kept.ledger
        if isinstance(row, RuleEdit) and row.applied and row.op in WRITES
    }


def _injected(kept: list[JobRules]) -> dict[str, int]:
    """Rules that were there at the start, and those still there at the end."""
    start, left = 0, 0
    for pool, ledger in kept:
        pools = pool.pools
        for row in ledger:
            if isinstance(row, RuleEdit) and row.op == "START":
                start += 1
                left += row.text in {rule.text for rule in pools[row.task_key]}
    return {"start": start, "left": left}


def _quality(
    place: Place, yardstick: Yardstick, active: list[Active]
) -> dict[str, Any]:
    """How many are one imperative sentence, and say what is right or as good."""
    faults = [imperative_fault(one.rule.text, max_words=MAX_WORDS) for one in active]
    agree, good = (
        [
            0.0 if one.pair is None else float(share[one.kind, *one.pair])
            for one in active
        ]
        for share in (yardstick.oracle.share, yardstick.as_good)
    )
    return {
        "active": len(active),
        "imperative": sum(fault is None for fault in faults),
        "judged": int(np.isfinite(agree).sum()),
        "agree": sum(share > RIGHT_SHARE for share in agree),
        "tried": int(np.isfinite(good).sum()),
        "as_good": sum(share > RIGHT_SHARE for share in good),
        "disagree": sorted(
            f"{place.types[one.kind]}: {one.rule.text}"
            for one, share in zip(active, agree, strict=True)
            if share <= RIGHT_SHARE
        ),
        "sources": sum(bool(one.rule.sources) for one in active),
    }


def _share(table: np.ndarray, one: Active) -> float:
    """A rule's entry; one that is not in the world's language agrees with nothing."""
    return 0.0 if one.pair is None else float(table[one.kind, *one.pair])


def _texts(place: Place, active: list[Active]) -> dict[str, list[dict[str, Any]]]:
    """The pools of the first seed, for people."""
    pools: dict[str, list[dict[str, Any]]] = {kind: [] for kind in place.types}
    for one in active:
        if not one.seed:
            rule = one.rule
            pools[place.types[one.kind]].append(
                {
                    "text": rule.text,
                    "score": rule.score,
                    "born": rule.born,
                    "uses": rule.uses,
                    "wins": rule.wins,
                }
            )
    return pools


def _following(
    sizes: Sizes, paths: list[Path], active: list[Active], untaught: list[Path]
) -> dict[str, Any]:
    """Probability of doing what the rules say, untold: when each was new, and now.

    When it was new is the last look at the policy before. Beside it is what an arm that
    never saw a rule does in the same situations.
    """
    steps = np.arange(0, sizes.iterations + 1, sizes.every)
    mine, theirs = (_tables(arm, steps) for arm in (paths, untaught))
    rows, curves, control = [], [], []
    for one in active:
        if one.pair is None:
            continue
        cell = (slice(None), one.kind, *one.pair)
        curve = mine[one.seed][cell]
        birth = max(int(np.searchsorted(steps, one.written, side="right")) - 1, 0)
        if np.isfinite(curve).all():
            rows.append((curve[birth], curve[-1]))
            curves.append(np.exp(curve))
            if theirs:
                control.append(np.exp(theirs[one.seed][cell]))
    if not rows:
        return {"rules": 0}
    table = np.asarray(rows)
    return {
        "rules": len(rows),
        "at_birth": float(np.exp(table[:, 0]).mean()),
        "now": float(np.exp(table[:, 1]).mean()),
        "gain_nats": float((table[:, 1] - table[:, 0]).mean()),
        "iterations": steps.tolist(),
        "curve": np.mean(curves, axis=0).tolist(),
        "untaught": np.mean(control, axis=0).tolist() if control else None,
    }


def _tables(paths: list[Path], steps: np.ndarray) -> list[np.ndarray]:
    """By seed `[looks, K, S, M]`."""
    return [
        np.stack(
            [
                read_job_tree(path, along_path(path, int(n)).name)[0]["following"]
                for n in steps
            ]
        )
        for path in paths
    ]


def _removal(streams: Iterator[Key], found: list[dict[str, Any]]) -> dict[str, Any]:
    """What removing a rule costs, how many are absorbed, what retiring these does."""
    measured = [e for e in found if "loss" in e["removal"]]
    if not measured:
        return {"rules": 0, "margin": MARGIN}
    loss = np.concatenate([e["removal"]["loss"][0].ravel() for e in measured])
    gone = np.concatenate([e["removal"]["absorbed"].ravel() for e in measured])
    # A rule of a type of which no task was drawn was not tried.
    tried = np.isfinite(loss)
    kept, retired, in_turn = (
        np.concatenate([x.mean(axis=1) for x in parts]).astype(np.float32)
        for parts in (
            [e["unseen"]["with"]["success"] for e in measured],
            [e["removal"]["retired"] for e in measured],
            [e["removal"]["retired_in_turn"] for e in measured],
        )
    )
    return {
        "rules": int(tried.sum()),
        "absorbed": int(gone.sum()),
        "in_turn": int(sum(e["removal"]["in_turn"].sum() for e in measured)),
        "margin": MARGIN,
        "loss_mean": float(loss[tried].mean()) if tried.any() else None,
        "loss_largest": float(loss[tried].max()) if tried.any() else None,
        "kept": float(kept.mean()),
        "retiring_changes": plain_interval(
            paired_difference(next(streams), retired, kept)
        ),
        "retiring_in_turn_changes": plain_interval(
            paired_difference(next(streams), in_turn, kept)
        ),
    }
