"""Settings of the language model that reads the house and its rules in words.

The default is what two cores can do: every part, on a few instances. `PAPER` has the
paper's own numbers, for a machine that can hold them.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

from jerp.envs.house import House, house_large, house_small
from jerp.envs.house_rules import TASK_TYPES, HouseRules
from jerp.envs.rule_language import Situated
from jerp.models.decoder import DecoderConfig
from jerp.models.lora import LoraConfig
from jerp.models.token_policy import TokenPolicy
from jerp.runs.policy.groups import PolicyTask
from jerp.training.group_settings import GroupConfig, GroupHyper, algorithm

__all__ = [
    "PAPER",
    "READER_SMOKE",
    "ReaderSizes",
    "reader_algorithm",
    "reader_house",
    "reader_lora",
    "reader_task",
]


@dataclass(frozen=True)
class ReaderSizes:
    """How much of everything, for a language model that reads the house in words.

    Attributes:
      large: the large house, not the small one.
      types: of tasks, those that are trained and tried; demonstrations are of all.
      instances: training tasks of each type.
      held_out: tasks of each type, of the split "seen".
      samples: episodes a held-out task.
      num_groups: tasks an iteration.
      group_size: episodes of a task that are compared.
      num_steps: step budget; the oracle needs ten at most.
      num_tokens: of an episode, at most.
      num_observation_tokens, num_action_tokens: of one observation, one action.
      num_rules: R, in a prompt.
      similar_rules: R where rules are retrieved by similarity.
      rule_tokens: of all rules in a prompt, at most: what is asked needs room too.
      rank: of the adapters, which are beside every matrix.
      alpha: of the adapters: their product is multiplied by `alpha / rank`.
      layers: that have adapters, the last so many; None for all.
      oracle_tasks: in which the oracle shows what is right, and of which as many as are
        wanted of a type are taken.
      demonstrations: episodes of the follower of rules that adapters are cloned from,
        as many of each type; with 0 the model begins as it is.
      demonstration_steps: of one, at most.
      right: share of demonstrations with right rules in the prompt.
      wrong: share with wrong ones; the others have none.
      noise: share of the follower's steps that are random.
      epochs: of cloning.
      cloning_rate: of learning, of cloning.
      learning_rate: of joint learning.
      discount: of step returns; an episode is paid at its end, undiscounted.
      kl_weight: of k3 to the clone.
      entropy_weight: of the bonus.
      clip: range of the ratio to either side.
      microbatch: episodes whose gradients are computed at once.
      iterations: of joint learning with the contrast reflector.
      asked_iterations: of joint learning with the model itself as reflector.
      similar_iterations: of joint learning with rules retrieved by similarity.
      reflection_chars: of a prompt of reflection.
      reflection_tokens: of an answer.
      prompted: held-out tasks of each type that the baselines play by prompting.
      answer_tokens: of an action with its thought.
      trials: of Reflexion.
    """

    large: bool = False
    types: tuple[str, ...] = ("pick", "look", "clean")
    instances: int = 4
    held_out: int = 8
    samples: int = 2
    num_groups: int = 3
    group_size: int = 4
    num_steps: int = 12
    num_tokens: int = 576
    num_observation_tokens: int = 224
    num_action_tokens: int = 8
    num_rules: int = 4
    similar_rules: int = 2
    rule_tokens: int = 136
    rank: int = 16
    alpha: float = 32.0
    layers: int | None = 15
    oracle_tasks: int = 4096
    demonstrations: int = 120
    demonstration_steps: int = 8
    right: float = 0.6
    wrong: float = 0.3
    noise: float = 0.0
    epochs: int = 10
    cloning_rate: float = 1e-3
    learning_rate: float = 2e-4
    discount: float = 0.95
    kl_weight: float = 0.001
    entropy_weight: float = 0.003
    clip: float = 0.2
    microbatch: int = 4
    iterations: int = 10
    asked_iterations: int = 2
    similar_iterations: int = 2
    reflection_chars: int = 4000
    reflection_tokens: int = 96
    prompted: int = 2
    answer_tokens: int = 96
    trials: int = 2

    @property
    def joint_iterations(self) -> dict[str, int]:
        """By name the parts that train, and their iterations."""
        return {
            "jerp": self.iterations,
            "asked": self.asked_iterations,
            "similar": self.similar_iterations,
        }


READER_SMOKE = ReaderSizes(
    types=("pick", "look"),
    instances=1,
    held_out=2,
    samples=1,
    num_groups=2,
    group_size=2,
    num_steps=1,
    num_tokens=144,
    num_observation_tokens=128,
    num_rules=1,
    similar_rules=1,
    rule_tokens=48,
    rank=2,
    alpha=4.0,
    layers=1,
    oracle_tasks=256,
    demonstrations=4,
    demonstration_steps=1,
    epochs=1,
    iterations=1,
    asked_iterations=1,
    similar_iterations=1,
    reflection_chars=2000,
    reflection_tokens=8,
    prompted=1,
    answer_tokens=8,
    trials=2,
)

PAPER = ReaderSizes(
    large=True,
    types=TASK_TYPES,
    instances=512,
    held_out=24,
    samples=4,
    num_groups=32,
    group_size=8,
    num_steps=50,
    num_tokens=4096,
    num_observation_tokens=512,
    num_action_tokens=12,
    num_rules=10,
    similar_rules=10,
    rule_tokens=320,
    rank=64,
    alpha=64.0,
    layers=None,
    oracle_tasks=8192,
    demonstrations=0,
    learning_rate=3e-6,
    discount=0.95,
    kl_weight=0.01,
    entropy_weight=0.0,
    clip=0.2,
    iterations=200,
    asked_iterations=200,
    similar_iterations=200,
    reflection_chars=12_000,
    reflection_tokens=256,
    prompted=24,
    trials=3,
)
"""The hyper-parameters of arXiv:2606.27136 for ALFWorld, in the large house.

    jerp run jerp --full --policy PATH

