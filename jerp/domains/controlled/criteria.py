"""Named criteria: how a verdict weighs them and what a check tells of the public ones.

Every check of a controlled domain uses `checked`. `check_scores` is the whole of one
whose criteria hold or fail, with one hint whichever failed. Scores come from a rubric.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

from jerp.domains.base import Effect, Feedback, Workspace
from jerp.records import Criterion, ProcessStep

__all__ = ["check_scores", "checked", "weighted"]


def weighted(
    scores: Mapping[str, float], weights: Mapping[str, float], public: Sequence[str]
) -> tuple[Criterion, ...]:
    """A verdict's criteria, in the order of `weights`.

    Example:
      >>> weighted({"form": 1.0}, {"form": 0.1}, public=("form",))[0].weight
      0.1
    """
    return tuple(
        Criterion(name, scores[name], weight, public=name in public)
        for name, weight in weights.items()
    )


def checked(
    workspace: Workspace, missing: tuple[str, ...], num_items: int
) -> tuple[Workspace, ProcessStep]:
    """A check of `num_items` items that found some of them missing.

        coverage = 1 - |missing| / num_items

    Example:
      >>> from jerp.records import Task
      >>> workspace = Workspace(Task("toy/0", "toy", 0, "do"), 0, draft="done")
      >>> after, step = checked(workspace, ("form",), 4)
      >>> after.coverage, step.missing
      (0.75, ('form',))
    """
    coverage = 1 - len(missing) / num_items
    after = replace(
        workspace, checked=True, coverage=coverage, missing_share=1 - coverage
    )
    draft = workspace.draft or ""
    step = ProcessStep("check", arguments=draft, coverage=coverage, missing=missing)
    return after, step


def check_scores(
    workspace: Workspace, scores: Mapping[str, float], hint: str
) -> Effect:
    """A check of the public criteria; a failure becomes the hint of a revision.

    Args:
      workspace: with a draft.
      scores: of the public criteria, each 0 or 1, in the order in which they are named.
      hint: what a revision is told if any fails.

    Example:
      >>> from jerp.records import Task
      >>> workspace = Workspace(Task("toy/0", "toy", 0, "do"), 0, draft="done")
      >>> check_scores(workspace, {"form": 0.0, "unit": 1.0}, "Say how many.")[-1]
      'missing: form. Say how many.'
    """
    missing = tuple(name for name, score in scores.items() if not score)
    text = f"missing: {', '.join(missing)}. {hint}" if missing else "nothing missing"
    feedback = Feedback(hint if missing else "", failed=bool(missing))
    told = replace(workspace, feedback=feedback)
    return *checked(told, missing, len(scores)), text
