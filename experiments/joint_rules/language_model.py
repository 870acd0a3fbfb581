"""A language model that reads rules: cloned, trained with its rules, and prompted.

    <run>/base/      adapters cloned from demonstrations that follow rules
    <run>/jerp/      trained with rules that the contrast reflector writes
    <run>/prompted/  no training: plain prompting, ReAct and Reflexion
    <run>/asked/     trained with rules that the model itself writes, frozen
    <run>/similar/   trained with rules that are retrieved by similarity

    python -m experiments.joint_rules.language_model RUN-FOLDER CONFIG-AS-JSON

Each part ends with `evaluation.safetensors`, and what is there is not done again;
training resumes behind its last checkpoint, and what the prompted model said is kept.
"""

from __future__ import annotations

import json
from functools import partial
from pathlib import Path
from typing import Any

import jax
import numpy as np

from experiments.jobs.adapters import export_adapters, read_adapters
from experiments.jobs.config import MODELS
from experiments.jobs.parts import Made, make_parts
from experiments.jobs.program import run_program
from experiments.joint_rules.base import all_rules
from experiments.joint_rules.language_model_cloning import cloned_adapters
from experiments.joint_rules.language_model_config import ReaderSizes, reader_algorithm
from experiments.joint_rules.language_model_prompted import prompted
from experiments.joint_rules.language_model_reader import (
    ORACLE,
    Chosen,
    Reader,
    chosen_tasks,
    evaluated,
    executor_of,
    held_out,
    open_reader,
    told_of,
)
from experiments.joint_rules.language_model_retrieval import Lines, Similar
from experiments.joint_rules.oracle import oracle_moves, right_moves
from jerp.bridge.contrast_reflector import ContrastReflector
from jerp.bridge.embedding import TextEmbedder
from jerp.bridge.executor import Sampling
from jerp.bridge.llm_reflector import LlmReflector
from jerp.rules.selection import select_top
from jerp.runs.jerp.loop import Trained, train_jerp
from jerp.runs.jerp.occasions import situate_by_replay
from jerp.runs.jerp.settings import RuleSettings
from jerp.storage.documents import write_json
from jerp.storage.rule_documents import PoolDocument, PoolRule
from jerp.storage.weights import load_weights
from jerp.training.joint import RuleConfig
from jerp.trajectory import Trajectory
from jerp.typing import Key

__all__ = ["JOINT", "PARTS", "run_reader"]

PARTS = ("base", "jerp", "prompted", "asked", "similar")
JOINT = ("jerp", "asked", "similar")
"""Parts that train."""

TASKS, CLONE, TRAIN, EVALUATE = range(4)
"""Streams of random keys."""

START_SCORE = 2.0
"""ExpeL's, of a rule that was just added."""

Found = dict[str, Any]


def run_reader(folder: Path, policy: str, sizes: ReaderSizes, seed: int) -> None:
    """Does what is not done yet of a run."""
    weights = load_weights(MODELS.get(policy, policy))
    reader, key = open_reader(weights, sizes), jax.random.key(seed)
    special = {"base": _base, "prompted": prompted}

    def make(where: Path) -> Made:
        return special.get(where.name, _joint)(where, key, reader), {}

    make_parts(folder, dict.fromkeys(PARTS, make), weights.fingerprint)


def _base(where: Path, key: Key, reader: Reader) -> Found:
    """Adapters that read rules; what they do with right ones, wrong ones and none."""
    adapters = cloned_adapters(where, jax.random.fold_in(key, CLONE), reader)
    export_adapters(where, reader.policy, reader.weights.name, adapters)
    held = held_out(key, reader)
    right, wrong = told_of(key, reader, held)
    play = partial(evaluated, jax.random.fold_in(key, EVALUATE), reader, held, adapters)
    none = np.full_like(right, -1)
    table = np.concatenate([all_rules(reader.place.rule_sizes), [[0, 0]]])
    return {
        "kind": held.kinds,
        # What -1 names is the last row, which says nothing.
        "right": table[right].astype(np.int32),
        "wrong": table[wrong].astype(np.int32),
        "played": {
            name: play(working_set=told, texts=reader.texts)
            for name, told in (("without", none), ("right", right), ("wrong", wrong))
        },
    }


