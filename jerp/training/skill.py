"""A skill optimizer that learns from what its own drafts led to, as pure steps.

A phase of WER's Algorithm 1 for a batch of states, in order: K skills are drafted for
each state (`draft`); whoever has the executor executes each n times; what that earned
(`jerp.skills.skill_reward`) makes drafts episodes of one step (`draft_episodes`), and
the optimizer learns from those of a state relative to each other (`learn`). Nothing of
it knows a world, a text or an executor.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from functools import partial
from typing import Any, NamedTuple, cast

import jax
import jax.numpy as jnp

from jerp.errors import ConfigError
from jerp.models.draft_policy import DraftPolicy
from jerp.models.policy import Acted
from jerp.objectives.aggregate import Aggregation
from jerp.objectives.clipped import Ratio
from jerp.ops.checks import check_axes, check_count
from jerp.skills.reward import SkillReward
from jerp.training.group import Init, make_group_step
from jerp.training.group_settings import GroupConfig, GroupHyper, algorithm
from jerp.training.state import TrainState
from jerp.trajectory import Trajectory
from jerp.typing import USAGE_KINDS, Array, ArrayLike, Key, Outcome

__all__ = [
    "SkillStep",
    "draft_episodes",
    "make_skill_step",
    "skill_algorithm",
    "write_drafts",
]


class SkillStep(NamedTuple):
    """The functions of a batch of S states; each traces once a shape.

    Attributes:
      init: `(key, hyper, params) -> TrainState`, see `jerp.training.group`.
      draft: `(params, key, prompts [S, P]) -> Acted`, rows `[S * K]`; row `b` is a
        draft for state `b % S`. Consumes `key`.
      learn: `(state, hyper, episodes, frozen=None) -> (TrainState, metrics)`, of the
        episodes of all drafts; `frozen` as in `make_group_step`.
    """

    init: Init
    draft: Callable[[Any, Key, Array], Acted]
    learn: Callable[..., tuple[TrainState, dict[str, Array]]]


def skill_algorithm(
    num_states: int,
    *,
    ratio: Ratio = "sequence",
    standardize: bool = False,
    **hyper: ArrayLike,
) -> tuple[GroupConfig, GroupHyper]:
    """The paper's update: a clipped one, relative to the state's other drafts.

        A_k = R_k - mean_j R_j,  over std_j R_j where `standardize`

    Args:
      num_states: S, states in a batch.
      ratio: "sequence" or "token", see `jerp.clipped_policy_loss`.
      standardize: divide by the standard deviation.
      **hyper: of `GroupHyper`.

    Returns:
      Config and hyper-parameters of `make_skill_step`, without KL or reference policy.

    Deviations: the paper writes the ratio of whole sequences, pi(s') / pi_old(s'), and
      its code base has that of tokens: what was run is not known. "sequence" here is
      GSPO's, which takes the geometric mean over tokens and so does not grow with a
      draft's length. With one update a batch either ratio is 1. The range of clipping
      is not given: .2. Every draft weighs the same, whatever its length.

    Reference: Peng et al., "WER", arXiv:2608.17587, eqs. 5 and 6.

    Example:
      >>> config, hyper = skill_algorithm(6, learning_rate=1e-6)
      >>> config.num_groups, config.ratio, config.scale, hyper.kl_weight
      (6, 'sequence', 'none', 0.0)
    """
    aggregation: Aggregation = "sequence_mean_token_mean"
    config, settings = algorithm("grpo", num_groups=num_states, **hyper)
    scale = "std" if standardize else "none"
    return replace(config, ratio=ratio, scale=scale, aggregation=aggregation), settings


def make_skill_step(
    config: GroupConfig, policy: DraftPolicy, *, num_drafts: int
) -> SkillStep:
    """The pure functions of the optimizer's training.

    Args:
      config: see `skill_algorithm`; its groups are the states of a batch.
      policy: the optimizer.
      num_drafts: K, drafts a state.

    Returns:
      `SkillStep`.

    Raises:
      ConfigError: a single draft a state, which is compared with nothing.

    Reference: Peng et al., "WER", arXiv:2608.17587, Algorithm 1.

    Example:
      >>> from jerp.models.presets import tiny_decoder
      >>> policy = DraftPolicy(tiny_decoder(9), 4, 3, stop_tokens=(1,))
      >>> step = make_skill_step(skill_algorithm(2)[0], policy, num_drafts=2)
      >>> prompts = jnp.array([[2, 3, 0, 0], [4, 0, 0, 0]])
      >>> params = policy.init(jax.random.key(0))
      >>> jax.jit(step.draft)(params, jax.random.key(1), prompts).tokens.shape
      (4, 3)
    """
    check_count("num_drafts", num_drafts)
    if num_drafts < 2 and config.advantage == "group":
        raise ConfigError(
            "num_drafts: expected at least 2, of which each is compared with the "
            f"others, got {num_drafts}"
        )
    init, step = make_group_step(config, policy)
    return SkillStep(
        init=init,
        draft=partial(_draft, policy, num_drafts),
        learn=partial(_learn, step),
    )


def draft_episodes(
    prompts: Array, drafts: Acted, outcome: Array, reward: SkillReward
) -> Trajectory:
    """Drafts and what they earned, as episodes of one step.

    An episode succeeded if all runs of its skill that were answered did; its score is
    their share. What did not parse is malformed; a skill none of whose runs was
    answered is lost to the infrastructure, and enters no group and no gradient.

    Args:
      prompts: `[S, P]` int32, of the states.
      drafts: rows `[S * K]`, row `b` for state `b % S`.
      outcome: `[S * K, n]` int32, of the runs.
      reward: of the drafts, see `jerp.skill_reward`.

    Returns:
      Episodes `[S * K, 1]`, of groups and tasks `b % S`.

    Raises:
      ShapeError: drafts, runs and rewards of different numbers.
    """
    check_axes(
        prompts=(prompts, "S P", int),
        tokens=(drafts.tokens, "B L", int),
        outcome=(outcome, "B n", int),
        total=(reward.total, "B"),
        valid=(reward.valid, "B", bool),
    )
    rows, states = outcome.shape[0], prompts.shape[0]
    state = jnp.arange(rows, dtype=jnp.int32) % states
    seen, ends = jnp.asarray(prompts)[state], jnp.ones((rows, 1), bool)
    share = jnp.where(reward.valid, reward.task, 0.0)
    written = {
        name: cast(Array, getattr(drafts, name))[:, None]
        for name in ("tokens", "token_log_prob", "token_mask")
    }
    return Trajectory(
        observation=seen[:, None],
        action=drafts.action[:, None],
        reward=jnp.where(reward.valid, reward.total, 0.0)[:, None],
        terminated=ends,
        truncated=~ends,
        mask=ends,
        anchor=jnp.zeros((rows, 1), jnp.int32),
        usage=jnp.zeros((rows, 1, len(USAGE_KINDS))),
        final_observation=seen,
        task_id=state,
        group_id=state,
        seed=jnp.arange(rows, dtype=jnp.int32) // states,
        outcome=_outcome(reward, share),
        score=share,
        version=jnp.zeros(rows, jnp.int32),
        log_prob=drafts.log_prob[:, None],
        **written,
    )


def _outcome(reward: SkillReward, share: Array) -> Array:
    found = jnp.where(share == 1.0, Outcome.SUCCESS, Outcome.FAILURE)
    found = jnp.where(reward.format > 0, found, Outcome.MALFORMED)
    return jnp.where(reward.valid, found, Outcome.INFRASTRUCTURE).astype(jnp.int32)


def write_drafts(policy: DraftPolicy, params: Any, key: Key, prompts: Array) -> Acted:
    """A draft a row, drawn by a key of its own: that of the row's number.

    Args:
      policy: the optimizer.
      params: of it.
      key: consumed.
      prompts: `[B, P]` int32.
    """
    rows = prompts.shape[0]
    keys = jax.vmap(jax.random.fold_in, (None, 0))(key, jnp.arange(rows))
    return policy.act(params, policy.start(params, rows), keys, prompts, None)[1]


def _draft(
    policy: DraftPolicy, num_drafts: int, params: Any, key: Key, prompts: Array
) -> Acted:
    return write_drafts(policy, params, key, jnp.tile(prompts, (num_drafts, 1)))


def _learn(
    step: Any,
    state: TrainState,
    hyper: GroupHyper,
    episodes: Trajectory,
    frozen: Mapping[str, Any] | None = None,
) -> tuple[TrainState, dict[str, Array]]:
    return step(state, hyper, episodes, None, frozen)
