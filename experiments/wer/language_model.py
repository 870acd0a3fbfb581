"""A language model that writes skills for itself: cloned, trained, and compared.

    <run>/store/       all that the frozen model answered, and verdicts of tests
    <run>/base/        adapters cloned from drafts that know nothing; their drafts
    <run>/trained/     metrics.jsonl, tree.jsonl, runs.jsonl, checkpoints/, adapter/
    <run>/evaluation/  a folder a way to write skills, validation.jsonl, test.jsonl

    python -m experiments.wer.language_model RUN-FOLDER CONFIG-AS-JSON

Each part ends with `evaluation.safetensors`, and what is there is not done again;
training resumes behind its last checkpoint, and no answer is asked for twice.
"""

from __future__ import annotations

import json
from functools import partial
from pathlib import Path

import jax
import numpy as np

from experiments.jobs.adapters import export_adapters, read_adapters
from experiments.jobs.config import MODELS
from experiments.jobs.job import is_done
from experiments.jobs.parts import Made, make_parts
from experiments.jobs.program import run_program
from experiments.wer.language_model_cloning import cloned_adapters
from experiments.wer.language_model_config import (
    ReaderSizes,
    reader_algorithm,
    reader_rate,
    reader_settings,
)
from experiments.wer.language_model_evaluation import evaluate_reader
from experiments.wer.language_model_reader import AT_ONCE, Reader, open_reader
from experiments.wer.setting import TextSetting
from jerp.runs.skills.drafting import drafted
from jerp.runs.skills.loop import train_skills
from jerp.runs.skills.work import RefinementState, executed
from jerp.storage.skill_runs import SkillRunFile
from jerp.storage.tensors import save_tree
from jerp.storage.weights import load_weights
from jerp.typing import Key

__all__ = ["PARTS", "run_reader"]

PARTS = ("base", "trained", "evaluation")

CLONE, DRAFT, TRAIN, EVALUATE = range(4)
"""Streams of random keys."""


def run_reader(
    folder: Path, policy: str, sizes: ReaderSizes, seed: int, setting: TextSetting
) -> None:
    """Does what is not done yet of a run."""
    if all(is_done(folder / part) for part in PARTS):
        return
    weights = load_weights(MODELS.get(policy, policy))
    make = {"base": _base, "trained": _trained, "evaluation": _evaluation}
    with open_reader(weights, sizes, folder, seed, setting) as reader:
        parts = {
            part: partial(make[part], key=jax.random.key(seed), reader=reader)
            for part in PARTS
        }
        make_parts(folder, parts, reader.executor.fingerprint)


def _base(where: Path, key: Key, reader: Reader) -> Made:
    """Adapters whose drafts parse; how many do, and what comes of them."""
    adapters = cloned_adapters(where, jax.random.fold_in(key, CLONE), reader)
    export_adapters(where, reader.policy, reader.weights.name, adapters)
    sizes, workplace = reader.sizes, reader.workplace(reader.tasks.train)
    drafts = drafted(
        *(workplace, reader.policy),
        {"decoder": reader.decoder, "adapters": adapters},
        jax.random.fold_in(key, DRAFT),
        [RefinementState(task) for task in workplace.tasks],
        num_drafts=sizes.num_drafts,
        block=sizes.states * sizes.num_drafts,
    )
    trials = drafts.trials(range(sizes.num_runs))
    flat = [trial for row in trials.values() for trial in row]
    with SkillRunFile(where / "drafts.jsonl", workplace=workplace.fingerprint) as runs:
        found = executed(workplace, runs, flat, at_once=AT_ONCE)
    outcome = [run.outcome for run in found]
    shape = (len(trials), sizes.num_runs)
    document = {"faults": [list(read.faults) for read in drafts.read]}
    parsed = np.array([read.skill is not None for read in drafts.read])
    arrays = {"parsed": parsed, "outcome": np.array(outcome, np.int32).reshape(shape)}
    return arrays, document


def _trained(where: Path, key: Key, reader: Reader) -> Made:
    """Adapters that learned from what their drafts led to."""
    sizes, workplace = reader.sizes, reader.workplace(reader.tasks.train)
    config, hyper = reader_algorithm(sizes)
    trained = train_skills(
        *(where, jax.random.fold_in(key, TRAIN), workplace, reader.policy),
        *(config, hyper, {"adapters": read_adapters(where.parent / "base")}),
        tasks=workplace.tasks,
        settings=reader_settings(sizes),
        learning_rate=reader_rate(sizes),
        frozen={"decoder": reader.decoder},
        execute_at_once=AT_ONCE,
    )
    adapters = trained.state.params["adapters"]  # pyright: ignore
    save_tree(where / "adapters.safetensors", jax.device_get(adapters), {})
    export_adapters(where, reader.policy, reader.weights.name, adapters)
    seeds = [node for node in trained.tree.nodes if not node.phase]
    document = {
        "warnings": trained.warnings,
        "seed_calls": sum(node.executor_calls for node in seeds),
        "seed_tokens": sum(node.tokens for node in seeds),
    }
    return {"retained": np.array([n.retained for n in trained.tree.nodes])}, document


def _evaluation(where: Path, key: Key, reader: Reader) -> Made:
    adapters = {
        part: read_adapters(where.parent / part) for part in ("base", "trained")
    }
    return evaluate_reader(where, jax.random.fold_in(key, EVALUATE), reader, adapters)


def main(words: list[str]) -> int:
    """See the module's first lines."""
    folder, config = words
    settings = json.loads(config)
    sizes = settings["sizes"]
    sizes = ReaderSizes(**{**sizes, "lengths": tuple(sizes["lengths"])})
    setting = TextSetting.from_json(settings["setting"])
    run_reader(Path(folder), settings["policy"], sizes, settings["seed"], setting)
    return 0


if __name__ == "__main__":
    run_program(main)