with the folder of Qwen2.5-1.5B-Instruct, or of another model that `load_weights` reads.
They were not run here: the keys and values of 256 episodes of 4096 tokens alone take 60
GB of that model, and 200 iterations of them days of a large accelerator.

The paper says: adapters of rank 64 and alpha 64, a learning rate of 3e-6, groups of 8,
a discount of .95, at most 50 steps, batches of 256, 200 epochs. It names no base model;
rows of its table are those of Qwen2.5-1.5B-Instruct elsewhere. It says nothing of what
is chosen here: k = 10 rules and their tokens, the weight of KL (.01), the range of the
clipped ratio (.2), no entropy bonus, a temperature of 1 (the policy is sampled as it
is), that a batch counts episodes (32 tasks of 8) and an epoch is one iteration, that
the model is not cloned before, and the pool's numbers, which are ExpeL's
(`jerp.training.joint.RuleConfig`). Its reflector is a language model: the part "asked".
"""


def reader_house(sizes: ReaderSizes) -> House:
    """The world."""
    return house_large() if sizes.large else house_small()


def reader_lora(sizes: ReaderSizes, config: DecoderConfig) -> LoraConfig:
    """Adapters beside every matrix of the layers that have them."""
    first = 0 if sizes.layers is None else config.num_layers - sizes.layers
    layers = "|".join(map(str, range(first, config.num_layers)))
    return LoraConfig(sizes.rank, sizes.alpha, targets=rf"layer_({layers})/.*")


def reader_algorithm(sizes: ReaderSizes) -> tuple[GroupConfig, GroupHyper]:
    """GRPO with k3 to the clone, and token means."""
    config, hyper = algorithm(
        "grpo",
        num_groups=sizes.num_groups,
        learning_rate=sizes.learning_rate,
        entropy_weight=sizes.entropy_weight,
        discount=sizes.discount,
        kl_weight=sizes.kl_weight,
        clip_low=sizes.clip,
        clip_high=sizes.clip,
    )
    episodes = sizes.num_groups * sizes.group_size
    parts = max(episodes // sizes.microbatch, 1)
    return replace(config, aggregation="token_mean", microbatches=parts), hyper


def reader_task(
    sizes: ReaderSizes, decoder: DecoderConfig
) -> tuple[PolicyTask, GroupHyper]:
    """What is trained, in what, how.

    Args:
      sizes: such as `PAPER`.
      decoder: sizes of the model.

    Raises:
      ConfigError: a model whose context does not hold an episode.
    """
    house = reader_house(sizes)
    policy = TokenPolicy(
        replace(decoder, remat=True),
        sizes.num_observation_tokens,
        sizes.num_action_tokens,
        sizes.num_steps,
        lora=reader_lora(sizes, decoder),
        capacity=sizes.num_tokens,
    )
    env = Situated(house, HouseRules(house.size))
    config, hyper = reader_algorithm(sizes)
    return PolicyTask(env, policy, config, sizes.group_size, sizes.num_steps), hyper
