"""Rules for a frozen model in a benchmark in text: asked, learned, compared.

    <run>/store/     all that the model answered, reflections included
    <run>/learning/  metrics.jsonl, ledger.jsonl, pool.json, checkpoints/

The model plays held-out tasks by prompting alone, rules are learned from groups of
training episodes by its own reflection, and it plays the held-out tasks again with the
rules of their kind. Its weights stay as they are; the paper trains them as well.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import jax
import numpy as np
from rich.console import Console
from rich.progress import Progress

from experiments.benchmark_rules.place import Place, open_place, promptings
from experiments.benchmark_rules.plan import rules_plan
from experiments.benchmark_rules.report import curve, document, sentences, table
from experiments.executors.opened import OpenExecutor, open_live, resolved
from experiments.executors.spending import print_plan
from experiments.jobs.results import analysis_key, origin, sizes_document
from jerp.bridge.executor import Sampling
from jerp.bridge.llm_reflector import LlmReflector
from jerp.bridge.prompting import Prompting
from jerp.bridge.store import ResponseStore
from jerp.bridge.stored import COMPLETION
from jerp.domains.text_episodes import PlayedTexts, play_texts
from jerp.estimators.intervals import bootstrap_interval, paired_difference
from jerp.runs.cells import plain_interval
from jerp.runs.jerp.benchmark_play import BenchmarkPlay, BenchmarkWorld, task_rows
from jerp.runs.jerp.loop import Trained, train_jerp
from jerp.runs.jerp.settings import RuleSettings
from jerp.runs.page import write_page
from jerp.runs.policy.groups import PolicyTask
from jerp.runs.progress import progress_bars
from jerp.storage.documents import defined, write_json
from jerp.storage.manifest import open_run
from jerp.storage.metrics import read_metrics
from jerp.storage.rule_documents import PoolDocument
from jerp.training.group_settings import algorithm
from jerp.training.joint import RuleConfig
from jerp.typing import Outcome

__all__ = ["run_benchmark_rules"]

AT_ONCE = 16
"""Held-out episodes side by side."""

ARMS = {"plain": ("plain", False), "react": ("react", False), "rules": ("react", True)}
"""By name: how it is asked, and whether learned rules are in the prompt."""


def run_benchmark_rules(config: Any, console: Console) -> dict[str, Any]:
    """Runs or resumes; returns what `results.json` holds.

    Args:
      config: a `JerpConfig` with `env`.
      console: to report to.
    """
    config = replace(config, endpoint=resolved(config.executor, config.endpoint))
    sizes, folder = config.benchmark_sizes, config.folder
    with open_place(config.env, config.data, sizes, config.seed) as place:
        if config.plan:
            kept = folder / "store"
            store = ResponseStore(kept if kept.exists() else None, mode="replay")
            price = config.endpoint.price(config.endpoint.model)
            parts = [*rules_plan(place, sizes)]
            return print_plan(parts, price, store.stored(COMPLETION), console)
        with (
            open_run(folder, _identity(config, place), seeds=[0]),
            open_live(
                config.executor, config.endpoint, folder / "store", console
            ) as opened,
            progress_bars(console, below=opened.spent) as progress,
        ):
            results = defined(
                {
                    **origin(config),
                    "env": config.env,
                    "benchmark": place.benchmark.version,
                    "sizes": sizes_document(sizes),
                    **_played(config, place, opened, progress),
                    "executor": opened.description(),
                }
            )
            _write(results, folder, console, opened)
    return results


def _identity(config: Any, place: Place) -> dict[str, Any]:
    """The settings that must agree for a run to be resumed; caps may change."""
    return {
        "experiment": "benchmark_rules",
        "env": config.env,
        "benchmark": place.benchmark.version,
        "executor": config.executor,
        "model": config.endpoint.model,
        "seed": config.seed,
        "sizes": sizes_document(config.benchmark_sizes),
    }


def _played(
    config: Any, place: Place, opened: OpenExecutor, progress: Progress
) -> dict[str, Any]:
    sizes, ways = config.benchmark_sizes, promptings(config.benchmark_sizes)
    found: dict[str, dict[str, np.ndarray]] = {}
    trained = None
    for name, (way, with_rules) in ARMS.items():
        if with_rules:
            trained = _learned(config, place, opened, ways[way], progress)
        told = _rules_of(trained, place, sizes.num_rules) if with_rules else ()
        found[name] = _held_out(name, place, opened, ways[way], told, sizes, progress)
    assert trained is not None  # one of the arms has rules
    return {
        "rows": _rows(config.seed, found),
        "kinds": list(place.kinds),
        "tasks": {"train": len(place.train), "held_out": len(place.held_out)},
        "learning": _learning(config.folder / "learning", trained),
    }


def _learned(
    config: Any,
    place: Place,
    opened: OpenExecutor,
    prompting: Prompting,
    progress: Progress,
) -> Trained:
    """Rules from groups of training episodes, by the model's own reflection."""
    sizes = config.benchmark_sizes
    group, hyper = algorithm("grpo", num_groups=sizes.num_groups)
    world = BenchmarkWorld(config.env, place.benchmark.version)
    play = BenchmarkPlay(place.benchmark, place.train, opened.executor, prompting)
    bar = progress.add_task("learning", total=sizes.iterations)
    return train_jerp(
        *(config.folder / "learning", jax.random.key(config.seed)),
        PolicyTask(world, None, group, sizes.group_size, sizes.num_steps),  # pyright: ignore
        *(hyper, task_rows(len(place.train)), {}),
        rules=RuleSettings(
            RuleConfig(num_rules=sizes.num_rules, capacity=sizes.capacity)
        ),
        reflector=LlmReflector(
            opened.executor,
            sampling=Sampling(0.0, max_tokens=sizes.reflection_tokens),
            max_chars=sizes.reflection_chars,
        ),
        task_keys=place.kinds,
        task_key=place.keys(place.train),
        task_words=[task.prompt for task in place.train],
        iterations=sizes.iterations,
        learn_policy=False,
        chunk=sizes.every,
        play=play,
        tell=play.tell,
        on_progress=lambda done: progress.advance(bar, done),
    )