def _joint(where: Path, key: Key, reader: Reader) -> Found:
    """Adapters and rules that learn together, in one of the variants of `JOINT`."""
    part, sizes = where.name, reader.sizes
    stream = jax.random.fold_in(key, TASKS)
    tasks = chosen_tasks(stream, reader, sizes.instances, "train")
    held = held_out(key, reader)
    number = sizes.similar_rules if part == "similar" else sizes.num_rules
    similar = partial(
        Similar,
        TextEmbedder(reader.weights),
        num_rules=number,
        tokens=sizes.rule_tokens,
    )
    retrieve = None
    if part == "similar":
        retrieve = similar(reader.words(tasks.tasks), tasks.kinds)
    trained = _trained(where, key, reader, tasks, retrieve, number)
    write_json(where / "warnings.json", {"warnings": trained.warnings})
    adapters = trained.state.train.params["adapters"]  # pyright: ignore
    export_adapters(where, reader.policy, reader.weights.name, adapters)
    pool = trained.state.pool
    best = np.asarray(
        select_top(pool, held.kinds, num_rules=number, token_budget=sizes.rule_tokens)
    )
    rules = best
    if retrieve is not None:
        rules = np.asarray(
            similar(reader.words(held.tasks), held.kinds)(pool, trained.book)
        )
    play = partial(evaluated, jax.random.fold_in(key, EVALUATE), reader, held, adapters)
    texts = trained.book.texts
    found = {"with": play(working_set=rules, texts=texts)}
    if part == "jerp":
        found["without"] = play(working_set=np.full_like(rules, -1), texts=texts)
    return {"played": found, "rules": rules, "best": best}


def _trained(
    where: Path,
    key: Key,
    reader: Reader,
    tasks: Chosen,
    retrieve: Similar | None,
    num_rules: int,
) -> Trained:
    part, sizes, place = where.name, reader.sizes, reader.place
    base = {"adapters": read_adapters(where.parent / "base")}
    _, hyper = reader_algorithm(sizes)
    return train_jerp(
        where,
        jax.random.fold_in(key, TRAIN),
        reader.task,
        hyper,
        tasks.tasks,
        base,
        rules=RuleSettings(
            RuleConfig(num_rules=num_rules, prompt_tokens=sizes.rule_tokens)
        ),
        reflector=_reflector(part, reader),
        task_keys=place.types,
        task_key=tasks.kinds,
        iterations=sizes.joint_iterations[part],
        language=place.env.language,
        reference=base,
        frozen={"decoder": reader.decoder},
        start_pool=None if retrieve is None else _right_pool(key, reader),
        chunk=1,
        play=reader.play,
        tell=partial(_told_again, reader.view),
        situate=situate_by_replay(place.env),
        task_words=reader.words(tasks.tasks),
        retrieve=retrieve,
        count_tokens=Lines(reader.weights.tokenizer),
    )


def _told_again(view: Any, data: Trajectory, tasks: Any) -> list[str]:
    """Transcripts, of which `tasks` adds nothing."""
    del tasks
    return view.transcripts(data)


def _reflector(part: str, reader: Reader) -> ContrastReflector | LlmReflector:
    """The model itself where it is asked; it is frozen, adapters and all left out."""
    sizes = reader.sizes
    if part != "asked":
        # Of so few instances two have to do.
        return ContrastReflector(reader.place.env.language, min_tasks=2)
    sampling = Sampling(temperature=0.0, max_tokens=sizes.reflection_tokens)
    return LlmReflector(
        executor_of(reader), sampling=sampling, max_chars=sizes.reflection_chars
    )


def _right_pool(key: Key, reader: Reader) -> PoolDocument:
    """All that is right, by type: more rules than a prompt has room for."""
    place, number = reader.place, reader.place.rule_sizes[1]
    stream = jax.random.fold_in(key, ORACLE)
    right = right_moves(oracle_moves(stream, place, reader.sizes.oracle_tasks))
    return PoolDocument(
        {
            name: tuple(
                PoolRule(reader.texts[s * number + move], START_SCORE)
                for s, move in enumerate(row)
                if move
            )
            for name, row in zip(place.types, right, strict=True)
        }
    )


def main(words: list[str]) -> int:
    """See the module's first lines."""
    folder, config = words
    settings = json.loads(config)
    sizes = settings["sizes"]
    sizes = ReaderSizes(**{**sizes, "types": tuple(sizes["types"])})
    run_reader(Path(folder), settings["policy"], sizes, settings["seed"])
    return 0


if __name__ == "__main__":
    run_program(main)
