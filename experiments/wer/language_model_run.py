"""How the language model that writes skills is run, counted and reported.

See `experiments.jobs.language_model_run`; `language_model` says what the parts keep.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

from rich.console import Console

from experiments.executors.opened import resolved
from experiments.executors.spending import print_plan
from experiments.jobs.job import is_done
from experiments.jobs.language_model_run import LanguageModelRun, Report, Stage
from experiments.wer.language_model import PARTS
from experiments.wer.language_model_analysis import analyse
from experiments.wer.language_model_config import ReaderSizes
from experiments.wer.language_model_evaluation import ways_of
from experiments.wer.language_model_report import (
    LABELS,
    curves,
    document,
    sentences,
    stand_ins,
    table,
)
from experiments.wer.plan import skill_plan
from experiments.wer.skill_to_hand_on import hand_on
from jerp.bridge.store import ResponseStore
from jerp.bridge.stored import COMPLETION

__all__ = ["run_language_model", "stages"]


def run_language_model(config: Any, console: Console) -> dict[str, Any]:
    """Runs or resumes; the skill that validation found best is in `skills/`.

    Args:
      config: a `WerConfig` with a language model.
      console: to report to.
    """
    if config.executor:
        found = resolved(config.executor, config.endpoint)
        config = replace(config, endpoint=found)
    if config.plan:
        return _plan(config, console)
    results = LANGUAGE_MODEL.run(config, console)
    row = results["rows"][results["best"]]
    if row["skill"] is None:
        return results
    hand_on(
        *(config, config.env or "coding", row["skill"], row["effect"]),
        tasks=results["tasks"],
        model=config.endpoint.model or Path(config.executor or config.policy).stem,
        method=LABELS[results["best"]],
    )
    return results


def _plan(config: Any, console: Console) -> dict[str, Any]:
    """Prints what would be asked; nothing is, and nothing is written."""
    parts = [*skill_plan(config.setting, config.reader_sizes, config.seed)]
    kept = config.folder / "store"
    store = ResponseStore(kept if kept.exists() else None, mode="replay")
    price = config.endpoint.price(config.endpoint.model)
    return print_plan(parts, price, store.stored(COMPLETION), console)


def stages(folder: Path, sizes: ReaderSizes) -> list[Stage]:
    """What each part is at."""
    ways = ways_of(sizes)
    files = {
        "base": [folder / "base" / "adapters.safetensors"],
        "trained": [folder / "trained" / "metrics.jsonl"],
        "evaluation": [folder / "evaluation" / w.name / "metrics.jsonl" for w in ways],
    }
    steps = {
        "base": 1,
        "trained": sizes.total,
        "evaluation": sum(way.rounds + 1 for way in ways),
    }
    found, before = [], True
    for part in PARTS:
        done = is_done(folder / part)
        there = [path for path in files[part] if path.exists()]
        behind = len(there) if part == "base" else sum(map(_num_lines, there))
        now = "done" if done else "waits" if not before else "under way"
        found.append(Stage(f"{part}: {now}", behind + done, steps[part] + 1))
        before = done
    return found


def _num_lines(path: Path) -> int:
    return path.read_bytes().count(b"\n")


def _report(results: dict[str, Any]) -> Report:
    return Report(curves(results), document(results), table(results), _lines(results))


def _lines(results: dict[str, Any]) -> Iterator[str]:
    yield from sentences(results)
    yield stand_ins(results)


LANGUAGE_MODEL = LanguageModelRun("wer", PARTS, stages, analyse, _report)
