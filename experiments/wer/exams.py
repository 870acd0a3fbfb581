"""Skills of tasks become one a domain: merged, chosen in validation, tried once.

Skills are merged by vote, in several lengths, of which validation tasks choose one.
That one is tried on the locked test, which nothing else has seen. All that is compared
meets the same luck.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import jax
import numpy as np

from experiments.wer.base import words_of_place
from experiments.wer.config import DOMAINS, Sizes
from experiments.wer.executor import execute
from experiments.wer.places import Place
from experiments.wer.skill_lines import lines_of, working_sets
from jerp.envs.rule_language import read_sentence
from jerp.runs.skills.depth import Depth
from jerp.runs.skills.merge import MeasuredSkill, merge_by_vote
from jerp.skills.document import Skill, parse_skill, render_skill
from jerp.typing import Key

__all__ = ["Asker", "Exams", "Tried", "choose", "merged"]


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

    def of_all(self, lines: Sequence[tuple[int, ...]]) -> np.ndarray:
        """`[N, n]` bool, domain after domain, with the lines of each."""
        return np.concatenate([self(d, one).success for d, one in enumerate(lines)])


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


@dataclass(frozen=True, eq=False)
class Exams:
    """Validation and the locked test of a seed's executor.

    Attributes:
      judge: tries skills on validation tasks.
      exam: tries the chosen ones on the test's.
      lengths: numbers of steps that a merged skill may have.
    """

    judge: Asker
    exam: Asker
    lengths: tuple[int, ...]

    @classmethod
    def of_seed(cls, keys: Sequence[Key], test_key: Key, executor: Any, sizes: Sizes):
        """The exams of an executor.

        Args:
          keys: of validation's tasks and of its luck; not consumed.
          test_key: of the test's tasks and luck, the same for all seeds; not consumed.
          executor: parameters.
          sizes: numbers of tasks and runs.
        """
        place, draw = words_of_place().place, jax.random.clone(keys[0])
        held = jax.random.split(jax.random.clone(test_key))
        validation = place.tasks(draw, sizes.validation, "train")
        test = place.tasks(held[0], sizes.test, "seen")
        return cls(
            Asker(keys[1], place, executor, validation, sizes.validation_runs),
            Asker(held[1], place, executor, test, sizes.test_runs),
            sizes.lengths,
        )

    @property
    def about_tasks(self) -> dict[str, np.ndarray]:
        """`domain` and `task` of the test, domain after domain; equal tasks are one."""
        rows = np.concatenate([self.exam.rows(d) for d in range(len(DOMAINS))])
        domain = self.exam.place.domain_of(self.exam.tasks)
        return {"domain": domain[rows], "task": _same_tasks(self.exam.tasks)[rows]}

    def cell(self, depths: Sequence[Depth]) -> tuple[dict[str, Any], np.ndarray]:
        """What is known of the skills after the last of some depths.

        Returns:
          A document: skills, what validation said of them, and what they cost; and
          success on the test, `[N, n]`, domain after domain.
        """
        place, last = self.judge.place, depths[-1]
        chosen, shares, calls = [], [], 0
        for d, name in enumerate(DOMAINS):

            def tried(skill: Skill | None, d: int = d) -> Tried:
                return self.judge(d, _lines(place, skill))

            candidates = merged(place, _of_domain(last, name), self.lengths)
            skill, share, taken = choose(candidates, tried)
            chosen.append(skill)
            shares.append(share)
            calls += taken
        document = {
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
            "tests": sum(depth.tests for depth in depths),
            "accepted": sum(depth.accepted for depth in depths),
        }
        return document, self.exam.of_all([_lines(place, skill) for skill in chosen])


def _of_domain(depth: Depth, domain: str) -> list[MeasuredSkill]:
    found: Mapping[str, str | None] = depth.skills
    return [
        MeasuredSkill(task, parse_skill(skill), depth.success[task])
        for task, skill in found.items()
        if skill is not None and task.split()[0] == domain
    ]


def _lines(place: Place, skill: Skill | None) -> tuple[int, ...]:
    return () if skill is None else lines_of(place, skill)


def _same_tasks(tasks: Any) -> np.ndarray:
    """`[N]` int32, equal for tasks that are the same: some are drawn twice."""
    rows = [np.asarray(leaf) for leaf in jax.tree.leaves(tasks)]
    flat = np.concatenate([row.reshape(len(row), -1) for row in rows], axis=1)
    return np.unique(flat, axis=0, return_inverse=True)[1].ravel().astype(np.int32)
