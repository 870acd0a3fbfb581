"""The arms of the comparison: what nothing was learned for, and what is learned."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

from jerp.harness import baselines
from jerp.harness.actions import Action
from jerp.typing import PolicyFn

__all__ = ["ARM_LABELS", "LEARNED", "LEARNED_ARMS", "Arm", "scripted_arms"]

ARM_LABELS = {
    "random": "random legal",
    "base": "base sequence",
    "perturbed": "perturbed base",
    "forced-check": "forced check",
    "conditional": "conditional rule",
    "bc": "behaviour cloning",
    "awr": "AWR (trajectory)",
    "awr-step": "AWR (per-step)",
}

LEARNED: Mapping[Literal["trajectory", "step"], Mapping[str, float]] = {
    "trajectory": {"bc": math.inf, "awr": 0.2},
    "step": {"awr-step": 0.2},
}
"""Learned arms by kind of advantage, with their temperature (infinite: cloning)."""

LEARNED_ARMS = tuple(name for arms in LEARNED.values() for name in arms)


@dataclass(frozen=True)
class Arm:
    """A policy and its parameters, one entry a training seed."""

    name: str
    policy_fn: PolicyFn
    params: Sequence[Any]


def scripted_arms(
    sequence: Sequence[Action], seeds: int, *, epsilon: float, max_steps: int
) -> tuple[Arm, ...]:
    """Arms that learn nothing; a random one runs once a seed, the others once."""
    base, forced, conditional = (
        make(sequence, max_steps=max_steps)
        for make in (
            baselines.base_policy,
            baselines.forced_check_policy,
            baselines.conditional_policy,
        )
    )
    perturbed = baselines.perturbed_policy(
        sequence, epsilon=epsilon, max_steps=max_steps
    )
    return (
        Arm("random", baselines.uniform_policy(), [()] * seeds),
        Arm("base", base, [()]),
        Arm("perturbed", perturbed, [()] * seeds),
        Arm("forced-check", forced, [()]),
        Arm("conditional", conditional, [()]),
    )
