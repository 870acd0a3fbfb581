"""One batch: skills are drafted, read, executed, and learned from.

Batch i depends on the key, i, the parameters and the states alone. Its runs have sample
indices of their own, the same for all of its drafts: equal luck within a batch, new
luck in the next.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from jerp.models.draft_policy import DraftPolicy
from jerp.models.policy import Acted
from jerp.runs.policy.iterations import stream_of, whole_params
from jerp.runs.policy.soundness import check_sound
from jerp.runs.skills.drafting import Drafts, draft_node, drafted
from jerp.runs.skills.settings import SkillSettings
from jerp.runs.skills.sources import Source, source_of
from jerp.runs.skills.work import RefinementState, SkillRun, Workplace, executed
from jerp.skills.node import SkillNode
from jerp.skills.retention import EvidencePair, evidence_pair, retained
from jerp.skills.reward import SkillReward, skill_reward
from jerp.storage.skill_runs import SkillRunFile
from jerp.training.group_settings import GroupConfig, GroupHyper
from jerp.training.skill import draft_episodes, make_skill_step
from jerp.training.state import TrainState
from jerp.trajectory import Trajectory
from jerp.typing import Array, Key, Outcome

__all__ = ["Batch", "Learner", "Scored", "seeds"]

SEED = 3
"""The stream of a run's key for seeds, beside those of `runs.policy.iterations`."""

SEED_SAMPLES = (0,)
"""Of the runs of seeds; those of batches come after."""


class Batch(NamedTuple):
    """What came of a batch.

    Attributes:
      state: after it.
      metrics: by name.
      nodes: a draft each.
      kept: skills that both succeeded and failed.
    """

    state: TrainState
    metrics: dict[str, float]
    nodes: list[SkillNode]
    kept: list[Source]


class Scored(NamedTuple):
    """What a compiled update makes of outcomes.

    Attributes:
      metrics: of the learner.
      reward: of the drafts.
      kept: `[S * K]` bool, see `jerp.retained`.
      pair: see `jerp.evidence_pair`.
      episodes: of the update.
    """

    metrics: dict[str, Array]
    reward: SkillReward
    kept: Array
    pair: EvidencePair
    episodes: Trajectory


