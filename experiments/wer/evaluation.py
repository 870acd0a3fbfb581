"""What the skills of a seed are worth: written, merged, chosen, and tried once.

Every inference writes skills for training tasks. They are merged by vote into one a
domain, in several lengths, of which validation tasks choose one. That one is tried on
the locked test, which nothing else has seen. All that is compared meets the same luck.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NamedTuple

import jax
import numpy as np

from experiments.wer.base import words_of_place
from experiments.wer.config import DOMAINS, Sizes
from experiments.wer.executor import execute
from experiments.wer.methods import NONE, RIGHT, Inference, cell_name, inferences
from experiments.wer.optimizer import optimizer_policy
from experiments.wer.places import Place
from experiments.wer.skill_lines import lines_of, working_sets
from experiments.wer.workplace import ToolsWorkplace
from jerp.envs.rule_language import read_sentence
from jerp.runs.skills.depth import Depth
from jerp.runs.skills.merge import MeasuredSkill, merge_by_vote
from jerp.runs.skills.refine import refine_skills
from jerp.runs.skills.settings import EvidenceShown
from jerp.skills.document import Skill, parse_skill, render_skill
from jerp.typing import Key

__all__ = ["Asker", "Tried", "choose", "evaluate_seed", "merged"]

REFINE, LUCK, VALIDATE = range(3)
"""Streams of random keys of an evaluation."""


class Tried(NamedTuple):
    """What came of a skill on the tasks of a domain.

    Attributes:
      success: `[N, n]` bool.
      calls: of the executor.
    """

    success: np.ndarray
    calls: int


@dataclass(frozen=True, eq=False)
class Asker:
    """Tries lines on tasks of a domain; the same ones are tried once.

    Attributes:
      key: of all runs; not consumed.
      place: where.
      executor: parameters.
      tasks: leaves `[N, ...]`, of all domains.
      num_runs: n, of each.
    """

    key: Key
    place: Place
    executor: Any
    tasks: Any
    num_runs: int
    _known: dict[tuple[int, tuple[int, ...]], Tried] = field(default_factory=dict)

    def rows(self, domain: int) -> np.ndarray:
        """The tasks of a domain."""
        return np.flatnonzero(self.place.domain_of(self.tasks) == domain)

    def __call__(self, domain: int, lines: tuple[int, ...]) -> Tried:
        """Of a domain, by its position."""
        if (domain, lines) not in self._known:
            rows = self.rows(domain)
            runs = execute(
                *(self.key, self.place, self.executor),
                jax.tree.map(lambda x: np.asarray(x)[rows], self.tasks),
                working_sets([lines] * len(rows)),
                num_runs=self.num_runs,
                task_id=rows,
            )
            self._known[domain, lines] = Tried(runs.success, int(runs.mask.sum()))
        return self._known[domain, lines]


def merged(
    place: Place, skills: Sequence[MeasuredSkill], lengths: Sequence[int]
) -> list[Skill | None]:
    """The skill of a domain by vote, in each length; None of no skills.

    Args:
      place: whose words the skills are in.
      skills: of the domain's tasks.
      lengths: most steps.
    """
    if not skills:
        return [None]

    def topic(step: str) -> str:
        pair = read_sentence(place.env.language, step)
        return step if pair is None else str(pair[0])

    return [merge_by_vote(skills, max_steps=n, topic=topic) for n in lengths]


def choose(
    candidates: Sequence[Skill | None], tried: Callable[[Skill | None], Tried]
) -> tuple[Skill | None, float, int]:
    """The candidate with most success; of equals the first.

    Args:
      candidates: any, at least one.
      tried: what came of one on validation tasks.

    Returns:
      It, its success, and the executor's calls that choosing took, each different
      candidate once.
    """
    calls = {c: tried(c).calls for c in candidates}
    shares = [float(tried(c).success.mean()) for c in candidates]
    best = int(np.argmax(shares))
    return candidates[best], shares[best], sum(calls.values())


def evaluate_seed(
    where: Path,
    key: Key,
    test_key: Key,
    executor: Any,
    params_of: Callable[[int], Any],
    train_tasks: Any,
    *,
    sizes: Sizes,
    evidence: EvidenceShown,
) -> tuple[dict[str, Any], dict[str, Any]]:
    """Writes, merges, chooses and tries all skills of a seed.

    Args:
      where: folder of the job; what is killed goes on.
      key: not consumed.
      test_key: of the test's tasks, the same for all seeds; not consumed.
      executor: parameters.
      params_of: the optimizer's parameters after a phase.
      train_tasks: leaves `[N, ...]`.
      sizes: numbers of tasks and runs.
      evidence: what a revision is written from.

    Returns:
      Arrays: by cell, success on the test `[N, n]`, domain after domain; `by_task`,
      success of each refinement task with its own skill. A document: by cell, its
      skills, what validation said of them, and what it cost.
    """
    place, keys = words_of_place().place, [jax.random.fold_in(key, i) for i in range(3)]
    held = jax.random.split(jax.random.clone(test_key))
    validation = place.tasks(keys[VALIDATE], sizes.validation, "train")
    test = place.tasks(held[0], sizes.test, "seen")
    judge = Asker(keys[LUCK], place, executor, validation, sizes.validation_runs)
    exam = Asker(held[1], place, executor, test, sizes.test_runs)
    cells, tried, by_task = {}, {}, {}
    for inference in inferences(sizes):
        depths = _refined(
            *(where / inference.name, keys[REFINE], executor),
            *(params_of(inference.phase), train_tasks, inference, sizes, evidence),
        )
        # Along training it is shown after all rounds alone.
        first = 0 if inference.rounds == sizes.depths else inference.rounds
        for number in range(first, len(depths)):
            name = cell_name(inference.name, number)
            cells[name], lines = _cell(depths[: number + 1], judge, sizes)
            tried[name] = _tried(exam, lines)
            by_task[name] = np.array([*depths[number].success.values()], np.float32)
    right = [place.right_lines(name) for name in DOMAINS]
    tried |= {NONE: _tried(exam, [()] * len(DOMAINS)), RIGHT: _tried(exam, right)}
    rows = np.concatenate([exam.rows(d) for d in range(len(DOMAINS))])
    arrays = {
        "test": tried,
        "by_task": by_task,
        "domain": place.domain_of(test)[rows],
        "task": _same_tasks(test)[rows],
    }
    return arrays, {"cells": cells}


def _refined(
    where: Path,
    key: Key,
    executor: Any,
    params: Any,
    train_tasks: Any,
    inference: Inference,
    sizes: Sizes,
    evidence: EvidenceShown,
) -> tuple[Depth, ...]:
    words, (luck, write) = words_of_place(), jax.random.split(jax.random.clone(key))
    number = sizes.train_tasks if inference.every_task else sizes.refinement
    tasks = jax.tree.map(lambda x: x[:number], train_tasks)
    workplace = ToolsWorkplace(luck, words, executor, tasks)
    return refine_skills(
        *(where, write, workplace, optimizer_policy(words), params, workplace.tasks),
        rounds=inference.rounds,
        num_drafts=inference.num_drafts,
        num_runs=inference.num_runs,
        evidence=evidence,
        execute_at_once=4096,
    ).depths


def _cell(
    depths: Sequence[Depth], judge: Asker, sizes: Sizes
) -> tuple[dict[str, Any], list[tuple[int, ...]]]:
    """What is known of the skills after the last of some depths, and their lines."""
    place, last = judge.place, depths[-1]
    chosen, shares, calls = [], [], 0
    for d, name in enumerate(DOMAINS):

        def tried(skill: Skill | None, d: int = d) -> Tried:
            return judge(d, _lines(place, skill))

        candidates = merged(place, _of_domain(last, name), sizes.lengths)
        skill, share, taken = choose(candidates, tried)
        chosen.append(skill)
        shares.append(share)
        calls += taken
    cell = {
        "skills": {
            name: None if skill is None else render_skill(skill)
            for name, skill in zip(DOMAINS, chosen, strict=True)
        },
        "validation": dict(zip(DOMAINS, shares, strict=True)),
        "validation_calls": calls,
        "calls": sum(depth.executor_calls for depth in depths),
        "draft_tokens": sum(depth.draft_tokens for depth in depths),
        "seconds": sum(depth.seconds for depth in depths),
        "parsed": last.parsed,
    }
    return cell, [_lines(place, skill) for skill in chosen]


def _of_domain(depth: Depth, domain: str) -> list[MeasuredSkill]:
    found: Mapping[str, str | None] = depth.skills
    return [
        MeasuredSkill(task, parse_skill(skill), depth.success[task])
        for task, skill in found.items()
        if skill is not None and task.split()[0] == domain
    ]


def _lines(place: Place, skill: Skill | None) -> tuple[int, ...]:
    return () if skill is None else lines_of(place, skill)


def _tried(exam: Asker, lines: Sequence[tuple[int, ...]]) -> np.ndarray:
    """`[N, n]` bool, domain after domain."""
    return np.concatenate([exam(d, one).success for d, one in enumerate(lines)])


def _same_tasks(tasks: Any) -> np.ndarray:
    """`[N]` int32, equal for tasks that are the same: some are drawn twice."""
    rows = [np.asarray(leaf) for leaf in jax.tree.leaves(tasks)]
    flat = np.concatenate([row.reshape(len(row), -1) for row in rows], axis=1)
    return np.unique(flat, axis=0, return_inverse=True)[1].ravel().astype(np.int32)
