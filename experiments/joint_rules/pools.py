"""Numbers of an arm's rules: what they are, and how far the policy needs them."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from experiments.jobs.job_files import read_job_pool, read_job_tree
from experiments.joint_rules.config import JerpConfig, Sizes
from experiments.joint_rules.final import MARGIN
from experiments.joint_rules.oracle import RIGHT_SHARE, OracleMoves
from experiments.joint_rules.places import Place
from experiments.joint_rules.training import along_path
from jerp.envs.rule_language import read_sentence
from jerp.estimators.intervals import paired_difference
from jerp.rules.text import imperative_fault
from jerp.runs.cells import plain_interval
from jerp.storage.rule_fields import PoolRule
from jerp.typing import Key

__all__ = ["rules_of_arm"]

MAX_WORDS = 25


class Active(NamedTuple):
    """A rule of a pool after training."""

    seed: int
    kind: int
    rule: PoolRule
    pair: tuple[int, int] | None


def rules_of_arm(
    streams: Iterator[Key],
    config: JerpConfig,
    place: Place,
    paths: list[Path],
    found: list[dict[str, Any]],
    oracle: OracleMoves,
) -> dict[str, Any]:
    """Quality and absorption of the rules of an arm, all seeds together.

    Args:
      streams: random keys.
      config: of the run.
      place: the world.
      paths: folders of the arm's jobs, by seed.
      found: what their evaluations hold.
      oracle: what it does in the world.
    """
    active = [
        rule for i, path in enumerate(paths) for rule in _active(config, place, path, i)
    ]
    numbers: dict[str, Any] = _quality(place, oracle, active)
    if config.by == "type":
        numbers["pools"] = _texts(place, active)
        numbers["following"] = _following(config.sizes, paths, active)
        if config.sizes.removal:
            numbers["removal"] = _removal(streams, found)
    return numbers


def _active(
    config: JerpConfig, place: Place, path: Path, seed: int
) -> Iterator[Active]:
    document = read_job_pool(path)
    for key, rules in document.pools.items():
        kind = key if config.by == "type" else key.rsplit(" ", 1)[0]
        for rule in rules:
            pair = read_sentence(place.env.language, rule.text)
            yield Active(seed, place.types.index(kind), rule, pair)


def _quality(place: Place, oracle: OracleMoves, active: list[Active]) -> dict[str, Any]:
    """How many are one imperative sentence, and say what the oracle does."""
    faults = [imperative_fault(one.rule.text, max_words=MAX_WORDS) for one in active]
    shares = [_agreement(oracle, one) for one in active]
    known = [share for share in shares if not np.isnan(share)]
    return {
        "active": len(active),
        "imperative": sum(fault is None for fault in faults),
        "judged": len(known),
        "agree": sum(share > RIGHT_SHARE for share in known),
        "disagree": sorted(
            f"{place.types[one.kind]}: {one.rule.text}"
            for one, share in zip(active, shares, strict=True)
            if share <= RIGHT_SHARE
        ),
        "sources": sum(bool(one.rule.sources) for one in active),
    }


def _agreement(oracle: OracleMoves, one: Active) -> float:
    """How often the oracle does what a rule says, where it is about."""
    if one.pair is None:
        return 0.0
    return float(oracle.share[one.kind, one.pair[0], one.pair[1]])


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


def _following(sizes: Sizes, paths: list[Path], active: list[Active]) -> dict[str, Any]:
    """Probability of doing what the rules say, untold: at each one's birth, and now.

    A birth is that of the last look at the policy before it.
    """
    steps = np.arange(0, sizes.iterations + 1, sizes.every)
    tables = [
        np.stack(
            [
                read_job_tree(path, along_path(path, int(n)).name)[0]["following"]
                for n in steps
            ]
        )
        for path in paths
    ]
    rows, curves = [], []
    for seed, kind, rule, pair in active:
        if pair is None:
            continue
        curve = tables[seed][:, kind, pair[0], pair[1]]
        birth = int(np.searchsorted(steps, rule.born, side="right")) - 1
        if np.isfinite(curve).all():
            rows.append((curve[birth], curve[-1]))
            curves.append(np.exp(curve))
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
    }


def _removal(streams: Iterator[Key], found: list[dict[str, Any]]) -> dict[str, Any]:
    """What removing a rule costs, how many are absorbed, what retiring these does."""
    measured = [e for e in found if "loss" in e["removal"]]
    if not measured:
        return {"rules": 0, "margin": MARGIN}
    loss = np.concatenate([e["removal"]["loss"][0].ravel() for e in measured])
    gone = np.concatenate([e["removal"]["absorbed"].ravel() for e in measured])
    # A rule of a type of which no task was drawn was not tried.
    tried = np.isfinite(loss)
    kept, retired = (
        np.concatenate([x.mean(axis=1) for x in parts]).astype(np.float32)
        for parts in (
            [e["unseen"]["with"]["success"] for e in measured],
            [e["removal"]["retired"]["success"] for e in measured],
        )
    )
    return {
        "rules": int(tried.sum()),
        "absorbed": int(gone.sum()),
        "margin": MARGIN,
        "loss_mean": float(loss[tried].mean()) if tried.any() else None,
        "loss_largest": float(loss[tried].max()) if tried.any() else None,
        "retired": float(retired.mean()),
        "kept": float(kept.mean()),
        "retiring_changes": plain_interval(
            paired_difference(next(streams), retired, kept)
        ),
    }