@dataclass(frozen=True, eq=False)
class Learner:
    """What all batches of a run share.

    Attributes:
      key: of the run.
      workplace: see `Workplace`.
      policy: the optimizer.
      config, hyper: of the update, see `jerp.training.skill.skill_algorithm`.
      settings: see `SkillSettings`.
      format_weight: `[total]` float32, of each batch.
      learning_rate: `[total]` float32, likewise.
      frozen: entries of the policy's parameters that are not trained, or None.
      execute_at_once: see `jerp.runs.skills.work.executed`.
      folder: of the run.
    """

    key: Key
    workplace: Workplace
    policy: DraftPolicy
    config: GroupConfig
    hyper: GroupHyper
    settings: SkillSettings
    format_weight: np.ndarray
    learning_rate: np.ndarray
    frozen: Mapping[str, Any] | None
    execute_at_once: int
    folder: Path

    def learn(
        self,
        state: TrainState,
        states: Sequence[RefinementState],
        number: int,
        runs: SkillRunFile,
        first_id: int,
    ) -> Batch:
        """Drafts, executes and learns; `state` is consumed."""
        key = stream_of(self.key, np.int32(number))
        params, num_runs = whole_params(state, self.frozen), self.settings.num_runs
        drafts = drafted(
            *(self.workplace, self.policy, params, key, states),
            num_drafts=self.settings.num_drafts,
        )
        first = len(SEED_SAMPLES) + number * num_runs
        samples = range(first, first + num_runs)
        found = self.execute(drafts, samples, runs)
        # Of what did not parse nothing was executed, and nothing is read.
        outcome = np.full((len(drafts.read), num_runs), Outcome.MALFORMED, np.int32)
        for row, row_runs in found.items():
            outcome[row] = [run.outcome for run in row_runs]
        state, scored = self._scored(state, drafts, outcome, number)
        scored = jax.device_get(scored)
        metrics = {name: float(x) for name, x in scored.metrics.items()}
        check_sound(self.folder, number, metrics, scored.episodes)
        metrics |= self._metrics(drafts, samples, found, scored, number)
        nodes, kept = self._nodes(drafts, samples, found, scored, number, first_id)
        return Batch(state, metrics, nodes, kept)

    def execute(
        self, drafts: Drafts, samples: Sequence[int], runs: SkillRunFile
    ) -> dict[int, list[SkillRun]]:
        """The runs of every draft that has a skill, by its row."""
        trials = drafts.trials(samples)
        flat = [trial for row in trials.values() for trial in row]
        found = iter(executed(self.workplace, runs, flat, at_once=self.execute_at_once))
        return {row: [next(found) for _ in asked] for row, asked in trials.items()}

    def _scored(
        self, state: TrainState, drafts: Drafts, outcome: np.ndarray, number: int
    ) -> tuple[TrainState, Scored]:
        settings = self.settings
        weights = {
            "reasoning_budget": settings.reasoning_budget,
            "format_weight": self.format_weight[number],
            "task_weight": settings.task_weight,
            "length_weight": settings.length_weight,
        }
        said = np.array([read.reasoning_tokens for read in drafts.read], np.int32)
        return _learned(
            *(self.config, self.policy, settings.num_drafts),
            self.hyper.replace(learning_rate=self.learning_rate[number]),
            *(self.frozen, np.float32(settings.least)),
            {name: np.float32(weight) for name, weight in weights.items()},
            *(state, drafts.prompts.astype(np.int32), drafts.acted, outcome),
            np.array([read.skill is not None for read in drafts.read]),
            said,
        )

    def _metrics(
        self,
        drafts: Drafts,
        samples: Sequence[int],
        found: Mapping[int, Sequence[SkillRun]],
        scored: Scored,
        number: int,
    ) -> dict[str, float]:
        """Means over the drafts that were not lost to a failed executor."""
        reward, valid = scored.reward, scored.reward.valid
        # A skill that was drafted twice for a task was executed once.
        paid = {
            trial: run
            for row, asked in drafts.trials(samples).items()
            for trial, run in zip(asked, found[row], strict=True)
        }.values()
        faults = Counter(name for read in drafts.read for name in read.faults)

        def mean(value: Any) -> float:
            return float(np.mean(np.asarray(value)[valid])) if valid.any() else np.nan

        return {
            "phase": float(number // self.settings.batches + 1),
            "reward": mean(reward.total),
            "success": mean(reward.task),
            "parsed": float(np.mean(reward.format)),
            "length": mean(reward.length),
            "mixed": mean(scored.kept),
            "lost_drafts": float(np.sum(~valid)),
            "reasoning_tokens": mean([r.reasoning_tokens for r in drafts.read]),
            "draft_tokens": float(sum(map(drafts.num_tokens, range(len(drafts.read))))),
            "executor_calls": float(sum(run.executor_calls for run in paid)),
            "executor_tokens": float(sum(run.tokens for run in paid)),
            "format_weight": float(self.format_weight[number]),
            "learning_rate": float(self.learning_rate[number]),
            **{f"fault/{name}": float(times) for name, times in sorted(faults.items())},
        }

    def _nodes(
        self,
        drafts: Drafts,
        samples: Sequence[int],
        found: Mapping[int, Sequence[SkillRun]],
        scored: Scored,
        number: int,
        first_id: int,
    ) -> tuple[list[SkillNode], list[Source]]:
        reward, kept, nodes = scored.reward, [], []
        for row in range(len(drafts.read)):
            node = draft_node(
                *(drafts, row, found.get(row, ())),
                id=first_id + row,
                phase=number // self.settings.batches + 1,
                reward=float(reward.total[row]) if reward.valid[row] else None,
                retained=bool(scored.kept[row]),
            )
            nodes.append(node)
            if node.retained:
                pair = (int(kind[row]) for kind in scored.pair)
                kept.append(source_of(node.task, node.id, samples, *pair))
        return nodes, kept


def seeds(
    learner: Learner, params: Any, tasks: Sequence[str], runs: SkillRunFile
) -> tuple[list[SkillNode], list[Source]]:
    """A first skill for each task, drafted from nothing but the task and executed once.

    A task whose draft has no skill begins from nothing again.

    Args:
      learner: of the run.
      params: of the policy.
      tasks: keys.
      runs: of the run.
    """
    drafts = drafted(
        *(learner.workplace, learner.policy, params),
        jax.random.fold_in(learner.key, SEED),
        [RefinementState(task) for task in tasks],
        block=learner.config.num_groups * learner.settings.num_drafts,
    )
    found = learner.execute(drafts, SEED_SAMPLES, runs)
    nodes, sources = [], []
    for row, task in enumerate(tasks):
        own = found.get(row, [])
        nodes.append(draft_node(drafts, row, own, id=row, phase=0))
        if not own:
            sources.append(Source(task))
            continue
        won = own[0].outcome == Outcome.SUCCESS
        lost = not won and own[0].outcome != Outcome.INFRASTRUCTURE
        sources.append(source_of(task, row, SEED_SAMPLES, won - 1, lost - 1))
    return nodes, sources


@partial(
    jax.jit,
    static_argnames=("config", "policy", "num_drafts"),
    donate_argnames=("state",),
)
def _learned(
    config: GroupConfig,
    policy: DraftPolicy,
    num_drafts: int,
    hyper: GroupHyper,
    frozen: Mapping[str, Any] | None,
    least: Array,
    weights: Mapping[str, Array],
    state: TrainState,
    prompts: Array,
    drafts: Acted,
    outcome: Array,
    parsed: Array,
    reasoning_tokens: Array,
) -> tuple[TrainState, Scored]:
    reward = skill_reward(parsed, outcome, reasoning_tokens, **weights)
    episodes = draft_episodes(prompts, drafts, outcome, reward)
    step = make_skill_step(config, policy, num_drafts=num_drafts)
    state, metrics = step.learn(state, hyper, episodes, frozen)
    kept = retained(outcome, least=least) & parsed
    metrics = jax.tree.map(jnp.asarray, metrics)
    return state, Scored(metrics, reward, kept, evidence_pair(outcome), episodes)
