"""Small results passed between layers, and the host-side records of one episode.

The pytrees (`WeightedMean`, `LossOutput`, `Interval`) hold arrays and go through jit.
The frozen dataclasses hold text and Python numbers and never enter a jitted function.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import jax.numpy as jnp
from flax import struct

from jerp.typing import Array

__all__ = [
    "Criterion",
    "Interval",
    "LossOutput",
    "ProcessStep",
    "ProcessTrace",
    "Task",
    "Verdict",
    "WeightedMean",
]


class WeightedMean(struct.PyTreeNode):
    """A mean that can still be added across microbatches and devices.

    Attributes:
      total: `[]` float32, the weighted sum.
      weight: `[]` float32, the sum of weights.
    """

    total: Array
    weight: Array

    def value(self) -> Array:
        """`total / weight`, and 0 where nothing was weighed."""
        weighed = self.weight != 0
        return jnp.where(weighed, self.total / jnp.where(weighed, self.weight, 1), 0)

    def __add__(self, other: WeightedMean) -> WeightedMean:
        return WeightedMean(
            total=self.total + other.total, weight=self.weight + other.weight
        )


class LossOutput(struct.PyTreeNode):
    """A loss to minimise and what to log beside it."""

    loss: WeightedMean
    metrics: dict[str, WeightedMean]


class Interval(struct.PyTreeNode):
    """A point estimate with a confidence interval at `level`.

    Attributes:
      point, low, high: arrays of one shape; NaN where undefined.
      level: nominal coverage.
      num_values: `[]` int32, values that entered; None where not counted.
      num_excluded: `[]` int32, values left out as invalid or NaN.
      num_clusters: `[]` int32, clusters (tasks) with at least one value.
      p_value: two-sided, of no difference; None unless one was tested.
    """

    point: Array
    low: Array
    high: Array
    level: float = struct.field(pytree_node=False, default=0.95)
    num_values: Array | None = None
    num_excluded: Array | None = None
    num_clusters: Array | None = None
    p_value: Array | None = None


@dataclass(frozen=True)
class Task:
    """One task of a domain.

    Attributes:
      key: unique and stable, such as `coding/3/0017` (domain, generator seed, index).
      domain: name of the domain.
      difficulty: 0, 1 or 2.
      prompt: what the executor may read.
      payload: what the domain needs besides, JSON-able: public parts and, for the
        verifier alone, hidden ones.
    """

    key: str
    domain: str
    difficulty: int
    prompt: str
    payload: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True)
class Criterion:
    """One line of a verifier's rubric: `score` in [0, 1] counts with `weight`."""

    name: str
    score: float
    weight: float
    public: bool = True
    detail: str = ""


@dataclass(frozen=True)
class Verdict:
    """A verifier's judgement: `score` is the weighted mean of the criteria."""

    criteria: tuple[Criterion, ...]
    success: bool

    @property
    def score(self) -> float:
        """Weighted mean over the criteria, in [0, 1]; 0 without any."""
        weight = sum(c.weight for c in self.criteria)
        return (
            sum(c.score * c.weight for c in self.criteria) / weight if weight else 0.0
        )


@dataclass(frozen=True)
class ProcessStep:
    """What one structural step did, as far as process maturity needs to know.

    Attributes:
      action: name in `jerp.harness.actions.ACTIONS`.
      arguments: canonical text of what the action was applied to; equal texts mean the
        same call.
      error: the step ended in an error observation.
      new_facts: facts the step added.
      coverage: share of the public rubric that holds, None unless the step checked.
      missing: names of criteria found missing, None unless the step checked.
      tests_passed, tests_failed: None unless the step ran tests.
      verify_failed: a verify step reported a failure; None unless one ran.
      code_hash: of the artefact tested or submitted; None where there is none.
      claims, evidence: claims of the current draft and how many have evidence.
      gathers_evidence: the step brought evidence that claims can rest on.
      tool_valid: arguments valid, no error, tool allowed; None without a tool call.
      revises: the step changed the artefact in answer to a failure.
      cost: in the units of `ProcessTrace.cost_budget`.
    """

    action: str
    arguments: str = ""
    error: bool = False
    new_facts: int = 0
    coverage: float | None = None
    missing: tuple[str, ...] | None = None
    tests_passed: int | None = None
    tests_failed: int | None = None
    verify_failed: bool | None = None
    code_hash: str | None = None
    claims: int = 0
    evidence: int = 0
    gathers_evidence: bool = False
    tool_valid: bool | None = None
    revises: bool = False
    cost: float = 0.0


@dataclass(frozen=True)
class ProcessTrace:
    """One episode as `jerp.harness.maturity` reads it.

    Attributes:
      steps: in order.
      max_steps: step budget of the task.
      cost_budget: in the units of `ProcessStep.cost`.
      tools: actions that the task offers.
      score: verifier's score in [0, 1], of what was submitted; None where nothing was
        judged.
      missing_share: share of the rubric's criteria missing at the end.
      runs_code: the task is judged by running code.
      needs_evidence: claims need evidence.
      chose_submit: the episode ended by a submit of the controller's own.
    """

    steps: tuple[ProcessStep, ...]
    max_steps: int
    cost_budget: float
    tools: tuple[str, ...]
    score: float | None
    missing_share: float
    runs_code: bool
    needs_evidence: bool
    chose_submit: bool
