"""Skills of many tasks become one of their domain, written by a language model.

The model reads all skills and how their runs went, and answers as an optimizer does:
reasoning and skill in blocks of their own. What it writes is read strictly. Where it
cannot be used an error says why, or, if there is a fallback, that merges and the
merger's `notes` say so.
"""

from __future__ import annotations

import logging
from collections.abc import Iterable, Sequence

from jerp.bridge.blocking import wait_for
from jerp.bridge.executor import (
    FAILED,
    Completion,
    Executor,
    Message,
    Request,
    Sampling,
    complete_checked,
)
from jerp.errors import ExecutorError, InputError, SkillError
from jerp.ops.checks import check_count
from jerp.runs.skills.draft_prompt import FORM
from jerp.runs.skills.merge import MeasuredSkill, Merger, check_measured
from jerp.skills.document import Skill, parse_skill, render_skill
from jerp.skills.draft import parse_draft

__all__ = ["ModelMerger", "merge_messages"]

logger = logging.getLogger(__name__)

SYSTEM = """\
You merge skills. A skill is a short procedure that an assistant reads before each \
task of one kind."""

ASK = """\
Merge them into one skill for all tasks of this kind. Keep what the skills with most \
successes have in common, leave out what contradicts it, and say nothing twice."""

GREEDY = Sampling(temperature=0.0, max_tokens=2048)


def merge_messages(
    skills: Sequence[MeasuredSkill], *, max_chars: int
) -> tuple[Message, ...]:
    """What is asked: all skills, those with most success first.

    Args:
      skills: of one domain.
      max_chars: of all skills together; those that have no room are left out, and the
        prompt says how many.

    Raises:
      InputError: no skills, or not even one has room.

    Reference: Peng et al., "WER", arXiv:2608.17587, section 4: skills of a domain are
      merged into one by a large model; the words are our own.
    """
    skills = check_measured(skills)
    ranked = sorted(skills, key=lambda m: -(m.success or 0.0))
    parts, room = [], max_chars
    for measured in ranked:
        share = "unknown" if measured.success is None else f"{measured.success:.0%}"
        part = f"Runs that succeeded: {share}\n<skill>\n{render_skill(measured.skill)}"
        part += "</skill>"
        if len(part) > room:
            break
        parts.append(part)
        room -= len(part)
    if not parts:
        raise InputError(
            f"skills: expected at least one that has room in max_chars={max_chars}, "
            f"got {len(skills)}"
        )
    missing = len(ranked) - len(parts)
    if missing:
        parts.append(f"({missing} more skills, with no more success, were left out.)")
    said = "\n\n".join([f"There are {len(ranked)} skills.", *parts, f"{ASK} {FORM}"])
    return Message("system", SYSTEM), Message("user", said)


class ModelMerger:
    """A `Merger` by any executor of `jerp.bridge`.

    Args:
      executor: the model.
      sampling: how its answer is drawn.
      max_chars: of the skills in the prompt.
      secrets: see `jerp.skill_faults`.
      max_words: of the merged skill.
      fallback: merges where the model's answer cannot be used; None raises.

    Attributes:
      notes: why the fallback merged, a sentence each time.
      executor_calls: how often the model was asked, answered or not.
      tokens: that it read and wrote.

    Raises:
      InputError: an argument that cannot be meant, by its name.
    """

    def __init__(
        self,
        executor: Executor,
        *,
        sampling: Sampling = GREEDY,
        max_chars: int = 24_000,
        secrets: Iterable[str | int | float] = (),
        max_words: int | None = None,
        fallback: Merger | None = None,
    ):
        check_count("max_chars", max_chars)
        if max_words is not None:
            check_count("max_words", max_words)
        if not callable(getattr(executor, "complete", None)):
            raise InputError(
                f"executor: expected one of jerp.bridge, got {executor!r:.80}"
            )
        if not isinstance(secrets, Iterable):
            raise InputError(
                f"secrets: expected texts and numbers, () for none, got {secrets!r:.80}"
            )
        self._executor, self._sampling, self._max_chars = executor, sampling, max_chars
        self._secrets, self._max_words = tuple(secrets), max_words
        self._fallback = fallback
        self.notes: list[str] = []
        self.executor_calls, self.tokens = 0, 0

    def __call__(self, skills: Sequence[MeasuredSkill]) -> Skill:
        """The skill of the domain.

        Raises:
          InputError: see `merge_messages`.
          ExecutorError: nobody answered, or the executor raised, and there is no
            fallback.
          SkillError: the answer has faults, and there is no fallback.
        """
        messages = merge_messages(skills, max_chars=self._max_chars)
        request = Request(messages, self._sampling)
        self.executor_calls += 1
        try:
            answer = wait_for(complete_checked(self._executor, [request]))[0]
            self.tokens += answer.tokens_in + answer.tokens_out
            return self._read(answer)
        except (ExecutorError, SkillError) as error:
            if self._fallback is None:
                raise
            note = f"{error}; these {len(skills)} skills were merged without it"
            self.notes.append(note)
            logger.warning("%s", note)
            return self._fallback(skills)

    def _read(self, answer: Completion) -> Skill:
        name = self._executor.fingerprint[:23]
        if answer.status in FAILED:
            raise ExecutorError(
                f"merge by {name}: expected an answer, got {answer.status}: "
                f"{answer.error}"
            )
        draft = parse_draft(
            answer.text, secrets=self._secrets, max_tokens=self._max_words
        )
        if draft.skill is None:
            raise SkillError(
                f"merge by {name}: expected a skill in its delimiters, got an answer "
                f"with the faults {', '.join(draft.faults)}{_reason(answer.text)}"
            )
        return draft.skill


def _reason(text: str) -> str:
    """What the parser says of a skill whose delimiters are as they should be."""
    body = text.partition("<skill>")[2].partition("</skill>")[0]
    if not body:
        return ""
    try:
        parse_skill(body)
    except SkillError as error:
        return f" ({error})"
    return ""
