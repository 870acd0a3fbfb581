"""The rubric of the long-memory domain: an answer, its session, and nothing outdated.

A draft is an answer and the number of one session in brackets, such as `Tuesday [12]`.
The public criteria are those of a cited answer, and that no newer session in hand tells
of the same thing; only the verifier knows what holds by the last session.
"""

from __future__ import annotations

from collections.abc import Sequence

from jerp.domains.controlled import cited_rubric
from jerp.domains.controlled.long_memory_tasks import THINGS
from jerp.domains.controlled.research_corpus import terms, words
from jerp.records import Task

__all__ = ["PUBLIC", "WEIGHTS", "mentions", "newest_mention", "public_scores", "scores"]

WEIGHTS = {"correct": 0.6, "source": 0.15, "newest": 0.05, "grounded": 0.1, "form": 0.1}
PUBLIC = ("form", "grounded", "newest")
_VALUES = frozenset(
    word for thing in THINGS for value in thing.values for word in words(value)
)
"""Words that are a value of some thing."""


def mentions(task: Task, number: int) -> list[str]:
    """Sentences of a session that name the person and share a further word.

    Args:
      task: the task.
      number: of the session, from 1.
    """
    person = set(words(cited_rubric.subject(task)))
    asked = {term for term in terms(task.prompt) if len(term) > 1} - person
    return [
        sentence
        for sentence in task.payload["passages"][number - 1]
        if person <= set(words(sentence)) and asked & set(words(sentence))
    ]


def newest_mention(task: Task, sessions: Sequence[int]) -> int | None:
    """The latest of the sessions that tells of what is asked, or None."""
    return max((n for n in sessions if mentions(task, n)), default=None)


def public_scores(
    task: Task, draft: str | None, hand: Sequence[int]
) -> dict[str, float]:
    """The criteria that a check may ask, each 0 or 1.

    Args:
      task: the task.
      draft: an answer with its session.
      hand: numbers of the sessions in hand.

    Returns:
      `form`: short, of the kind that was asked, citing one session in hand. `grounded`:
      good form, and one sentence of that session holds every word the answer adds to
      the question. `newest`: grounded, and no later session in hand tells of the thing.
    """
    score = cited_rubric.public_scores(task, draft, hand)
    _, cited = cited_rubric.parse_draft(draft or "")
    newest = score["grounded"] > 0 and cited == newest_mention(task, hand)
    return {
        "form": score["form"],
        "grounded": score["grounded"],
        "newest": float(newest),
    }


def scores(task: Task, draft: str | None, hand: Sequence[int]) -> dict[str, float]:
    """All criteria, each 0 or 1; the verifier's own, since they need the gold answer.

    `correct`: a short answer with the value that holds by the last session and no
    second value of any kind, in reach or not; what the question says is no value.
    `source`: correct, in good form, citing the session that tells it. `newest`,
    `grounded` and `form` are paid as far as the answer is correct.
    """
    verdict = cited_rubric.scores(task, draft, hand)
    correct = verdict["correct"] * (not _has_second_value(task, draft or ""))
    public = public_scores(task, draft, hand)
    return {
        "correct": correct,
        "source": verdict["source"] * correct,
        **{name: public[name] * correct for name in PUBLIC},
    }


def _has_second_value(task: Task, draft: str) -> bool:
    """Whether an answer says a value, of any kind, beside the right one.

    A number counts where a number is asked for or where a session says it: the day of
    the month that is invented behind a weekday is neither.
    """
    answer, _ = cited_rubric.parse_draft(draft)
    said = set(words(answer)) - set(words(task.prompt))
    said -= set(words(task.payload["hidden"]["answer"]))
    numbers = {word for word in said if any(letter.isdigit() for letter in word)}
    if numbers and (
        task.payload["kind"] == "number" or not numbers.isdisjoint(_stated(task))
    ):
        return True
    return not said.isdisjoint(_VALUES)


def _stated(task: Task) -> set[str]:
    sessions = task.payload["passages"]
    return {w for session in sessions for s in session for w in words(s)}
