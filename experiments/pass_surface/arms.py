"""What is trained from the base: by cloning an expert, or by reinforcement learning.

All arms have the same 200 questions, 100 B and 100 C, at half of the visits with the
budget shown. What can be looked up is redrawn at every visit, for the expert as well:
of what is fixed, policies learn the answers by heart.
"""

from __future__ import annotations

from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from experiments.pass_surface.config import TRAINED_LIMIT, Sizes
from experiments.pass_surface.evaluation import BUDGETS, play
from experiments.pass_surface.places import Place
from experiments.pass_surface.questions import Questions
from jerp.envs.lookup_tasks import LookupKind, LookupParams
from jerp.envs.shared_words import SharedWords
from jerp.models.token_policy import TokenPolicy
from jerp.models.value_head import init_value_head
from jerp.rollout.demonstrations import demonstrations
from jerp.runs.policy.groups import PolicyTask
from jerp.runs.policy.training import train_policy
from jerp.storage.documents import write_json
from jerp.storage.metrics import read_metrics
from jerp.training.cloning import clone_policy
from jerp.training.group_settings import algorithm
from jerp.trajectory import Trajectory
from jerp.typing import Key, Outcome

__all__ = [
    "TRAINING",
    "TrainingQuestions",
    "both_budgets",
    "expert_episodes",
    "train_by_cloning",
    "train_by_reward",
    "training_questions",
]

TRAINING = "training.json"
"""What a training took, in a job's folder."""

BATCH = 32
"""Episodes an update of SFT."""

LEARNING_RATE = 1e-3

SAMPLES = 8
"""Episodes a validation question and budget."""


class TrainingQuestions(NamedTuple):
    """Forms of the split "train", none in both.

    Attributes:
      train: leaves `[2 * train_questions]`, B and C in turn.
      validation: leaves `[2 * validation]`, likewise.
    """

    train: LookupParams
    validation: LookupParams


def training_questions(key: Key, place: Place, sizes: Sizes) -> TrainingQuestions:
    """The questions of all arms of a seed; `key` is consumed."""
    kinds = len(LookupKind)
    each = sizes.train_questions + sizes.validation
    drawn = place.tasks(key, kinds * each, "train")
    searched = np.flatnonzero(np.arange(kinds * each) % kinds != LookupKind.DIRECT)
    cut = (kinds - 1) * sizes.train_questions
    train, validation = (
        jax.tree.map(lambda x, at=at: x[at], drawn)
        for at in (searched[:cut], searched[cut:])
    )
    return TrainingQuestions(train, validation)


def both_budgets(tasks: LookupParams) -> LookupParams:
    """Every question twice, leaves `[2 N]`: its budget shown once, and once hidden.

    Of either half of the rows half of each kind are shown, so that an odd number of
    visits shows no kind more often than another.
    """
    rank = jnp.sum(jnp.tril(tasks.kind[:, None] == tasks.kind[None]), axis=1)
    shown = rank % 2 == 1
    halves = [tasks.replace(announced=first) for first in (shown, ~shown)]
    return jax.tree.map(lambda *x: jnp.concatenate(x), *halves)


def expert_episodes(
    key: Key, place: Place, tasks: LookupParams, *, visits: int
) -> Trajectory:
    """What an oracle does at `visits` visits of each question, each drawn anew.

    Where all its searches fail it can only guess, and may be wrong; nothing is learned
    from that.

    Args:
      key: consumed.
      place: of questions.
      tasks: N questions.
      visits: episodes of each.

    Returns:
      `[visits * N, T]` episodes, those that are wrong masked.
    """
    settings: Any = {
        "env": place.env,
        "policy": place.policy(),
        "num_steps": place.num_steps,
        "batch_size": visits * tasks.kind.shape[0],
    }
    return _shown(key, both_budgets(tasks), **settings)


@partial(jax.jit, static_argnames=("env", "policy", "num_steps", "batch_size"))
def _shown(
    key: Key,
    tasks: LookupParams,
    *,
    env: SharedWords,
    policy: TokenPolicy,
    num_steps: int,
    batch_size: int,
) -> Trajectory:
    steps = {"num_steps": num_steps, "batch_size": batch_size}
    data = demonstrations(key, env, tasks, **steps)
    right = data.outcome == Outcome.SUCCESS
    return policy.with_tokens(data.replace(mask=data.mask & right[:, None]))


