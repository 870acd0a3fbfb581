"""How the language model that reads rules is run, counted and reported.

See `experiments.jobs.language_model_run`; `language_model` says what the parts keep.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

from experiments.jobs.job import is_done
from experiments.jobs.language_model_run import LanguageModelRun, Report, Stage
from experiments.joint_rules.language_model import JOINT, PARTS
from experiments.joint_rules.language_model_analysis import analyse
from experiments.joint_rules.language_model_config import ReaderSizes
from experiments.joint_rules.language_model_report import (
    curves,
    document,
    sentences,
    table,
)

__all__ = ["LANGUAGE_MODEL", "stages"]


def stages(folder: Path, sizes: ReaderSizes) -> list[Stage]:
    """What each part is at."""
    known, found, before = sizes.joint_iterations, [], True
    for part in PARTS:
        where = folder / part
        done = is_done(where)
        steps = known.get(part, 1 if part == "base" else 0)
        behind = int((where / "adapters.safetensors").exists())
        if part in known:
            rows = where / "metrics.jsonl"
            behind = rows.read_bytes().count(b"\n") if rows.exists() else 0
        now = "waits" if not before else "begins" if not behind else "trains"
        now = "evaluates" if before and behind >= steps > 0 else now
        label = f"{part}: {'done' if done else now}"
        found.append(Stage(label, behind + done, steps + 1))
        before = done
    return found


def _report(results: dict[str, Any]) -> Report:
    return Report(curves(results), document(results), table(results), _lines(results))


def _lines(results: dict[str, Any]) -> Iterator[str]:
    yield from sentences(results)
    for part in JOINT:
        for note in results["runs"][part]["warnings"]:
            yield f"note: {part}, {note}"


LANGUAGE_MODEL = LanguageModelRun("joint_rules", PARTS, stages, analyse, _report)
