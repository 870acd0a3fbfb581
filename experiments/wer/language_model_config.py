"""Settings of a language model that writes skills for a frozen one, in words.

The default is what one core can do in some twenty minutes: every part, on a few tasks.
`PAPER` has the paper's own numbers, for a machine that can hold them.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import optax

from jerp.errors import ConfigError
from jerp.models.decoder import DecoderConfig
from jerp.models.draft_policy import DraftPolicy
from jerp.models.lora import LoraConfig
from jerp.runs.skills.settings import SkillSettings
from jerp.training.group_settings import GroupConfig, GroupHyper
from jerp.training.skill import skill_algorithm

__all__ = [
    "PAPER",
    "READER_SMOKE",
    "ReaderSizes",
    "reader_algorithm",
    "reader_policy",
    "reader_rate",
    "reader_settings",
]


@dataclass(frozen=True)
class ReaderSizes:
    """How much of everything, for language models that write and follow skills.

    Attributes:
      train_tasks: that skills are written for, in training and after.
      phases: P, of training.
      batches: of a phase.
      states: S, of a batch.
      num_drafts: K, of a state.
      num_runs: n, of a draft.
      rounds: of revision, once the optimizer is trained.
      lengths: numbers of steps that a skill merged by vote may have.
      validation: tasks that decide between merged skills.
      validation_runs: of each.
      test: locked tasks.
      test_runs: of each.
      prompt_tokens: of a prompt for the optimizer, at most.
      draft_tokens: of what it writes, at most.
      evidence_chars: of one run that is shown, at most.
      skill_tokens: of a skill, at most; a longer one is no draft.
      reasoning_budget: tokens of reasoning that cost nothing.
      temperature, top_k: of drafts.
      rank: of the adapters.
      alpha: of the adapters: their product is multiplied by `alpha / rank`.
      layers: that have adapters, the last so many; None for all.
      demonstrations: drafts that are well formed and know nothing, which adapters are
        cloned from; with 0 the model begins as it is.
      epochs: of cloning.
      cloning_rate: of learning, of cloning.
      learning_rate: of training, at its highest.
      warmup: batches until then; after it the rate falls as a cosine does.
      microbatch: drafts whose gradients are computed at once.
      merge_tokens: of the answer of the model that is asked to merge skills.
    """

    train_tasks: int = 6
    phases: int = 2
    batches: int = 2
    states: int = 3
    num_drafts: int = 4
    num_runs: int = 2
    rounds: int = 2
    lengths: tuple[int, ...] = (2, 4)
    validation: int = 9
    validation_runs: int = 2
    test: int = 24
    test_runs: int = 2
    prompt_tokens: int = 384
    draft_tokens: int = 128
    evidence_chars: int = 160
    skill_tokens: int = 96
    reasoning_budget: int = 24
    temperature: float = 0.95
    top_k: int = 50
    rank: int = 16
    alpha: float = 32.0
    layers: int | None = 10
    demonstrations: int = 36
    epochs: int = 5
    cloning_rate: float = 1e-3
    learning_rate: float = 2e-4
    warmup: int = 1
    microbatch: int = 4
    merge_tokens: int = 160

    def __post_init__(self) -> None:
        rows = self.states * self.num_drafts
        if rows % min(self.microbatch, rows):
            raise ConfigError(
                f"microbatch: expected a divisor of {rows}, the drafts of a batch, got "
                f"{self.microbatch}"
            )

    @property
    def total(self) -> int:
        """Batches of all phases."""
        return self.phases * self.batches


READER_SMOKE = ReaderSizes(
    train_tasks=2,
    phases=1,
    batches=1,
    states=2,
    num_drafts=2,
    rounds=1,
    lengths=(2,),
    validation=2,
    validation_runs=1,
    test=2,
    prompt_tokens=400,
    draft_tokens=112,
    rank=2,
    alpha=4.0,
    layers=1,
    demonstrations=4,
    epochs=1,
    microbatch=2,
    merge_tokens=16,
)

PAPER = ReaderSizes(
    train_tasks=48,
    phases=3,
    batches=8,
    states=6,
    num_drafts=4,
    num_runs=2,
    rounds=2,
    lengths=(4, 8, 16),
    validation=24,
    test=150,
    test_runs=3,
    prompt_tokens=19_000,
    draft_tokens=4096,
    evidence_chars=24_000,
    skill_tokens=3000,
    reasoning_budget=1024,
    temperature=0.95,
    top_k=50,
    rank=64,
    alpha=64.0,
    layers=None,
    demonstrations=0,
    learning_rate=1e-6,
    warmup=2,
    microbatch=1,
    merge_tokens=4096,
)
"""The hyper-parameters of arXiv:2608.17587, for an optimizer such as Qwen3-4B.

    jerp run wer --full --policy PATH

with the folder of Qwen3-4B, or of another model that `load_weights` reads. They were
not run here: a prompt and a draft have up to 23,096 tokens, whose keys and values take
6.8 GB of that model, 163 GB for the 24 drafts of a batch.

The paper says: 4 drafts a state, 2 runs a draft, 3 phases, batches of 6, a learning
rate of 1e-6 with warm-up and a cosine, prompts of 19,000 and answers of 4,096 tokens,
temperature .95, top-k 50, 2 rounds of revision, 3 runs a test task. It trains all
matrices, and its executor, its seeds and its merger are larger models of others. What
is chosen here: adapters (rank 64) in their place, two batches of warm-up, one pass over
the tasks a phase, 48 of them, of the coding domain; a budget of 1,024 tokens for the
reasoning; no cloning, for such a model writes the format when it is asked.
"""


def reader_policy(
    sizes: ReaderSizes, decoder: DecoderConfig, stop_tokens: tuple[int, ...]
) -> DraftPolicy:
    """The optimizer: a decoder with adapters.

    Raises:
      ConfigError: a model whose context does not hold a prompt and a draft.
    """
    first = 0 if sizes.layers is None else decoder.num_layers - sizes.layers
    layers = "|".join(map(str, range(first, decoder.num_layers)))
    return DraftPolicy(
        replace(decoder, remat=True),
        sizes.prompt_tokens,
        sizes.draft_tokens,
        stop_tokens,
        temperature=sizes.temperature,
        top_k=sizes.top_k,
        lora=LoraConfig(sizes.rank, sizes.alpha, targets=rf"layer_({layers})/.*"),
    )


def reader_algorithm(sizes: ReaderSizes) -> tuple[GroupConfig, GroupHyper]:
    """The paper's update, its gradients computed a few drafts at a time."""
    config, hyper = skill_algorithm(
        sizes.states, standardize=True, learning_rate=sizes.learning_rate
    )
    drafts = sizes.states * sizes.num_drafts
    parts = drafts // min(sizes.microbatch, drafts)
    return replace(config, microbatches=parts), hyper


def reader_rate(sizes: ReaderSizes) -> optax.Schedule:
    """The learning rate by batch: a line up to its highest, then a cosine down to 0."""
    return optax.warmup_cosine_decay_schedule(
        init_value=sizes.learning_rate / (sizes.warmup + 1),
        peak_value=sizes.learning_rate,
        warmup_steps=sizes.warmup,
        decay_steps=sizes.total + 1,
    )


def reader_settings(sizes: ReaderSizes) -> SkillSettings:
    """Of the loop."""
    return SkillSettings(
        phases=sizes.phases,
        batches=sizes.batches,
        num_drafts=sizes.num_drafts,
        num_runs=sizes.num_runs,
        reasoning_budget=float(sizes.reasoning_budget),
    )
