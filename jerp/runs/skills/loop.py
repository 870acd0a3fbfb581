"""Trains an optimizer of skills on what its own drafts led to: Algorithm 1 of WER.

A run drafts a seed skill for each task, executes it once, and then, phase after phase
and batch after batch: K skills are drafted for each state, each executed n times and
rewarded, and the optimizer learns from drafts of one state relative to each other.
Skills that both succeeded and failed are the states of the next phase, with one run of
each kind, verbatim. For what is on the disk see `jerp.runs.skills.session`. A run of k
batches that resumes to n equals one of n, bit for bit; what is killed executes nothing
again that was written down.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
import optax

from jerp.errors import ConfigError
from jerp.models.draft_policy import DraftPolicy
from jerp.ops.checks import check_whole
from jerp.runs.policy.checks import check_numbers, check_params
from jerp.runs.policy.description import described, params_digest
from jerp.runs.policy.iterations import LEARN
from jerp.runs.skills.batch import Learner
from jerp.runs.skills.session import CHECKPOINTS, METRICS, open_session
from jerp.runs.skills.settings import SkillSettings, tasks_of
from jerp.runs.skills.warnings import skill_warnings
from jerp.runs.skills.work import Workplace, check_verifier, workplace_name
from jerp.skills.reward import format_schedule
from jerp.skills.tree import SkillTree
from jerp.storage.atomic import make_folder
from jerp.storage.checkpoints import Checkpoints
from jerp.storage.locks import lock_folder
from jerp.storage.metrics import Mirror, read_metrics
from jerp.training.group_settings import GroupConfig, GroupHyper
from jerp.training.skill import make_skill_step
from jerp.training.state import TrainState
from jerp.typing import Key

__all__ = ["TrainedSkills", "train_skills"]


class TrainedSkills(NamedTuple):
    """What a run came to.

    Attributes:
      state: of the optimizer.
      tree: of all drafts. Seeds are of phase 0, their revisions of phase 1.
      warnings: about the run, such as of a phase that kept no skill.
    """

    state: TrainState
    tree: SkillTree
    warnings: list[str]


def train_skills(
    folder: Path | str,
    key: Key,
    workplace: Workplace,
    policy: DraftPolicy,
    config: GroupConfig,
    hyper: GroupHyper,
    params: Any,
    *,
    tasks: Sequence[str],
    settings: SkillSettings,
    format_weight: optax.Schedule | None = None,
    learning_rate: optax.Schedule | None = None,
    frozen: Mapping[str, Any] | None = None,
    execute_at_once: int = 256,
    until: int | None = None,
    chunk: int = 1,
    keep: int | None = 2,
    mirrors: Sequence[Mirror] = (),
    on_progress: Callable[[int], None] = lambda done: None,
) -> TrainedSkills:
    """Trains for all phases, or goes on where an earlier session stopped.

    Args:
      folder: of this run alone.
      key: of the run; not consumed, so that a resumed run has it again.
      workplace: makes prompts, reads drafts and executes skills.
      policy: the optimizer.
      config: of the update, see `jerp.training.skill.skill_algorithm`; its groups are
        the states of a batch.
      hyper: numbers of the update.
      params: to start from.
      tasks: keys of the training tasks.
      settings: see `SkillSettings`.
      format_weight: of the reward by batch; None falls from 1 to 0 over the run.
      learning_rate: by batch, in place of that of `hyper`.
      frozen: entries of the policy's parameters that are not trained.
      execute_at_once: trials that are executed before they are written down, see
        `jerp.runs.skills.work.executed`.
      until: batches in all after which to stop for now; None for all phases.
      chunk: batches between two checkpoints, which are after multiples of it and at
        the end.
      keep: newest checkpoints that stay; None for all.
      mirrors: see `jerp.storage.metrics`.
      on_progress: called with the number of batches just finished or found.

    Returns:
      `TrainedSkills`.

    Raises:
      ConfigError: a setting or parameters that do not fit, or fewer batches than are
        done.
      InputError: tasks whose verifier is not deterministic, see `check_verifier`.
      TrainingError: a loss or its gradient became NaN or infinite; the batch that did
        it is kept.
      ExecutorError: the workplace returned runs of another number.
      StorageError: files that cannot be read or written, or are of another config;
        another process trains in the folder.

    Deviations: the paper's seeds are another model's; here the optimizer drafts them.
      What becomes of a phase that keeps no skill it does not say: here the next one
      begins from the seeds again, and a warning says so.

    Reference: Peng et al., "WER", arXiv:2608.17587, Algorithm 1.
    """
    folder, tasks = Path(folder), tasks_of(tasks)
    until = settings.total if until is None else until
    check_whole("until", until, least=0)
    check_whole("execute_at_once", execute_at_once, least=1)
    check_whole("keep", keep, least=1, optional=True)
    check_numbers(hyper, key, until, chunk)
    check_params(policy, hyper, params, None, frozen)
    if until > settings.total:
        raise ConfigError(
            f"until: expected at most {settings.total}, the batches of all phases, got "
            f"{until}"
        )
    weight = format_schedule(settings.total) if format_weight is None else format_weight
    rate = (lambda _: hyper.learning_rate) if learning_rate is None else learning_rate
    learner = Learner(
        *(key, workplace, policy, config, hyper, settings),
        _values("format_weight", weight, settings.total),
        _values("learning_rate", rate, settings.total),
        *(frozen, execute_at_once, folder),
    )
    begun = _begun(learner, params)
    described_run = _described(learner, tasks, params)
    kept = folder / CHECKPOINTS
    make_folder(kept)
    # There and not in the folder, which a caller may have locked for more than this.
    with (
        lock_folder(kept),
        Checkpoints(kept, keep=keep, config=described_run) as checkpoints,
    ):
        done = checkpoints.latest or 0
        if until < done:
            raise ConfigError(
                f"until: expected at least {done}, which {folder} has done already, "
                f"got {until}"
            )
        if not done:
            check_verifier(workplace, tasks)
        with open_session(
            *(learner, checkpoints, begun, tasks), mirrors=mirrors
        ) as session:
            on_progress(session.done)
            while session.done < until:
                size = min(chunk - session.done % chunk, until - session.done)
                session.advance(size)
                on_progress(size)
            state, tree = session.state, session.tree.tree
    rows = read_metrics(folder / METRICS)
    warnings = skill_warnings(rows, tree, settings, policy)
    return TrainedSkills(state, tree, warnings)


def _begun(learner: Learner, params: Any) -> TrainState:
    """The state before the first batch, of a copy: what is trained on is consumed."""
    settings = learner.settings
    step = make_skill_step(
        learner.config, learner.policy, num_drafts=settings.num_drafts
    )
    mine = jax.tree.map(jnp.copy, params)
    return step.init(jax.random.fold_in(learner.key, LEARN), learner.hyper, mine)


def _values(name: str, schedule: Callable[[int], Any], total: int) -> np.ndarray:
    """`[total]` float32, a schedule's numbers; they tell it from another."""
    found = np.array([float(schedule(i)) for i in range(total)], np.float32)
    if not (np.isfinite(found).all() and (found >= 0).all()):
        raise ConfigError(f"{name}: expected numbers from 0 on, got {found.tolist()}")
    return found


def _described(learner: Learner, tasks: Sequence[str], params: Any) -> dict[str, str]:
    """What a run is of, field by field, so that another is refused."""
    return {
        **described("key", jax.random.key_data(learner.key)),
        **described("workplace", learner.workplace),
        "workplace/name": workplace_name(learner.workplace),
        **described("policy", learner.policy),
        **described("config", learner.config),
        **described("hyper", learner.hyper),
        **described("settings", learner.settings),
        **described("format_weight", learner.format_weight),
        **described("learning_rate", learner.learning_rate),
        **described("tasks", tasks),
        "params": params_digest(params),
        "frozen": params_digest(learner.frozen),
    }
