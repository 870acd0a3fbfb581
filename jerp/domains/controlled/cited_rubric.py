"""The rubric of the research domain: what a draft is, what its public part can see.

A draft is an answer and a source in brackets, such as `granite [2]`. The public
criteria need no gold answer, so a check may ask them; only the verifier adds the hidden
ones, and pays the public ones for a correct answer alone: none pays for form.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

from jerp.domains.controlled.research_corpus import terms, words
from jerp.records import Task

__all__ = [
    "MAX_WORDS",
    "PUBLIC",
    "WEIGHTS",
    "evidence",
    "parse_draft",
    "public_scores",
    "scores",
    "subject",
]

MAX_WORDS = 8
WEIGHTS = {
    "correct": 0.6,
    "source": 0.15,
    "grounded": 0.1,
    "subject": 0.05,
    "form": 0.1,
}
PUBLIC = ("form", "grounded", "subject")


def parse_draft(draft: str) -> tuple[str, int | None]:
    """An answer and the number of the one source that it cites, or None."""
    cited = re.findall(r"\[(\d+)\]", draft)
    answer = re.sub(r"\[\d+\]", " ", draft)
    return " ".join(answer.split()), int(cited[0]) if len(cited) == 1 else None


def subject(task: Task) -> str:
    """The names and years of the question: what an answering sentence must mention."""
    found = re.findall(r"\b[A-Z][a-z]+|\b\d{4}", task.prompt)
    return " ".join(name for name in found if terms(name))


def evidence(task: Task, answer: str, number: int) -> list[str]:
    """Sentences of a passage that hold every word the answer adds to the question."""
    added = _added(task, answer)
    sentences = task.payload["passages"][number - 1]
    return [s for s in sentences if added and added <= set(words(s))]


def public_scores(
    task: Task, draft: str | None, hand: Sequence[int]
) -> dict[str, float]:
    """The criteria that a check may ask, each 0 or 1.

    Args:
      task: the task.
      draft: an answer with its source.
      hand: numbers of the passages in hand.

    Returns:
      `form`: short, of the kind that was asked, citing one passage in hand.
      `grounded`: good form, and one sentence of that passage holds every word the
      answer adds to the question. `subject`: grounded, and that sentence mentions the
      names and years of the question.
    """
    answer, cited = parse_draft(draft or "")
    form = _is_short(answer) and _is_kind(task, answer) and cited in hand
    found = evidence(task, answer, cited) if form and cited is not None else []
    about = set(words(subject(task)))
    return {
        "form": float(form),
        "grounded": float(bool(found)),
        "subject": float(any(about <= set(words(sentence)) for sentence in found)),
    }


def scores(task: Task, draft: str | None, hand: Sequence[int]) -> dict[str, float]:
    """All criteria, each 0 or 1; the verifier's own, since they need the gold answer.

    `correct`: a short answer with the gold value and no other value of its kind that
    the task's passages give. `source`: correct, in good form, citing the gold passage.
    `grounded`, `subject` and `form` are paid as far as the answer is correct.
    """
    hidden = task.payload["hidden"]
    answer, cited = parse_draft(draft or "")
    found = [v for v in (hidden["answer"], *hidden["rivals"]) if _holds(answer, v)]
    score = public_scores(task, draft, hand)
    correct = _is_short(answer) and found == [hidden["answer"]]
    source = correct and score["form"] > 0 and cited == hidden["source"]
    return {
        "correct": float(correct),
        "source": float(source),
        **{name: score[name] * correct for name in PUBLIC},
    }


def _is_short(answer: str) -> bool:
    return 0 < len(words(answer)) <= MAX_WORDS


def _is_kind(task: Task, answer: str) -> bool:
    added = _added(task, answer)
    kind = task.payload["kind"]
    if kind == "year":
        return any(re.fullmatch(r"1\d{3}", word) for word in added)
    if kind == "number":
        return any(word.isdigit() for word in added)
    if kind == "name":
        return any(word.lower() in added for word in re.findall(r"[A-Z]\w+", answer))
    return any(word.isalpha() for word in added)


def _added(task: Task, answer: str) -> set[str]:
    return set(terms(answer)) - set(terms(task.prompt)) - {"answer"}


def _holds(answer: str, value: str) -> bool:
    return f" {' '.join(words(value))} " in f" {' '.join(words(answer))} "