def _rules_of(
    trained: Trained | None, place: Place, most: int
) -> Sequence[Sequence[str]]:
    """The best rules of each held-out task's kind."""
    pools = {} if trained is None else trained.document.pools
    keys = place.keys(place.held_out)
    kinds = [place.kinds[key] if key >= 0 else "" for key in keys]
    best = {kind: _best(pools.get(kind, ()), most) for kind in {*kinds}}
    return [best[kind] for kind in kinds]


def _best(rules: Sequence[Any], most: int) -> list[str]:
    ranked = sorted(rules, key=lambda rule: -rule.score)
    return [rule.text for rule in ranked[:most]]


def _held_out(
    name: str,
    place: Place,
    opened: OpenExecutor,
    prompting: Prompting,
    rules: Sequence[Sequence[str]],
    sizes: Any,
    progress: Progress,
) -> dict[str, np.ndarray]:
    """`[N, samples]` outcomes, scores, steps and answers that were no command."""
    task = np.repeat(np.arange(len(place.held_out)), sizes.samples)
    sample = np.tile(np.arange(sizes.samples), len(place.held_out))
    bar = progress.add_task(f"held out: {name}", total=len(task))
    parts: list[PlayedTexts] = []
    for start in range(0, len(task), AT_ONCE):
        some: list[int] = task[start : start + AT_ONCE].tolist()
        parts.append(
            play_texts(
                place.benchmark,
                [place.held_out[i] for i in some],
                opened.executor,
                prompting,
                num_steps=sizes.num_steps,
                sample_index=sample[start : start + AT_ONCE],
                task_id=some,
                rules=[rules[i] for i in some] if rules else (),
            )
        )
        progress.advance(bar, len(some))
    shape = (len(place.held_out), sizes.samples)
    data = [part.trajectory for part in parts]
    return {
        "outcome": np.concatenate([d.outcome for d in data]).reshape(shape),
        "score": np.concatenate([d.score for d in data]).reshape(shape),
        "steps": np.concatenate([d.mask.sum(axis=1) for d in data]).reshape(shape),
        "unparsed": np.concatenate([p.unparsed for p in parts]).reshape(shape),
    }


def _rows(seed: int, found: dict[str, dict[str, np.ndarray]]) -> dict[str, Any]:
    """By arm: success and score with intervals, and what rules add to asking alone."""
    keys = iter(jax.random.split(analysis_key(seed), 3 * len(found)))
    rates = {name: _task_means(one, one["outcome"] == 1) for name, one in found.items()}
    rows = {}
    for name, one in found.items():
        score = _task_means(one, one["score"])
        row = {
            "success": plain_interval(bootstrap_interval(next(keys), rates[name])),
            "score": plain_interval(bootstrap_interval(next(keys), score)),
            "steps": float(one["steps"].mean()),
            "unparsed": int(one["unparsed"].sum()),
            "lost": int((one["outcome"] == Outcome.INFRASTRUCTURE).sum()),
        }
        if name == "rules":
            more = paired_difference(next(keys), rates[name], rates["react"])
            row["above_react"] = plain_interval(more)
        rows[name] = row
    return rows


def _task_means(found: dict[str, np.ndarray], value: np.ndarray) -> np.ndarray:
    """`[N]` float32 means of the episodes that were answered; NaN without any."""
    answered = found["outcome"] != Outcome.INFRASTRUCTURE
    total = np.where(answered, value, 0).sum(axis=1)
    number = answered.sum(axis=1)
    mean = total / np.maximum(number, 1)
    return np.where(number > 0, mean, np.nan).astype(np.float32)


def _learning(folder: Path, trained: Trained) -> dict[str, Any]:
    rows = read_metrics(folder / "metrics.jsonl")
    document: PoolDocument = trained.document
    return {
        "success": [row.get("success") for row in rows],
        "rules": [row["rules"] for row in rows],
        "pool": {
            kind: [{"text": r.text, "score": float(r.score)} for r in rules]
            for kind, rules in document.pools.items()
            if rules
        },
        "warnings": trained.warnings,
    }


def _write(
    results: dict[str, Any], folder: Path, console: Console, opened: OpenExecutor
) -> None:
    write_json(folder / "results.json", results)
    (folder / "figures").mkdir(exist_ok=True)
    curve(results).savefig(folder / "figures" / "curve.png", dpi=120)
    page = write_page("\n\n".join(document(results)) + "\n", folder)
    console.print(table(results))
    for line in sentences(results):
        console.print(line)
    if spent := opened.spent():
        console.print(f"asked of the endpoint: {spent}")
    console.print(f"report: {page}", soft_wrap=True)
