"""Ways to write a skill for each domain, which have as many runs of the executor.

no skill                the executor alone
seed skills             drafts of the untrained optimizer
best of drafts          of several drafts of the untrained one that which did best
untrained, revised      the untrained optimizer in the loop of revisions
best of drafts, all     as above, with the runs of the training besides
WER                     the trained optimizer in the same loop
WER, tested             the same, but a revision has to win against its parent in a
                        paired sequential test on fresh runs, which come on top
right lines             a ceiling: written from the tables of the world
"""

from __future__ import annotations

from typing import NamedTuple

from experiments.wer.config import Sizes
from jerp.runs.skills.acceptance import Acceptance

__all__ = [
    "ACCEPTANCE",
    "LABELS",
    "NONE",
    "RIGHT",
    "TESTED",
    "WER",
    "Inference",
    "cell_name",
    "inferences",
    "method_cells",
]

WER = "wer"
TESTED = "wer-tested"
NONE, RIGHT = "none", "right"

ACCEPTANCE = Acceptance()
"""What it takes for a revision to replace its parent where it is tested."""


class Inference(NamedTuple):
    """How skills are written for tasks, see `jerp.runs.skills.refine`.

    Attributes:
      name: of it, and of its folder.
      phase: of training, whose optimizer writes; 0 before training.
      rounds: of revision.
      num_drafts: of a task and round.
      num_runs: of a draft.
      every_task: of training, in place of those of the refinement.
      tested: revisions have to win against their parents.
    """

    name: str
    phase: int
    rounds: int
    num_drafts: int
    num_runs: int
    every_task: bool = False
    tested: bool = False


def inferences(sizes: Sizes) -> tuple[Inference, ...]:
    """All that write skills for a seed's executor.

    A task of the refinement has `(rounds + 1) * num_runs` runs, whoever writes. Those
    of the training count for `best-of-all`, which so has at least as many as training
    and refinement together.
    """
    n, times = sizes.num_runs, sizes.rounds + 1
    trained = sizes.total * sizes.states * sizes.num_drafts * n + sizes.train_tasks
    whole = trained + sizes.refinement * times * n
    every = -(-whole // (sizes.train_tasks * n))
    along = [
        Inference(f"phase-{phase}", phase, sizes.rounds, 1, n)
        for phase in range(1, sizes.phases)
    ]
    return (
        Inference("seed", 0, 0, 1, times * n),
        Inference("best-of", 0, 0, times, n),
        Inference("untrained", 0, sizes.depths, 1, n),
        Inference("best-of-all", 0, 0, every, n, every_task=True),
        *along,
        Inference(WER, sizes.phases, sizes.depths, 1, n),
        Inference(TESTED, sizes.phases, sizes.rounds, 1, n, tested=True),
    )


def cell_name(name: str, depth: int) -> str:
    """Of what an inference came to after so many rounds."""
    return f"{name}@{depth}"


def method_cells(sizes: Sizes) -> dict[str, str]:
    """Rows of the table of methods: the cell of each, by name."""
    depth = {"untrained": sizes.rounds, WER: sizes.rounds}
    names = ("seed", "best-of", "untrained", "best-of-all", WER)
    written = {name: cell_name(name, depth.get(name, 0)) for name in names}
    return {NONE: NONE, **written, RIGHT: RIGHT}


LABELS = {
    NONE: "no skill",
    "seed": "seed skills, untrained",
    "best-of": "best of drafts, untrained",
    "untrained": "untrained, revised",
    "best-of-all": "best of drafts, all runs",
    WER: "WER",
    RIGHT: "right lines (ceiling)",
    "replaced": "as in the paper",
    "tested": "won its test",
}
"""Of methods, in tables."""
