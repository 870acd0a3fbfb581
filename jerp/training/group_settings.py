"""The settings of policy-gradient training: which algorithm, and its numbers.

`GroupConfig` changes shapes or code paths and is hashable; the leaves of `GroupHyper`
are numbers that may be traced, so that learning rates and seeds share a compilation.
`ALGORITHMS` has the algorithms of the literature, each a few keywords.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, replace
from types import MappingProxyType
from typing import Any, Literal, get_args

from flax import struct

from jerp.advantages.group import Baseline, Scale
from jerp.errors import ConfigError
from jerp.objectives.aggregate import Aggregation
from jerp.objectives.clipped import Form, Ratio
from jerp.ops.checks import check_choice
from jerp.typing import ArrayLike

__all__ = ["ALGORITHMS", "Advantage", "GroupConfig", "GroupHyper", "algorithm"]

Advantage = Literal["return", "group", "gigpo", "one_anchor", "gae"]
"""What an action is held to have been worth: its episode's return, that relative to its
comparison group, with steps compared at equal states besides ("gigpo") or all with all
("one_anchor", GiGPO's control), or the generalised advantage of a value head."""


@dataclass(frozen=True)
class GroupConfig:
    """What changes shapes or code paths.

    Attributes:
      num_groups: G, comparison groups in a batch.
      advantage: see `Advantage`.
      baseline: of the episodes of a group ("group" alone).
      scale: of episode advantages, by group.
      step_scale: of step advantages ("gigpo" and "one_anchor" alone).
      form, ratio, aggregation: see `jerp.clipped_policy_loss`.
      epochs: passes over the batch.
      minibatches: updates a pass; a divisor of the number of episodes.
      microbatches: parts of a minibatch whose gradients are added up, which changes
        memory and not the update; a divisor of a minibatch's episodes. What has to be
        known before the updates, of the policy or of a reference, is evaluated in
        parts of that size too.
      drop_dead: episodes of dead groups (`StepAdvantage.dead`: no advantage but 0)
        enter no loss, as DAPO's dynamic sampling has it; otherwise they count with
        advantage 0.
    """

    num_groups: int
    advantage: Advantage = "group"
    baseline: Baseline = "mean"
    scale: Scale = "std"
    step_scale: Scale = "std"
    form: Form = "ppo"
    ratio: Ratio = "token"
    aggregation: Aggregation = "token_mean"
    epochs: int = 1
    minibatches: int = 1
    microbatches: int = 1
    drop_dead: bool = False

    def __post_init__(self):
        check_choice("advantage", self.advantage, get_args(Advantage))
        for name in ("num_groups", "epochs", "minibatches", "microbatches"):
            if getattr(self, name) < 1:
                raise ConfigError(f"{name}: expected >= 1, got {getattr(self, name)}")
        if self.drop_dead and self.advantage in ("return", "gae"):
            raise ConfigError(
                f"drop_dead: advantage {self.advantage!r} compares no groups; use "
                "'group', 'gigpo' or 'one_anchor'"
            )


class GroupHyper(struct.PyTreeNode):
    """Numbers; every leaf may be traced.

    Attributes:
      learning_rate: of Adam.
      max_grad_norm: to which the global norm of a gradient is clipped.
      discount: of step returns and of `gae`; episode returns are not discounted.
      lambda_: of `gae`.
      step_weight: of step advantages, `omega` in GiGPO.
      clip_low, clip_high: see `jerp.clipped_policy_loss`.
      constant: of aggregation "sum_over_constant".
      entropy_weight: of the entropy bonus.
      kl_weight: of k3 to the reference, where there is one.
      value_weight: of the value head's loss.
      step_penalty: taken from every step's reward.
      invalid_penalty: taken besides from a step whose action was not legal.
      max_length, length_buffer: an episode pays for its length at its last step, from
        `max_length - length_buffer` on and 1 at most, see `jerp.overlong_penalty`. A
        length is the tokens that the policy generated in the episode, or its steps
        where it generates none. The default punishes no length.
    """

    learning_rate: ArrayLike = 1e-3
    max_grad_norm: ArrayLike = 1.0
    discount: ArrayLike = 0.95
    lambda_: ArrayLike = 0.95
    step_weight: ArrayLike = 1.0
    clip_low: ArrayLike = 0.2
    clip_high: ArrayLike = 0.2
    constant: ArrayLike = 1.0
    entropy_weight: ArrayLike = 0.0
    kl_weight: ArrayLike = 0.0
    value_weight: ArrayLike = 0.5
    step_penalty: ArrayLike = 0.0
    invalid_penalty: ArrayLike = 0.0
    max_length: ArrayLike = math.inf
    length_buffer: ArrayLike = 1.0


ALGORITHMS: Mapping[str, tuple[Mapping[str, Any], Mapping[str, Any]]] = (
    MappingProxyType(
        {
            "reinforce": ({"advantage": "return"}, {}),
            "rloo": ({"baseline": "leave_one_out", "scale": "none"}, {}),
            "grpo": ({"aggregation": "sequence_mean_token_mean"}, {}),
            "dr-grpo": ({"scale": "none", "aggregation": "sum_over_constant"}, {}),
            "dapo": (
                {"drop_dead": True},
                {"clip_high": 0.28, "max_length": 20480, "length_buffer": 4096},
            ),
            "gspo": (
                {"ratio": "sequence", "aggregation": "sequence_mean_token_mean"},
                {"clip_low": 3e-4, "clip_high": 4e-4},
            ),
            "cispo": ({"form": "cispo"}, {"clip_low": 1.0}),
            "gigpo": ({"advantage": "gigpo"}, {}),
            "gigpo-none": (
                {"advantage": "gigpo", "scale": "none", "step_scale": "none"},
                {},
            ),
            "one-anchor": ({"advantage": "one_anchor"}, {}),
            "ppo": ({"advantage": "gae", "epochs": 2, "minibatches": 4}, {}),
        }
    )
)
"""By name the keywords of `GroupConfig` and of `GroupHyper` that make the algorithm.

REINFORCE, Williams 1992; RLOO, arXiv:2402.14740; GRPO, 2402.03300; Dr.GRPO, 2503.20783
(give `constant` the longest length); DAPO, 2503.14476 (its limits of length are those
of long answers: give `max_length` your own, and a fifth of it as buffer); GSPO,
2507.18071; CISPO, 2506.13585; GiGPO, 2505.10978; PPO, 1707.06347."""


def algorithm(
    name: str, *, num_groups: int, **hyper: ArrayLike
) -> tuple[GroupConfig, GroupHyper]:
    """An algorithm of the literature by its name.

    Args:
      name: of `ALGORITHMS`.
      num_groups: G.
      **hyper: of `GroupHyper`; they win over what the name says.

    Returns:
      Config and hyper-parameters; `dataclasses.replace` changes what else is wanted.

    Raises:
      UnknownNameError: another name.

    Example:
      >>> config, hyper = algorithm("dapo", num_groups=4, learning_rate=1e-4)
      >>> config.drop_dead, hyper.clip_high, hyper.learning_rate
      (True, 0.28, 0.0001)
    """
    check_choice("algorithm", name, tuple(ALGORITHMS))
    static, traced = ALGORITHMS[name]
    config = replace(GroupConfig(num_groups=num_groups), **static)
    return config, GroupHyper(**{**traced, **hyper})
