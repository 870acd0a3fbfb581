"""What a revision is written from, and what if it were something else.

Each ablation trains an optimizer of its own from the same clone, on the same tasks,
with as many runs, and revises with the same kind of evidence afterwards.
"""

from __future__ import annotations

from typing import Literal, NamedTuple, get_args

from jerp.runs.skills.settings import EvidenceShown

__all__ = [
    "ABLATIONS",
    "ABLATION_SEEDS",
    "PAIRED",
    "SHOWN",
    "Ablation",
    "Shown",
    "ablation_folder",
]

ABLATION_SEEDS = 2
"""The first seeds, at most, of which an ablation is trained: each is a training."""

MISLED = 0.1
"""Share of states, of the ablation "wrong"."""

Ablation = Literal["failure", "success", "none", "wrong"]

ABLATIONS: tuple[Ablation, ...] = get_args(Ablation)


class Shown(NamedTuple):
    """What is shown of the runs of the skill that is revised.

    Attributes:
      evidence: a run that succeeded and one that failed, one of them, or none.
      misled: share of states of which a run that failed is shown as one that succeeded,
        and the other way round.
    """

    evidence: EvidenceShown = "paired"
    misled: float = 0.0


PAIRED = Shown()

SHOWN: dict[Ablation, Shown] = {
    "failure": Shown("failure"),
    "success": Shown("success"),
    "none": Shown("none"),
    "wrong": Shown(misled=MISLED),
}


def ablation_folder(name: str) -> str:
    """Where the job of an ablation is, in the folder of a seed."""
    return f"ablation-{name}"