def train_by_cloning(
    where: Path,
    key: Key,
    place: Place,
    asked: TrainingQuestions,
    base: Any,
    sizes: Sizes,
) -> Any:
    """SFT: as long as solves most validation questions; writes `training.json`.

    Args:
      where: folder of the job.
      key: not consumed.
      place: of questions.
      asked: the questions to train and to validate on.
      base: parameters to start from.
      sizes: the numbers of visits that are tried.

    Returns:
      Parameters.
    """
    found, rates, generated, learned = {}, {}, {}, {}
    for visits in sizes.sft_visits:
        # The same keys for all: a longer training has the episodes of a shorter one.
        show, clone, ask = (jax.random.fold_in(key, i) for i in range(3))
        data = expert_episodes(show, place, asked.train, visits=visits)
        found[visits] = _cloned(clone, base, data, policy=place.policy())
        learned[visits] = int(np.sum(np.asarray(data.token_mask)))
        if len(sizes.sft_visits) > 1:
            rates[visits], generated[visits] = _validated(
                ask, place, asked, found[visits], sizes
            )
    best = max(found, key=lambda visits: rates.get(visits, 0.0))
    taken = {
        "visits": best,
        "updates": -(-best * asked.train.kind.shape[0] // BATCH),
        "validation": {str(visits): rate for visits, rate in rates.items()},
        # All that was tried, as reinforcement pays for every episode; not the expert's.
        "generated_tokens": sum(generated.values()),
        "learned_tokens": sum(learned.values()),
    }
    write_json(where / TRAINING, taken)
    return found[best]


@partial(jax.jit, static_argnames=("policy",))
def _cloned(key: Key, params: Any, data: Trajectory, *, policy: TokenPolicy) -> Any:
    settings: Any = {"learning_rate": LEARNING_RATE, "batch_size": BATCH}
    return clone_policy(key, policy, params, data, epochs=1, **settings)[0]


def _validated(
    key: Key, place: Place, asked: TrainingQuestions, params: Any, sizes: Sizes
) -> tuple[float, int]:
    """On validation questions under both budgets: success at the first try, and tokens.

    The tokens are those that the policy wrote for it.
    """
    asking, playing = jax.random.split(key)
    number = asked.validation.kind.shape[0]
    starts = jax.random.key_data(jax.random.split(asking, number))
    held = Questions(asked.validation, starts)
    played = [
        play(
            *(playing, place, params, held),
            limit=TRAINED_LIMIT,
            announced=budget == "announced",
            samples=SAMPLES,
            block=sizes.block,
        )
        for budget in BUDGETS
    ]
    right = [one["outcome"] == Outcome.SUCCESS for one in played]
    return float(np.mean(right)), sum(int(one["tokens"].sum()) for one in played)


def train_by_reward(
    where: Path,
    key: Key,
    place: Place,
    asked: TrainingQuestions,
    base: Any,
    sizes: Sizes,
    *,
    arm: str,
) -> Any:
    """Reinforcement learning from right answers; goes on where it was interrupted.

    Args:
      where: folder of the job; receives metrics, checkpoints and `training.json`.
      key: of the training; not consumed.
      place: of questions.
      asked: the questions to train on.
      base: parameters to start from.
      sizes: numbers of iterations and episodes.
      arm: an algorithm, "grpo" or "ppo".

    Returns:
      Parameters, without a value head.
    """
    policy = place.policy(value=arm == "ppo")
    if policy.value:
        base = {**base, "value": init_value_head(policy.config.hidden_size)}
    config, hyper = algorithm(
        arm, num_groups=sizes.num_groups, learning_rate=LEARNING_RATE, discount=1.0
    )
    group = sizes.group_size
    state, warnings = train_policy(
        where,
        key,
        PolicyTask(place.env, policy, config, group, place.num_steps),
        hyper,
        both_budgets(asked.train),
        base,
        iterations=sizes.iterations,
    )
    steps = sum(row["steps"] for row in read_metrics(where / "metrics.jsonl"))
    written = round(steps * sizes.num_groups * group * policy.num_action_tokens)
    taken = {
        "warnings": warnings,
        "generated_tokens": written,
        "learned_tokens": written * config.epochs,
    }
    write_json(where / TRAINING, taken)
    params: Any = state.params
    return {name: part for name, part in params.items() if name != "value"}
