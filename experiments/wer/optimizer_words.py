"""What the optimizer of skills reads and writes: words of its own, one token each.

A prompt is the domain, the skill as it is, and what came of it, verbatim: a run that
succeeded and one that failed, each as requests, calls, and what the calls brought. A
draft is a block of reasoning, situations that it looked at, and the body of a skill,
situations and moves in turn:

    travel SKILL (situation move)* SUCCESS ... FAILURE ... WRITE
    REASON situation* END_REASON BODY (situation move)+ END_BODY
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from enum import IntEnum
from functools import cached_property

import numpy as np

from experiments.wer.executor import Runs
from experiments.wer.places import NUM_LINES, Place
from experiments.wer.skill_lines import skill_of
from jerp.envs.tools_tables import REQUESTS, WAITING
from jerp.errors import SkillError
from jerp.runs.skills.work import ReadDraft

__all__ = ["MAX_REASONING", "OptimizerWords", "Word"]

MAX_REASONING = 4
"""Situations that a block of reasoning names at no cost."""

_NO_DELIMITERS, _ORDER = "no_delimiters", "order"
_MALFORMED, _LENGTH = "malformed_skill", "length"
"""Faults, named as in `jerp.skills.draft`."""


class Word(IntEnum):
    """Words of structure; 0 is padding."""

    SKILL = 1
    SUCCESS = 2
    FAILURE = 3
    WRITE = 4
    REASON = 5
    END_REASON = 6
    BODY = 7
    END_BODY = 8


@dataclass(frozen=True)
class OptimizerWords:
    """The words of a place.

    Attributes:
      place: whose domains, situations, moves and requests are words.
    """

    place: Place

    @property
    def num_prompt_tokens(self) -> int:
        """P: a domain, a skill and two whole runs."""
        run = 1 + 2 * self.place.horizon
        return 3 + 2 * NUM_LINES + 2 * run

    @property
    def num_draft_tokens(self) -> int:
        """L: twice the reasoning that costs nothing, and a body of all lines."""
        return 4 + 2 * MAX_REASONING + 2 * NUM_LINES

    @cached_property
    def firsts(self) -> tuple[int, int, int, int, int]:
        """First domain, situation, move and request, and how many words there are."""
        situations, moves = self.place.rule_sizes
        sizes = (len(self.place.domains), situations, moves, len(REQUESTS))
        return tuple((1 + len(Word) + np.cumsum((0, *sizes))).tolist())

    @property
    def size(self) -> int:
        """V."""
        return self.firsts[-1]

    def evidence(self, runs: Runs, task: int, run: int) -> tuple[int, ...]:
        """One run, verbatim: each request once, each call, and what it brought.

        Args:
          runs: of `execute`.
          task: row of `runs`.
          run: of that row.
        """
        _, situation, move, request = self.firsts[:4]
        fields, actions = runs.fields[task, run], runs.action[task, run]
        words = []
        for step in range(int(runs.mask[task, run].sum())):
            asked, status, last = fields[step, 2], fields[step, 3], fields[step, -1]
            if status == WAITING:
                words.append(request + int(asked) - 1)
            else:
                words.append(situation + int(last))
            words.append(move + 1 + int(actions[step]))
        return tuple(words)

    def prompt(
        self,
        domain: int,
        lines: Sequence[int],
        success: Iterable[int] | None = None,
        failure: Iterable[int] | None = None,
    ) -> np.ndarray:
        """`[P]` int32, padded.

        Args:
          domain: position in the place's.
          lines: of the skill as it is; none before the first.
          success: words of a run that succeeded, or None.
          failure: words of one that failed, or None.
        """
        words = [self.firsts[0] + domain, int(Word.SKILL), *self.pairs(lines)]
        for head, run in ((Word.SUCCESS, success), (Word.FAILURE, failure)):
            words += [] if run is None else [int(head), *run]
        words.append(int(Word.WRITE))
        row = np.zeros(self.num_prompt_tokens, np.int32)
        row[: len(words)] = words
        return row

    def draft(self, reasoning: Iterable[int], lines: Sequence[int]) -> np.ndarray:
        """`[L]` int32, padded: what would be written.

        Args:
          reasoning: situations.
          lines: of the skill.
        """
        thought = [self.firsts[1] + int(s) for s in reasoning]
        words = [int(Word.REASON), *thought, int(Word.END_REASON)]
        words += [int(Word.BODY), *self.pairs(lines), int(Word.END_BODY)]
        row = np.zeros(self.num_draft_tokens, np.int32)
        row[: len(words)] = words
        return row

    def pairs(self, lines: Iterable[int]) -> list[int]:
        """Situations and moves of lines, in turn."""
        _, situation, move = self.firsts[:3]
        found = []
        for line in lines:
            s, m = (int(x) for x in self.place.rules[line])
            found += [situation + s, move + m]
        return found

    def read(self, domain: str, words: Sequence[int]) -> ReadDraft:
        """A draft as a skill, or what is wrong with it; never raises.

        Args:
          domain: of the task.
          words: of a draft, without padding.
        """
        words, faults = [int(x) for x in words], []
        heads = [words.count(word) for word in list(Word)[4:]]
        thought = words[1 : words.index(Word.END_REASON)] if heads[1] else []
        reasoning = " ".join(self.say(thought))
        skill = None
        if heads != [1, 1, 1, 1]:
            faults.append(_NO_DELIMITERS)
        elif (
            words[0] != Word.REASON
            or words[len(thought) + 2] != Word.BODY
            or words[-1] != Word.END_BODY
        ):
            faults.append(_ORDER)
        else:
            skill = self._skill(domain, words[len(thought) + 3 : -1], faults)
        return ReadDraft(skill, reasoning, len(thought), tuple(faults))

    def say(self, words: Iterable[int]) -> list[str]:
        """What words stand for, for people."""
        language, firsts = self.place.env.language, self.firsts
        names = ["", *(word.name for word in Word), *self.place.domains]
        names += [*language.situations, *language.moves]
        names += [f"request {i + 1}" for i in range(firsts[4] - firsts[3])]
        return [names[word] for word in words]

    def _skill(self, domain: str, body: list[int], faults: list[str]):
        _, situation, move, request = self.firsts[:4]
        pairs = list(zip(body[::2], body[1::2], strict=False))
        fine = all(situation < s < move < m < request for s, m in pairs)
        if not body or len(body) % 2 or not fine:
            faults.append(_MALFORMED)
            return None
        lines = [self.place.line(s - situation, m - move) for s, m in pairs]
        try:
            return skill_of(self.place, domain, lines)
        except SkillError:
            faults.append(_LENGTH)
            return None
