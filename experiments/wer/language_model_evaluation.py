"""What the skills that a language model wrote are worth: merged, chosen, tried once.

Every way to write skills has as many runs of the executor a task. The skills of a way
are merged into one: by vote, in several lengths, and by the model itself, if what it
answers is a skill. Validation tasks choose one of these, and the locked test sees it.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any, NamedTuple

import jax
import numpy as np

from experiments.wer.language_model_config import ReaderSizes
from experiments.wer.language_model_reader import AT_ONCE, Reader
from jerp.bridge.executor import Sampling
from jerp.errors import ExecutorError, SkillError
from jerp.runs.skills.domain_workplace import DomainWorkplace
from jerp.runs.skills.merge import MeasuredSkill, merge_by_vote
from jerp.runs.skills.model_merge import ModelMerger
from jerp.runs.skills.refine import Refined, refine_skills
from jerp.runs.skills.work import executed
from jerp.skills.document import Skill, render_skill
from jerp.storage.skill_runs import SkillRun, SkillRunFile, Trial
from jerp.typing import Key, Outcome

__all__ = ["NONE", "WAYS", "WER", "Way", "evaluate_reader", "ways_of"]

NONE, WER = "none", "wer"


class Way(NamedTuple):
    """How skills are written for the training tasks.

    Attributes:
      name: of it, and of its folder.
      part: of the run, whose adapters write.
      rounds: of revision.
      num_runs: of a skill.
    """

    name: str
    part: str
    rounds: int
    num_runs: int


WAYS = ("seed", "untrained", WER)
"""By name: first skills alone, the loop before training, and after it."""


class Candidate(NamedTuple):
    """A skill that may be tried.

    Attributes:
      made: how it was merged.
      skill: as Markdown, None for none.
    """

    made: str
    skill: str | None


class Merged(NamedTuple):
    """All that came of merging.

    Attributes:
      candidates: at least one.
      note: why the model's merge is not among them, or "".
      executor_calls, tokens: that merging took.
    """

    candidates: list[Candidate]
    note: str = ""
    executor_calls: int = 0
    tokens: int = 0


def ways_of(sizes: ReaderSizes) -> tuple[Way, ...]:
    """All of `WAYS`; a task has `(rounds + 1) * num_runs` runs in each."""
    times, n = sizes.rounds + 1, sizes.num_runs
    return (
        Way("seed", "base", 0, times * n),
        Way("untrained", "base", sizes.rounds, n),
        Way(WER, "trained", sizes.rounds, n),
    )


def evaluate_reader(
    where: Path, key: Key, reader: Reader, adapters: dict[str, Any]
) -> tuple[dict[str, Any], dict[str, Any]]:
    """Writes, merges, chooses and tries the skills of all ways.

    Args:
      where: folder of the part; what is killed goes on.
      key: not consumed; all ways share it.
      reader: who writes and follows.
      adapters: of the optimizer, by part of the run.

    Returns:
      `test`: by way, and without a skill, outcomes `[N, n]`. A document: by way, its
      skill, how it was chosen, and what it cost.
    """
    sizes, tasks, chosen = reader.sizes, reader.tasks, {}
    judge = reader.workplace(tasks.validation)
    with SkillRunFile(where / "validation.jsonl", workplace=judge.fingerprint) as runs:
        for way in ways_of(sizes):
            refined = _refined(where, key, reader, adapters[way.part], way)
            merged = _merged(reader, refined.skills)
            found = [
                _tried(judge, runs, one.skill, sizes.validation_runs)
                for one in merged.candidates
            ]
            shares = [_share(_outcomes(rows)) for rows in found]
            best = int(np.nanargmax([-1.0, *shares])) - 1
            one = merged.candidates[max(best, 0)]
            chosen[way.name] = {
                **one._asdict(),
                "validation": dict(
                    zip([c.made for c in merged.candidates], shares, strict=True)
                ),
                "validation_calls": sum(map(_calls, found)),
                "merge_note": merged.note,
                **_costs(refined, merged),
            }
    exam = reader.workplace(tasks.test)
    with SkillRunFile(where / "test.jsonl", workplace=exam.fingerprint) as runs:
        skills = {NONE: None, **{name: one["skill"] for name, one in chosen.items()}}
        tried = {
            name: _outcomes(_tried(exam, runs, skill, sizes.test_runs))
            for name, skill in skills.items()
        }
    return {"test": tried}, {"ways": chosen}


def _refined(where: Path, key: Key, reader: Reader, adapters: Any, way: Way) -> Refined:
    workplace = reader.workplace(reader.tasks.train)
    return refine_skills(
        *(where / way.name, jax.random.clone(key), workplace, reader.policy),
        {"decoder": reader.decoder, "adapters": adapters},
        workplace.tasks,
        rounds=way.rounds,
        num_runs=way.num_runs,
        block=reader.sizes.train_tasks,
        execute_at_once=AT_ONCE,
    )


def _merged(reader: Reader, skills: Sequence[MeasuredSkill]) -> Merged:
    """Each different skill once, with its shortest name first."""
    if not skills:
        return Merged([Candidate("none", None)], "no draft parsed: nothing to merge")
    found: dict[str, str] = {}

    def add(made: str, skill: Skill) -> None:
        found.setdefault(render_skill(skill), made)

    for length in reader.sizes.lengths:
        add(f"vote, {length} steps", merge_by_vote(skills, max_steps=length))
    merger = ModelMerger(
        reader.executor,
        sampling=Sampling(temperature=0.0, max_tokens=reader.sizes.merge_tokens),
        max_chars=4 * reader.sizes.prompt_tokens,
        secrets=[
            secret
            for task in reader.tasks.train
            for secret in reader.place.secrets(task)
        ],
    )
    note = ""
    try:
        add("the model", merger(skills))
    except (ExecutorError, SkillError) as error:
        note = str(error)
    candidates = [Candidate(made, text) for text, made in found.items()]
    return Merged(candidates, note, merger.executor_calls, merger.tokens)


def _tried(
    workplace: DomainWorkplace, runs: SkillRunFile, skill: str | None, number: int
) -> list[list[SkillRun]]:
    """Runs of each task with a skill; all skills have the same luck."""
    trials = [[Trial(t, skill, s) for s in range(number)] for t in workplace.tasks]
    flat = [trial for row in trials for trial in row]
    found = iter(executed(workplace, runs, flat, at_once=AT_ONCE))
    return [[next(found) for _ in row] for row in trials]


def _outcomes(rows: Sequence[Sequence[SkillRun]]) -> np.ndarray:
    return np.array([[run.outcome for run in row] for row in rows], np.int32)


def _share(outcome: np.ndarray) -> float:
    """Of the runs that were answered; NaN without any."""
    answered = outcome != Outcome.INFRASTRUCTURE
    if not answered.any():
        return float("nan")
    return float((outcome == Outcome.SUCCESS)[answered].mean())


def _calls(rows: Sequence[Sequence[SkillRun]]) -> int:
    return sum(run.executor_calls for row in rows for run in row)


def _costs(refined: Refined, merged: Merged) -> dict[str, Any]:
    """Of writing and merging; what choosing took stands beside it."""
    depths = refined.depths
    return {
        "calls": sum(d.executor_calls for d in depths) + merged.executor_calls,
        "tokens": sum(d.executor_tokens for d in depths) + merged.tokens,
        "draft_tokens": sum(d.draft_tokens for d in depths),
        "seconds": sum(d.seconds for d in depths),
        "parsed_by_depth": [d.parsed for d in depths],
        "success_by_depth": [d.metrics["success"] for d in depths],
    }
