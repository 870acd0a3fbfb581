"""Rules and a policy that learn from the same groups of episodes, as pure steps.

An iteration of JERP's Algorithm 1, in order: the working set of every task is fixed
(`working_set`); groups of episodes are played with it; the policy learns from them by
the group step, as without rules (`learn`); what a reflector made of the same episodes,
and of the pool as it was before them, is applied (`revise`). Playing and reflection are
the host's, who also extends the reference successes, after all of this. A group that no
executor answered changes nothing.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any, NamedTuple

import jax.numpy as jnp
from flax import struct
from jax import lax

from jerp.errors import ShapeError
from jerp.models.policy import SequencePolicy
from jerp.ops.checks import check_axes
from jerp.rules.edits import EditCounts, RuleEdits, apply_edits
from jerp.rules.pool import RulePool, record_use
from jerp.rules.pruning import prune
from jerp.rules.selection import select_top
from jerp.training.group import Init, make_group_step
from jerp.training.group_settings import GroupConfig, GroupHyper
from jerp.training.joint_settings import RuleConfig
from jerp.training.state import TrainState
from jerp.trajectory import Trajectory, valid_episodes
from jerp.typing import Array, Outcome

__all__ = ["JointState", "JointStep", "Revised", "RuleConfig", "make_joint_step"]


class JointState(struct.PyTreeNode):
    """What is learned: a policy, and the rules that it was trained with.

    Attributes:
      train: the policy's part.
      pool: the rules', `[N, C]`.
    """

    train: TrainState
    pool: RulePool


class Revised(NamedTuple):
    """What became of a pool in one iteration.

    Attributes:
      pool: `[N, C]`.
      counts: of the edits, leaves `[G, ...]`.
      pruned: `[N, C]` int32, ids of the rules that went in the end by their score or
        for want of room; -1 elsewhere.
    """

    pool: RulePool
    counts: EditCounts
    pruned: Array


class JointStep(NamedTuple):
    """The functions of an iteration; each traces once a shape.

    Attributes:
      init: `(key, hyper, params) -> TrainState`, see `make_group_step`.
      working_set: `(pool, task_key [N]) -> [N, R]` int32 rule ids; None where
        `num_rules` is 0.
      learn: `(state, hyper, data, reference=None, frozen=None) -> (JointState,
        metrics)`, the pool as it was; None of a policy that is frozen.
      revise: `(pool, task_key [B], data, edits, step) -> Revised`, see
        `make_joint_step`.
    """

    init: Init
    working_set: Callable[[RulePool, Array], Array | None]
    learn: Callable[..., tuple[JointState, dict[str, Array]]] | None
    revise: Callable[..., Revised]


def make_joint_step(
    config: GroupConfig,
    policy: SequencePolicy,
    rules: RuleConfig,
    *,
    learn_policy: bool = True,
) -> JointStep:
    """The pure functions of joint learning.

        theta <- Update_theta(theta, T_d),  K(d) <- Update_K(K(d), T_d, T+(d))

    `revise` is the second one, given the operations: uses and successes of the rules
    that were in the prompts are counted; operations are applied, group after group in
    one scan, each group's in the order of `rules.order`; and what has too little score
    or no room is dropped. Its arguments:

    - pool: `[N, C]`, as it was when the episodes were played and reflected on; whether
      it was full is judged by it.
    - task_key: `[B]` int32, of the episodes; row `b` is of group `b % G`, and a
      group's is that of its first row.
    - data: `[B, T]`; `working_set` may be None.
    - edits: leaves `[G, E, ...]`. Those of a group without a valid episode are left
      out, and counted nowhere.
    - step: `[]` int32, the birth of rules that are new.

    Args:
      config: of the algorithm.
      policy: what is trained.
      rules: see `RuleConfig`.
      learn_policy: without, the policy is frozen and there is no `learn`.

    Returns:
      `JointStep`.

    Raises:
      ShapeError: when `revise` is traced, of episodes that the groups do not divide.

    Deviations: the paper numbers neither scores nor bounds; see `RuleConfig`. ExpeL is
      full with 5 rules more than its 20, and drops none for want of room; here 20 are
      what stays, and full. Uses are counted before the edits, so that a rule that is
      merged hands them on.

    Reference: Ye and Yu, "Joint learning of experiential rules and policies",
      arXiv:2606.27136, Algorithm 1, eqs. 10 to 12; Zhao et al., "ExpeL",
      arXiv:2308.10144, `update_rules`.

    Example:
      >>> from jerp.rules.pool import init_pool
      >>> rules = RuleConfig(num_rules=3)
      >>> step = make_joint_step(GroupConfig(2), None, rules)
      >>> pool = init_pool(2, rules.slots(num_groups=2))
      >>> step.working_set(pool, jnp.array([1])).tolist()
      [[-1, -1, -1]]
    """
    init, group_step = make_group_step(config, policy)
    return JointStep(
        init=init,
        working_set=partial(_working_set, rules),
        learn=partial(_learn, group_step) if learn_policy else None,
        revise=partial(_revise, rules),
    )


def _working_set(rules: RuleConfig, pool: RulePool, task_key: Array) -> Array | None:
    if not rules.num_rules:
        return None
    return select_top(
        pool, task_key, num_rules=rules.num_rules, token_budget=rules.prompt_tokens
    )


def _learn(
    group_step: Any,
    state: JointState,
    hyper: GroupHyper,
    data: Trajectory,
    reference: Any = None,
    frozen: Any = None,
) -> tuple[JointState, dict[str, Array]]:
    train, metrics = group_step(state.train, hyper, data, reference, frozen)
    return state.replace(train=train), metrics


def _revise(
    rules: RuleConfig,
    pool: RulePool,
    task_key: Array,
    data: Trajectory,
    edits: RuleEdits,
    step: Array | int,
) -> Revised:
    """See `make_joint_step`."""
    groups, rows = edits.op.shape[0], data.outcome.shape[0]
    check_axes(outcome=(data.outcome, "B", int), task_key=(task_key, "B", int))
    if rows % groups:
        raise ShapeError(
            f"edits: expected groups that divide {rows} episodes, got {groups}"
        )
    by_group = jnp.reshape(valid_episodes(data), (-1, groups))
    key = task_key[:groups]
    full = jnp.sum(pool.active, axis=1)[key] >= rules.capacity
    answered = jnp.any(by_group, axis=0)
    edits = edits.replace(valid=edits.valid & answered[:, None])
    if data.working_set is not None:
        success = data.outcome == Outcome.SUCCESS
        pool = record_use(
            pool, task_key, data.working_set, success, valid_episodes(data)
        )
    settings = {name: getattr(rules, name) for name in _SCORES}

    def apply(pool: RulePool, group: Any) -> tuple[RulePool, EditCounts]:
        key, full, edits = group
        return apply_edits(pool, key, edits, step=step, full=full, **settings)

    edited, counts = lax.scan(apply, pool, (key, full, edits))
    pool = prune(
        edited,
        min_score=rules.min_score,
        capacity=rules.capacity,
        token_budget=rules.pool_tokens,
    )
    gone = edited.active & ~pool.active
    return Revised(pool, counts, jnp.where(gone, edited.rule_id, jnp.int32(-1)))


_SCORES = (
    *("initial_score", "upvote", "downvote", "full_downvote", "edit_bonus"),
    *("merge", "order"),
)
"""Settings of `apply_edits`."""
