"""Trains a policy and the rules in its prompts from the same episodes: Algorithm 1.

An iteration, in order: tasks are drawn, working sets fixed, groups played; the policy
learns from them; a reflector compares each group with the pool as it was and with
successes of *earlier* groups; its edits are applied and the pool is pruned; only then
do the group's successes become references. By configuration: no rules (GRPO), rules
only (the policy is frozen), a pool that is frozen after a first stage, no references. A
run of k iterations that resumes to n equals one of n, bit for bit, pool and ledger
included. For what is on the disk see `jerp.runs.jerp.record`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import jax.numpy as jnp

from jerp.bridge.reflection import Reflector
from jerp.envs.rule_language import RuleLanguage
from jerp.errors import ConfigError
from jerp.rules.book import RuleBook, count_words
from jerp.runs.jerp.arguments import (
    check_arguments,
    check_learns,
    numbers_of,
    texts_of,
)
from jerp.runs.jerp.iteration import Given, Plan
from jerp.runs.jerp.learner import Learner, Retrieve
from jerp.runs.jerp.record import CHECKPOINTS
from jerp.runs.jerp.retirement import Retire, Retirement
from jerp.runs.jerp.session import open_session
from jerp.runs.jerp.settings import (
    Learns,
    RuleSettings,
    Tasks,
    Teller,
    check_reader,
    check_reflector,
)
from jerp.runs.jerp.warnings import reflection_warnings
from jerp.runs.policy.checks import begun, check_numbers, check_params, check_tasks
from jerp.runs.policy.description import described, params_digest, run_description
from jerp.runs.policy.groups import Play, PolicyTask
from jerp.runs.policy.warnings import collapse_warnings
from jerp.storage.atomic import make_folder
from jerp.storage.checkpoints import Checkpoints
from jerp.storage.locks import lock_folder
from jerp.storage.metrics import Mirror, read_metrics
from jerp.storage.rule_documents import PoolDocument, pool_hash
from jerp.storage.rule_leaks import task_digests
from jerp.training.group_settings import GroupHyper
from jerp.training.joint import JointState
from jerp.typing import Key

__all__ = ["Trained", "train_jerp"]


class Trained(NamedTuple):
    """What a run came to.

    Attributes:
      state: policy and pool.
      book: the texts of the pool's ids.
      document: the pool as a document, with the sources of its rules.
      warnings: about the run, such as of a collapse, or that nobody reflected.
    """

    state: JointState
    book: RuleBook
    document: PoolDocument
    warnings: list[str]


def train_jerp(
    folder: Path | str,
    key: Key,
    task: PolicyTask,
    hyper: GroupHyper,
    env_params: Any,
    params: Any,
    *,
    rules: RuleSettings,
    reflector: Reflector | None,
    task_keys: Sequence[str],
    task_key: Any,
    iterations: int,
    language: RuleLanguage | None = None,
    reference: Any = None,
    frozen: Mapping[str, Any] | None = None,
    start_pool: PoolDocument | None = None,
    learn_policy: bool = True,
    learn_rules: bool = True,
    rules_until: int | None = None,
    use_references: bool = True,
    chunk: int = 10,
    keep: int | None = 2,
    play: Play | None = None,
    tell: Teller | None = None,
    situate: Teller | None = None,
    task_words: Sequence[str] = (),
    retrieve: Retrieve | None = None,
    retire: Retire | None = None,
    count_tokens: Callable[[str], int] = count_words,
    mirrors: Sequence[Mirror] = (),
    on_progress: Callable[[int], None] = lambda done: None,
) -> Trained:
    """Trains for `iterations`, or goes on where an earlier session stopped.

    Args:
      folder: of this run alone.
      key: of the run; not consumed, so that a resumed run has it again.
      task: see `PolicyTask`; a policy that reads rules in fields has the
        `num_rules` of `rules.config`.
      hyper: numbers of the algorithm.
      env_params: leaves `[N, ...]`, the training tasks.
      params: to start from.
      rules: numbers of the rules' part.
      reflector: writes the edits; None where no rules are learned.
      task_keys: names of what has a pool of its own, such as the types of tasks.
      task_key: `[N]` int32, their indices: by type, or by instance with a name each.
      iterations: in all, those of earlier sessions included.
      language: of a `jerp.envs.rule_language.Situated` world; says what steps and
        rules are in numbers.
      reference: parameters to stay near to, with `hyper.kl_weight`.
      frozen: entries of the policy's parameters that are not trained; the table of
        rules is added by the run.
      start_pool: rules to begin with.
      learn_policy: without, the policy stays as it is: rules only.
      learn_rules: without, the pool stays as it is; with no start pool that is no
        rules at all.
      rules_until: from this iteration on the pool stays as it is.
      use_references: reflection sees earlier successes.
      chunk: iterations between two checkpoints, which are after multiples of it and at
        the end.
      keep: newest checkpoints that stay; None for all.
      play: plays episodes from the host, with `working_set` and, for a policy that
        reads rules as text, `rule_texts`; None plays inside the compiled program.
      tell: `(data, env_params)` to a transcript an episode; None for none.
      situate: `(data, env_params)` to situations and moves, `[B, T]` each, where
        observations are no fields; see `jerp.runs.jerp.occasions.situate_by_replay`.
      task_words: what each task asks for, N texts; without, the name of its key.
      retrieve: chooses working sets otherwise than by score.
      retire: `(state, book, done)` to ids `[N, Q]` of rules that leave the pool, by
        task key, -1 for none: those that the policy has absorbed. Called before each
        checkpoint after a multiple of `chunk`, which is part of the run then; also
        where the pool is else left as it is. See `jerp.runs.jerp.retirement`.
      count_tokens: how long a rule is in a prompt.
      mirrors: see `jerp.storage.metrics`.
      on_progress: called with the number of iterations just finished or found.

    Returns:
      `Trained`.

    Raises:
      ConfigError: what `train_policy` refuses; rules that nobody writes, such as a
        reflector that needs references without them, or that the policy cannot read;
        task keys that do not fit.
      InputError: a start pool with more rules than `capacity`, of other task keys, or
        in other words than those of the language that the policy reads.
      TrainingError: a loss or its gradient became NaN or infinite; the batch that did
        it is kept.
      StorageError: files that cannot be read or written, are of another config, or
        hold another pool than the policy was trained with; another process trains in
        the folder.

    Reference: Ye and Yu, "Joint learning of experiential rules and policies",
      arXiv:2606.27136, Algorithm 1.
    """
    check_arguments(rules, start_pool, keep)
    folder, names = Path(folder), texts_of("task_keys", task_keys)
    learns = Learns(learn_policy, learn_rules, rules_until, use_references)
    check_learns(learns, retire)
    check_numbers(hyper, key, iterations, chunk)
    check_tasks(task, env_params)
    check_params(task.policy, hyper, params, reference, frozen)
    check_reflector(reflector, learns, rules, tell)
    check_reader(task.policy, rules.config, language, play)
    tasks = Tasks(
        *(env_params, numbers_of("task_key", task_key), names),
        *(task_digests(env_params), texts_of("task_words", task_words)),
        *(language, tell, situate),
    )
    learner = Learner(
        plan=Plan(task, rules.config, learn_policy),
        given=Given(
            *(key, hyper, env_params, jnp.asarray(tasks.key, jnp.int32)),
            *(reference, frozen),
        ),
        tasks=tasks,
        settings=rules,
        learns=learns,
        reflector=reflector,
        play=play,
        retrieve=retrieve,
        retirement=None if retire is None else Retirement(retire, chunk),
        folder=folder,
    )
    start = PoolDocument({}) if start_pool is None else start_pool
    beside = {"play": play, "reference": reference, "frozen": frozen}
    config = run_description(task, hyper, key, env_params, **beside)
    config |= _described(learner, start, count_tokens)
    config["params"] = params_digest(params)
    kept = folder / CHECKPOINTS
    make_folder(kept)
    # There and not in the folder, which a caller may have locked for more than this.
    with (
        lock_folder(kept),
        Checkpoints(kept, keep=keep, config=config) as checkpoints,
    ):
        _check_done(folder, checkpoints.latest or 0, iterations)
        session = open_session(
            *(learner, checkpoints, begun(key, task, hyper, params), start),
            count_tokens=count_tokens,
            mirrors=mirrors,
        )
        on_progress(session.done)
        while session.done < iterations:
            size = min(chunk - session.done % chunk, iterations - session.done)
            session.advance(size)
            on_progress(size)
    rows = read_metrics(session.log.path)
    warnings = collapse_warnings(rows, num_actions=task.env.num_actions)
    revised = [row for row in rows if learns.rules_at(row["step"])]
    warnings += reflection_warnings(revised, num_groups=task.config.num_groups)
    return Trained(session.state, session.memory.book, session.document, warnings)


def _check_done(folder: Path, done: int, iterations: int) -> None:
    if iterations < done:
        raise ConfigError(
            f"iterations: expected at least {done}, which {folder} has done already, "
            f"got {iterations}"
        )


def _described(
    learner: Learner, start: PoolDocument, count_tokens: Callable[[str], int]
) -> dict[str, str]:
    """What a joint run is of, beside its policy, field by field."""
    tasks, reflector = learner.tasks, learner.reflector
    # Of a pool that is never revised it does not matter by whom it is not.
    reflector = reflector if learner.learns.rules else None
    name = "none" if reflector is None else reflector.name
    return {
        **described("rules", learner.settings),
        **described("learns", learner.learns),
        **described("reflector", reflector),
        "reflector/name": name,
        **described("language", tasks.language),
        **described("task_keys", tasks.names),
        **described("task_key", tasks.key),
        **described("task_words", tasks.words),
        **described("tell", tasks.tell),
        **described("situate", tasks.situate),
        **described("retrieve", learner.retrieve),
        **described("retire", learner.retirement),
        **described("count_tokens", count_tokens),
        "start_pool": pool_hash(start),
    }
