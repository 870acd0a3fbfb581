"""Settings of the language model that reads the house and its rules in words.

`ReaderSizes` is what a run on two cores can do: every part, on a few instances. `PAPER`
has the paper's own numbers, for a machine that can hold them.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

from jerp.envs.base import World
from jerp.envs.house import house_large
from jerp.models.decoder import DecoderConfig
from jerp.models.lora import LoraConfig
from jerp.models.token_policy import TokenPolicy
from jerp.runs.policy.groups import PolicyTask
from jerp.training.group_settings import GroupConfig, GroupHyper, algorithm
from jerp.training.joint import RuleConfig

__all__ = [
    "PAPER",
    "READER_SMOKE",
    "PaperSettings",
    "ReaderSizes",
    "paper_parts",
    "reader_algorithm",
    "reader_lora",
]

EVERY_LAYER = r"layer_\d+/.*"
"""Adapters stand beside every matrix."""


@dataclass(frozen=True)
class ReaderSizes:
    """How much of everything, for a language model that reads the house in words.

    Attributes:
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
      rank: of the adapters, which are beside every matrix.
      layers: that have adapters, the last so many; None for all.
      oracle_tasks: in which the oracle shows what is right, and of which as many as are
        wanted of a type are taken.
      demonstrations: episodes of the follower of rules that adapters are cloned from.
      demonstration_steps: of one, at most.
      noise: share of the follower's steps that are random.
      epochs: of cloning.
      iterations: of joint learning with the contrast reflector.
      asked_iterations: of joint learning with the model itself as reflector.
      similar_iterations: of joint learning with rules retrieved by similarity.
      reflection_chars: of a prompt of reflection.
      reflection_tokens: of an answer.
      prompted: held-out tasks of each type that the baselines play by prompting.
      answer_tokens: of an action with its thought.
      trials: of Reflexion.
    """

    types: tuple[str, ...] = ("pick", "look", "clean")
    instances: int = 4
    held_out: int = 4
    samples: int = 2
    num_groups: int = 3
    group_size: int = 4
    num_steps: int = 12
    num_tokens: int = 576
    num_observation_tokens: int = 224
    num_action_tokens: int = 8
    num_rules: int = 4
    similar_rules: int = 2
    rank: int = 16
    layers: int | None = None
    oracle_tasks: int = 4096
    demonstrations: int = 160
    demonstration_steps: int = 10
    noise: float = 0.0
    epochs: int = 2
    iterations: int = 6
    asked_iterations: int = 2
    similar_iterations: int = 2
    reflection_chars: int = 4000
    reflection_tokens: int = 96
    prompted: int = 2
    answer_tokens: int = 96
    trials: int = 2


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
    rank=2,
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


def reader_lora(sizes: ReaderSizes, config: DecoderConfig) -> LoraConfig:
    """Adapters whose product counts twice."""
    first = 0 if sizes.layers is None else config.num_layers - sizes.layers
    layers = "|".join(map(str, range(first, config.num_layers)))
    return LoraConfig(sizes.rank, 2.0 * sizes.rank, targets=rf"layer_({layers})/.*")


def reader_algorithm(sizes: ReaderSizes, rows: int) -> tuple[GroupConfig, GroupHyper]:
    """GRPO with k3 to the clone, gradients of `rows` episodes at once."""
    config, hyper = algorithm(
        "grpo",
        num_groups=sizes.num_groups,
        learning_rate=2e-4,
        entropy_weight=0.003,
        discount=0.95,
        kl_weight=0.001,
    )
    episodes = sizes.num_groups * sizes.group_size
    parts = max(episodes // rows, 1)
    return replace(config, aggregation="token_mean", microbatches=parts), hyper


@dataclass(frozen=True)
class PaperSettings:
    """The hyper-parameters of arXiv:2606.27136 for ALFWorld, here for `house_large`.

    What the paper says: `rank`, `alpha`, `learning_rate`, `group_size`, `discount`,
    `batch_size`, `epochs`, `num_steps`. It names no base model; its table repeats rows
    of Qwen2.5-1.5B-Instruct. What it does not say is a choice of this library: k
    (`num_rules`), the pool's numbers (ExpeL's, see `RuleConfig`), the weight of KL, the
    range of the clipped ratio, a temperature of 1 (the policy is sampled as it is), and
    that `batch_size` counts episodes: 32 tasks of 8 an iteration.

    They were not run here: 1.5 billion parameters in float32, their products of 256
    episodes and 200 iterations ask for days of a large accelerator. To try, give the
    folder of the weights as the policy of the run on a few instances,

        jerp run jerp --policy PATH

    which takes any model that `jerp.storage.weights.load_weights` reads, with
    `ReaderSizes`; for the paper's numbers give what `paper_parts` returns to
    `jerp.runs.jerp.loop.train_jerp`, as `experiments.joint_rules.language_model` does
    with its own.

    Attributes:
      model: weights they are meant for.
      rank, alpha: of the adapters.
      learning_rate: of Adam.
      group_size: N, episodes of a task that are compared.
      discount: of step returns; episodes are paid at their end, undiscounted.
      batch_size: episodes an iteration.
      epochs: iterations.
      num_steps: step budget of an episode.
      num_rules: k, rules in a prompt.
      kl_weight: beta.
      clip: epsilon.
      num_observation_tokens, num_action_tokens: of one observation, one action.
      num_tokens: of an episode, at most.
      microbatch: episodes whose gradients are computed at once.
    """

    model: str = "Qwen2.5-1.5B-Instruct"
    rank: int = 64
    alpha: float = 64.0
    learning_rate: float = 3e-6
    group_size: int = 8
    discount: float = 0.95
    batch_size: int = 256
    epochs: int = 200
    num_steps: int = 50
    num_rules: int = 10
    kl_weight: float = 0.01
    clip: float = 0.2
    num_observation_tokens: int = 512
    num_action_tokens: int = 12
    num_tokens: int = 4096
    microbatch: int = 4


PAPER = PaperSettings()
"""The paper's numbers."""


def paper_parts(
    settings: PaperSettings, config: DecoderConfig, env: World | None = None
) -> tuple[PolicyTask, GroupHyper, RuleConfig]:
    """What `train_jerp` needs of these settings, beside weights and tasks.

    Args:
      settings: such as `PAPER`.
      config: of the model's decoder.
      env: the world; None for `house_large`.

    Raises:
      ConfigError: a model whose context does not hold an episode.
    """
    config_of_groups, hyper = algorithm(
        "grpo",
        num_groups=settings.batch_size // settings.group_size,
        learning_rate=settings.learning_rate,
        discount=settings.discount,
        kl_weight=settings.kl_weight,
        clip_low=settings.clip,
        clip_high=settings.clip,
    )
    policy = TokenPolicy(
        replace(config, remat=True),
        settings.num_observation_tokens,
        settings.num_action_tokens,
        settings.num_steps,
        lora=LoraConfig(settings.rank, settings.alpha, targets=EVERY_LAYER),
        capacity=settings.num_tokens,
    )
    parts = settings.batch_size // settings.microbatch
    task = PolicyTask(
        env or house_large(),
        policy,
        replace(config_of_groups, microbatches=parts),
        settings.group_size,
        settings.num_steps,
    )
    return task, hyper, RuleConfig(num_rules=settings.num_rules)
