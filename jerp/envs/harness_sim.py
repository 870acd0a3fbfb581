"""A simulated Harness MDP with known dynamics, in which conditional control pays.

Gathering finds facts by chance; facts make a draft or a revision more likely to be
right. Whether a draft is right stays hidden until a check reveals it; calling the tool
notices a flaw only sometimes. A flaw that was found may be revised, which may fail.
Submitting scores the draft, less a price for every step, so that the best controller
checks where facts are few, revises only after a failure and submits in time. The state
is small enough for an exact dynamic programme.
"""

from __future__ import annotations

from dataclasses import dataclass

import jax
import jax.numpy as jnp
from flax import struct

from jerp.envs.base import TimeStep
from jerp.harness.actions import NUM_ACTIONS, Action
from jerp.harness.state import NO_ACTION, encode_features
from jerp.typing import USAGE_KINDS, Array, Key, Outcome

__all__ = ["HarnessSim", "SimParams", "SimState", "simulated_tasks"]

NUM_RETRIEVALS = 2
NUM_REVISIONS = 2
COST_BUDGET = 4.0
CALL_COST = 1.0
STEP_COST = 0.1
"""As in the controlled domains: an executor call, any other step, and the budget."""


class SimParams(struct.PyTreeNode):
    """One task; leaves `[]` float32, or `[N]` for `N` tasks.

    Attributes:
      find: probability that an observe or retrieve finds a fact.
      draft: probability that a draft is right without any fact.
      fix: probability that a revision is right without any fact.
      gain: what each fact adds to both.
      detect: probability that the tool notices a flaw that is there.
      flawed_score: share of the score that a flawed draft gets.
      step_price: share of the score that every step costs.
    """

    find: Array
    draft: Array
    fix: Array
    gain: Array
    detect: Array
    flawed_score: Array
    step_price: Array


class SimState(struct.PyTreeNode):
    """One episode in progress; leaves `[]`.

    Attributes:
      step, last_action, calls: int32 counters: steps, the last one, executor calls.
      observed, has_draft: bool.
      retrieved, findings, revisions: int32 counts.
      good: bool, the hidden truth: the draft is right.
      tested, checked: bool, of the current draft.
      failed: bool, a flaw of the current draft was found.
      submitted: bool.
    """

    step: Array
    last_action: Array
    calls: Array
    observed: Array
    retrieved: Array
    findings: Array
    has_draft: Array
    good: Array
    tested: Array
    checked: Array
    failed: Array
    revisions: Array
    submitted: Array


def simulated_tasks(num_tasks: int) -> SimParams:
    """Tasks of three difficulties in turn: easy, middling, hard.

    Args:
      num_tasks: N.

    Returns:
      `SimParams` with leaves `[N]`.
    """
    difficulty = jnp.arange(num_tasks) % 3

    def by_difficulty(easy: float, middling: float, hard: float) -> Array:
        return jnp.asarray([easy, middling, hard], jnp.float32)[difficulty]

    return SimParams(
        find=by_difficulty(0.9, 0.7, 0.5),
        draft=by_difficulty(0.1, 0.1, 0.1),
        fix=by_difficulty(0.3, 0.2, 0.1),
        gain=by_difficulty(0.3, 0.3, 0.3),
        detect=by_difficulty(0.3, 0.3, 0.3),
        flawed_score=by_difficulty(0.3, 0.2, 0.1),
        step_price=by_difficulty(0.02, 0.02, 0.02),
    )


