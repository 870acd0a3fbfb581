"""What tables and figures say of their sizes, their executor and their buffer."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from jerp.runs.cells import interval

__all__ = [
    "LEGEND",
    "METHOD_LEGEND",
    "SHORT_METHODS",
    "SMOKE",
    "caption",
    "executor_line",
    "overview_title",
    "recorded_line",
    "support_line",
]

LEGEND = (
    "Q: the verifier's score of what was submitted, in [0, 1], with 95% intervals "
    "(tasks resampled). HMS: process maturity, measured apart, never a reward. steps, "
    "calls, tokens: means an episode, of the harness and of the executor. bad: "
    "episodes that the infrastructure lost; they enter no mean."
)
SHORT_METHODS = {
    "ordinary": "IS",
    "weighted": "WIS",
    "per_decision": "PDIS",
    "weighted_per_decision": "WPDIS",
    "fitted_q": "FQE",
    "doubly_robust": "DR",
}
"""Methods of off-policy evaluation as headers of narrow columns."""

METHOD_LEGEND = (
    "ESS: effective sample size. IS: importance sampling, W weighted, PD per decision; "
    "FQE: fitted Q evaluation; DR: doubly robust. *: of the seeds judged."
)
SMOKE = "Smoke run: it checks the plumbing; its numbers mean nothing."


def overview_title(results: Mapping[str, Any]) -> str:
    """What the cells of the table of all arms and domains are."""
    return (
        "Q of base, and what every other arm adds to it, paired by task; * p below .05 "
        f"(Holm over {len(results['domains'])} domains); macro averages with 95% "
        "intervals"
    )


def caption(results: Mapping[str, Any], domain: Mapping[str, Any]) -> str:
    """Sizes of a domain's table, and what answered."""
    tasks = domain["tasks"]
    return (
        f"{tasks['held_out']} held-out tasks x {tasks['samples']} samples, "
        f"{results['seeds']} training seeds, {executor_line(results)}"
    )


def executor_line(results: Mapping[str, Any]) -> str:
    """Which executor the numbers rest on, in words."""
    executor = results["executor"]
    kind, fingerprint = executor["kind"], executor["fingerprint"]
    if fingerprint.startswith("scripted"):
        return f"stand-in executor {fingerprint}"
    if kind == "recorded":
        return "SmolLM2-135M's recorded responses"
    if kind == "smollm2":
        return "SmolLM2-135M run live"
    return f"{fingerprint.removeprefix('remote:').partition('+')[0]} run live"


def recorded_line(domain: Mapping[str, Any], results: Mapping[str, Any]) -> str:
    """What was recorded of a domain, how long it took, and what that buys."""
    reach, sizes = domain["reach"], results["sizes"]
    bought = (
        f"{sizes['samples']} samples a prompt, {sizes['rollouts']} behaviour "
        "episodes a training task"
    )
    if reach is None:
        return f"Run live: {bought}."
    return (
        f"All {reach['requests']:,} reachable requests are recorded "
        f"({reach['requests_per_task']:.1f} a task): "
        f"{reach['executor_seconds'] / 60:.0f} minutes of the executor bought {bought}."
    )


def _detectable(domain: Mapping[str, Any]) -> str:
    """A single held-out task says nothing of how tasks differ."""
    found = domain["detectable_q"]
    return "not defined" if found is None else f"{found:.3f}"


def support_line(domain: Mapping[str, Any]) -> str:
    """What the buffer supports and what the design can see, in one sentence."""
    b = domain["buffer"]
    against = ", ".join(
        f"{name} {interval(value, digits=2, sign=True)}"
        for name, value in domain["contrasts"].items()
    )
    lone = (
        " One episode a task: every weight is 1, and AWR is behaviour cloning."
        if b["episodes"] == b["tasks"]
        else ""
    )
    return (
        f"Buffer: {b['episodes']} episodes on {b['tasks']} tasks, mean return "
        f"{b['mean_return']:.3f} (base on the same tasks {b['base_return']:.3f}), best "
        f"return per task {b['best_return_per_task']:.3f}, "
        f"{100 * b['tasks_with_spread']:.0f}% of tasks with any spread (mean "
        f"within-task sd {b['within_task_sd']:.3f}), weights' effective sample size "
        f"{100 * b['effective_sample_share']:.0f}%. Smallest difference in Q that this "
        f"design detects with 80% power: {_detectable(domain)}. In Q, paired: "
        f"{against}.{lone}"
    )
