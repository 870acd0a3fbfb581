"""Skills of many tasks become one of their domain.

The paper lets a large language model merge them. Whoever has one writes a `Merger` with
it; `merge_by_vote` is a stand-in by program, which needs no model: steps that are in
skills that did well stay, and no step is written anew.
"""

from __future__ import annotations

import math
import numbers
from collections.abc import Callable, Iterable, Sequence
from typing import Any, NamedTuple, Protocol

from jerp.errors import InputError
from jerp.ops.checks import check_count
from jerp.skills.document import SKILL_LIMITS, Skill

__all__ = ["MeasuredSkill", "Merger", "check_measured", "merge_by_vote"]


class MeasuredSkill(NamedTuple):
    """A skill and how its runs went.

    Attributes:
      task: key of the task that it is for.
      skill: it.
      success: share of its answered runs that succeeded; None, or NaN, without any.
    """

    task: str
    skill: Skill
    success: float | None


class Merger(Protocol):
    """Makes one skill of those of a domain."""

    def __call__(self, skills: Sequence[MeasuredSkill]) -> Skill:
        """The skill of the domain; at least one is given."""
        ...


def merge_by_vote(
    skills: Sequence[MeasuredSkill],
    *,
    max_steps: int = SKILL_LIMITS.steps,
    topic: Callable[[str], str] = lambda step: step,
) -> Skill:
    """The steps for which most of what succeeded speaks.

        weight(step) = sum over skills with the step of their success

    Steps of one topic contradict each other, and the heaviest stands for them all. Of
    topics the heaviest stay. They stand in the order of the places, from 0 to 1, that
    their steps have in the skills on average. Of equal weight that comes first which
    more skills have, and then what came first. Notes are chosen likewise. Name and
    description are those of the skill that succeeded most.

    Args:
      skills: of one domain.
      max_steps: R, most steps of the result.
      topic: what a step is about, such as the error that it repairs.

    Raises:
      InputError: no skills, one that is no `MeasuredSkill` or has a success outside
        [0, 1], more steps than a skill may have, or a topic that is no text.

    Deviations: a stand-in for the paper's merge by GPT-5.5, which also rewrites.

    Reference: Peng et al., "WER", arXiv:2608.17587, section 4.

    Example:
      >>> def measured(success, *steps):
      ...     return MeasuredSkill("a", Skill("Pay", "Bills.", steps), success)
      >>> found = merge_by_vote(
      ...     [measured(1.0, "Log in.", "Pay."), measured(0.5, "Wait.", "Pay.")],
      ...     max_steps=2,
      ... )
      >>> found.workflow
      ('Log in.', 'Pay.')
    """
    check_count("max_steps", max_steps)
    if max_steps > SKILL_LIMITS.steps:
        raise InputError(
            f"max_steps: expected at most {SKILL_LIMITS.steps}, got {max_steps}"
        )
    skills = check_measured(skills)
    best = max(skills, key=_weight).skill
    steps = _voted(((m.skill.workflow, _weight(m)) for m in skills), max_steps, topic)
    notes = ((m.skill.notes, _weight(m)) for m in skills)
    kept = _voted(notes, SKILL_LIMITS.notes, lambda note: note)
    return Skill(best.name, best.description, steps, kept)


def check_measured(skills: Any) -> tuple[MeasuredSkill, ...]:
    """Skills to merge, of which a success that is NaN becomes None.

    Args:
      skills: that somebody gave.

    Raises:
      InputError: there are none, or one cannot be meant; it names its place.

    Example:
      >>> skill = Skill("Pay", "Bills.", ("Log in.",))
      >>> check_measured([MeasuredSkill("a", skill, math.nan)])[0].success is None
      True
    """
    if not isinstance(skills, Sequence) or isinstance(skills, str | bytes):
        raise InputError(
            f"skills: expected a sequence of MeasuredSkill, got {type(skills).__name__}"
            "; make a list of it"
        )
    if not skills:
        raise InputError("skills: expected at least one to merge, got none")
    return tuple(_measured(f"skills[{i}]", given) for i, given in enumerate(skills))


def _measured(name: str, given: Any) -> MeasuredSkill:
    if not isinstance(given, MeasuredSkill) or not isinstance(given.skill, Skill):
        raise InputError(
            f"{name}: expected a MeasuredSkill with a Skill, got {given!r:.80}"
        )
    success: Any = given.success
    if success is None:
        return given
    number = isinstance(success, numbers.Real) and not isinstance(success, bool)
    share = float(success) if number else -1.0
    if math.isnan(share):
        return given._replace(success=None)
    if not 0 <= share <= 1:
        raise InputError(
            f"{name}.success: expected a share in [0, 1], or None where nobody "
            f"answered, got {success!r:.80}"
        )
    return given._replace(success=share)


def _weight(measured: MeasuredSkill) -> float:
    return measured.success or 0.0


def _voted(
    ballots: Iterable[tuple[Sequence[str], float]],
    most: int,
    topic: Callable[[str], str],
) -> tuple[str, ...]:
    """The heaviest texts, one a topic, in the order of their mean places."""
    weights: dict[str, float] = {}
    places: dict[str, list[float]] = {}
    for texts, weight in ballots:
        for i, text in enumerate(dict.fromkeys(texts)):
            weights[text] = weights.get(text, 0.0) + weight
            places.setdefault(text, []).append(i / len(texts))
    # A stable sort: of equals that comes first which came first.
    ranked = sorted(weights, key=lambda t: (-weights[t], -len(places[t])))
    chosen: dict[str, str] = {}
    for text in ranked:
        about = topic(text)
        if not isinstance(about, str):
            raise InputError(f"topic: expected a text for {text!r}, got {about!r:.80}")
        chosen.setdefault(about, text)
    kept = [*chosen.values()][:most]
    return tuple(sorted(kept, key=lambda t: sum(places[t]) / len(places[t])))