@dataclass(frozen=True)
class HarnessSim:
    """The simulated Harness MDP; see the module's first lines.

    Attributes:
      max_steps: step budget of an episode.
    """

    max_steps: int = 10

    def reset(self, key: Key, params: SimParams) -> tuple[SimState, TimeStep]:
        """Starts an episode; nothing about it is random."""
        del key
        zero, no = jnp.zeros((), jnp.int32), jnp.zeros((), bool)
        state = SimState(
            step=zero,
            last_action=zero + NO_ACTION,
            calls=zero,
            observed=no,
            retrieved=zero,
            findings=zero,
            has_draft=no,
            good=no,
            tested=no,
            checked=no,
            failed=no,
            revisions=zero,
            submitted=no,
        )
        return state, self._time_step(state, params, calls=zero)

    def step(
        self, key: Key, state: SimState, action: Array, params: SimParams
    ) -> tuple[SimState, TimeStep]:
        """Plays one action; an illegal one only costs the step."""
        chance = jax.random.uniform(key)
        plays = (jnp.arange(NUM_ACTIONS) == action) & self._legal(state)
        found = (plays[Action.OBSERVE] | plays[Action.RETRIEVE]) & (
            chance < params.find
        )
        writes = plays[Action.DRAFT] | plays[Action.REVISE]
        skill = jnp.where(plays[Action.DRAFT], params.draft, params.fix)
        right = chance < skill + params.gain * state.findings
        noticed = plays[Action.CALL_TOOL] & (chance < params.detect)
        flaw = ~state.good & (plays[Action.CHECK] | noticed)
        after = SimState(
            step=state.step + 1,
            last_action=jnp.asarray(action, jnp.int32),
            calls=state.calls + writes,
            observed=state.observed | plays[Action.OBSERVE],
            retrieved=state.retrieved + plays[Action.RETRIEVE],
            findings=state.findings + found,
            has_draft=state.has_draft | plays[Action.DRAFT],
            good=jnp.where(writes, right, state.good),
            tested=(state.tested | plays[Action.CALL_TOOL]) & ~writes,
            checked=(state.checked | plays[Action.CHECK]) & ~writes,
            failed=(state.failed | flaw) & ~writes,
            revisions=state.revisions + plays[Action.REVISE],
            submitted=state.submitted | plays[Action.SUBMIT],
        )
        return after, self._time_step(after, params, calls=writes)

    def _ended(self, state: SimState) -> Array:
        return state.submitted | (state.step >= self.max_steps)

    def _legal(self, state: SimState) -> Array:
        """`[A]` bool; the masks of the controlled domains."""
        legal = jnp.stack(
            [
                ~state.observed,
                state.retrieved < NUM_RETRIEVALS,
                state.has_draft & ~state.tested,
                ~state.has_draft,
                state.has_draft & ~state.checked,
                state.failed & (state.revisions < NUM_REVISIONS),
                state.has_draft,
            ]
        )
        return legal & ~self._ended(state)

    def _features(self, state: SimState, params: SimParams) -> Array:
        verified = state.tested | state.checked
        quality = jnp.where(state.good, 1.0, params.flawed_score)
        coverage = jnp.where(state.checked, quality, 0.0)
        cost = CALL_COST * state.calls + STEP_COST * (state.step - state.calls)
        status = (
            state.step / self.max_steps,
            state.has_draft,
            0.5 * state.has_draft,
            coverage,
            1 - coverage,
            0.0,
            cost / COST_BUDGET,
            (self.max_steps - state.step) / self.max_steps,
            jnp.where(verified, jnp.where(state.failed, 0.0, 1.0), -1.0),
            state.findings / 10,
        )
        status = jnp.stack([jnp.asarray(x, jnp.float32) for x in status])
        return encode_features(status, state.last_action)

    def _time_step(
        self, state: SimState, params: SimParams, *, calls: Array
    ) -> TimeStep:
        quality = jnp.where(state.good, 1.0, params.flawed_score)
        price = 1 - params.step_price * state.step
        score = jnp.where(state.submitted, quality * price, 0.0)
        truncated = ~state.submitted & (state.step >= self.max_steps)
        verdict = jnp.where(state.good, Outcome.SUCCESS, Outcome.FAILURE)
        outcome = jnp.where(truncated, Outcome.TRUNCATED, verdict)
        usage = jnp.zeros(len(USAGE_KINDS)).at[USAGE_KINDS.index("executor_calls")]
        return TimeStep(
            observation=self._features(state, params),
            legal=self._legal(state),
            reward=score,
            terminated=state.submitted,
            truncated=truncated,
            outcome=outcome.astype(jnp.int32),
            score=score,
            anchor=_anchor(state),
            usage=usage.set(calls.astype(jnp.float32)),
        )


def _anchor(state: SimState) -> Array:
    """All that the future depends on but counters, in mixed radix."""
    draft = jnp.where(state.has_draft, 1 + state.good, 0)
    digits = (
        (state.observed, 2),
        (state.retrieved, NUM_RETRIEVALS + 1),
        (state.findings, NUM_RETRIEVALS + 2),
        (draft, 3),
        (state.tested, 2),
        (state.checked, 2),
        (state.failed, 2),
        (state.revisions, NUM_REVISIONS + 1),
        (state.submitted, 2),
    )
    anchor = jnp.zeros((), jnp.int32)
    for digit, radix in digits:
        anchor = anchor * radix + digit.astype(jnp.int32)
    return anchor
