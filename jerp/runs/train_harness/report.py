"""What a training run prints: the buffer, the weights, and what to do next."""

from __future__ import annotations

import shlex

from rich.console import Group, RenderableType
from rich.table import Table

from jerp.runs.browse import printable
from jerp.runs.train_harness.run import Trained

__all__ = ["render"]

LABELS = {
    "policy_loss": "weighted loss, last epoch",
    "negative_log_likelihood": "negative log-likelihood",
    "entropy": "entropy of the policy",
    "value_loss": "loss of the value",
}


def render(trained: Trained) -> RenderableType:
    """A table of two columns, the notes, and the next command."""
    training, support = trained.controller.training, trained.controller.support
    table = Table(box=None, show_header=False, pad_edge=False)
    table.add_column()
    table.add_column(justify="right")
    logged = sum(source["episodes"] for source in training["data"])
    if support is not None:
        left_out = logged - support.num_episodes
        unit = "steps" if training["settings"]["advantage"] == "step" else "episodes"
        total = support.num_steps if unit == "steps" else support.num_episodes
        size = support.effective_sample_size
        table.add_row("episodes", f"{support.num_episodes}")
        if left_out:
            table.add_row("left out: infrastructure", f"{left_out}")
        table.add_row("steps", f"{support.num_steps}")
        table.add_row("tasks", f"{support.num_tasks}")
        table.add_row("mean return", f"{support.mean_return:.3f}")
        table.add_row("best return a task", f"{support.best_return:.3f}")
        table.add_row("tasks with spread", f"{support.tasks_with_spread:.0%}")
        table.add_row("effective sample size", f"{size:.1f} of {total} {unit}")
    for name, label in LABELS.items():
        if name in training["results"]:
            table.add_row(label, f"{training['results'][name]:.4f}")
    lines = [printable(f"note: {note}") for note in training["notes"]]
    state = "trained" if trained.is_new else "trained before, with the same settings"
    lines.append(printable(f"{state}: {trained.folder}"))
    if all(source["probabilities"] for source in training["data"]):
        # Not its own episodes: what was luck in them would look like a gain.
        words = ["jerp", "ope", "OTHER_LOGS", "--controller", str(trained.folder)]
        lines.append(
            printable(
                "will it be better, on episodes that it did not learn from? "
                f"{shlex.join(words)}"
            )
        )
    return Group(table, *lines)
