"""Trains an arm, stage by stage, so that it can be looked at along the way."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

import jax.numpy as jnp
import numpy as np

from experiments.joint_rules.base import all_rules
from experiments.joint_rules.config import Arm, By, Sizes
from experiments.joint_rules.oracle import OracleMoves, injected_moves
from experiments.joint_rules.places import NUM_RULES, Place
from jerp.bridge.contrast_reflector import ContrastReflector
from jerp.bridge.misled import Misled
from jerp.bridge.reflection import Reflector
from jerp.envs.rule_language import read_sentence, sentence
from jerp.errors import InputError
from jerp.rules.selection import select_top
from jerp.runs.jerp.iteration import rule_table
from jerp.runs.jerp.loop import Trained, train_jerp
from jerp.runs.jerp.settings import RuleSettings
from jerp.runs.policy.groups import PolicyTask
from jerp.storage.documents import write_json
from jerp.storage.rule_documents import PoolDocument
from jerp.storage.rule_fields import PoolRule
from jerp.training.group_settings import GroupConfig, GroupHyper, algorithm
from jerp.training.joint import RuleConfig
from jerp.typing import Key

__all__ = [
    "Stage",
    "along_path",
    "arm_algorithm",
    "check_start",
    "train_arm",
    "wrong_rules",
]

KL_WEIGHT = 0.001
"""Of k3 to the base. The paper has such a term and says no number."""


MIN_TASKS = 3
"""A rule is written once so many tasks of a type speak for it."""


class Stage(NamedTuple):
    """Where an arm stands.

    Attributes:
      iterations: behind it.
      params: of the policy.
      trained: its rules as well; None before the first iteration, without any.
    """

    iterations: int
    params: Any
    trained: Trained | None

    def rules(self, place: Place) -> np.ndarray:
        """`[M, 2]`, what every rule id says."""
        if self.trained is None:
            return all_rules(place.rule_sizes)[:1]
        return rule_table(place.env.language, self.trained.book)

    def working_set(self, keys: np.ndarray | None) -> np.ndarray | None:
        """`[N, R]` rule ids of tasks with these task keys; None without rules."""
        if self.trained is None or keys is None:
            return None
        pool = self.trained.state.pool
        return np.asarray(select_top(pool, jnp.asarray(keys), num_rules=NUM_RULES))


def arm_algorithm(arm: Arm, num_groups: int) -> tuple[GroupConfig, GroupHyper]:
    """The algorithm of an arm: the same numbers, and token means, for all."""
    config, hyper = algorithm(
        arm.algorithm,
        num_groups=num_groups,
        learning_rate=1e-3,
        entropy_weight=0.003,
        discount=0.95,
        kl_weight=KL_WEIGHT,
    )
    return replace(config, aggregation="token_mean"), hyper


def along_path(where: Path, iterations: int) -> Path:
    """The file of what a job's policy could do after so many iterations."""
    return where / f"along-{iterations}.safetensors"


def train_arm(
    where: Path,
    key: Key,
    place: Place,
    tasks: Any,
    base: Any,
    *,
    arm: Arm,
    sizes: Sizes,
    by: By = "type",
    start: PoolDocument | None = None,
) -> Iterator[Stage]:
    """Yields the stages that were not looked at yet, and the last one in any case.

    Args:
      where: the job's folder.
      key: of the training; not consumed.
      place: where.
      tasks: to train on, leaves `[N, ...]`.
      base: parameters to start from, and to stay near to.
      arm: how to learn.
      sizes: numbers of iterations and episodes.
      by: what has a pool of its own.
      start: rules that an arm with rules begins with, or None.
    """
    config, hyper = arm_algorithm(arm, sizes.num_groups)
    policy = place.policy()
    names, keys = _task_keys(place, tasks, by)
    until = round(arm.first_stage * sizes.iterations)
    train = partial(
        train_jerp,
        where,
        key,
        PolicyTask(place.env, policy, config, sizes.group_size, place.horizon),
        hyper,
        tasks,
        base,
        rules=RuleSettings(_rule_config(arm)),
        reflector=_reflector(place, arm, by) if arm.rules else None,
        task_keys=names,
        task_key=keys,
        language=place.env.language,
        reference=base,
        start_pool=start if arm.rules else None,
        learn_policy=arm.policy,
        learn_rules=arm.rules,
        rules_until=until if arm.rules and arm.first_stage < 1 else None,
        use_references=arm.references,
        chunk=sizes.every,
    )
    for iterations in range(sizes.every, sizes.iterations + 1, sizes.every):
        # A stage that was looked at lies behind the last checkpoint.
        seen = along_path(where, iterations).exists()
        if seen and iterations < sizes.iterations:
            continue
        trained = train(iterations=iterations)
        write_json(where / "warnings.json", {"warnings": trained.warnings})
        yield Stage(iterations, trained.state.train.params, trained)


def wrong_rules(
    place: Place, arm: Arm, oracle: OracleMoves, start: PoolDocument | None
) -> PoolDocument:
    """The pools to begin with, and wrong rules besides, a share of the capacity."""
    number = round(arm.misled * _rule_config(arm).capacity)
    moves, language = injected_moves(oracle, number), place.env.language
    score = _rule_config(arm).initial_score
    pools = {} if start is None else dict(start.pools)
    for kind, row in zip(place.types, moves, strict=True):
        texts = [sentence(language, int(s), int(row[s])) for s in np.flatnonzero(row)]
        known = {rule.text for rule in pools.get(kind, ())}
        added = [PoolRule(text, score) for text in texts if text not in known]
        pools[kind] = (*pools.get(kind, ()), *added)
    return PoolDocument(pools)


def _task_keys(place: Place, tasks: Any, by: By) -> tuple[tuple[str, ...], np.ndarray]:
    kinds = place.keys_of(tasks)
    if by == "type":
        return place.types, kinds
    names = [f"{place.types[kind]} {i}" for i, kind in enumerate(kinds)]
    return tuple(names), np.arange(len(kinds), dtype=np.int32)


def check_start(
    path: Path, document: PoolDocument, place: Place, arms: Iterable[Arm] = ()
) -> None:
    """Checks that arms can begin with the rules of a file.

    Args:
      path: of the file, to be named.
      document: that is in it.
      place: where.
      arms: those that will begin with it.

    Raises:
      InputError: rules of other task keys, too many, ones that the first revision would
        drop for their score, or ones in other words than the world's, which the decoder
        cannot read; it names the file.
    """
    rules = _rule_config(Arm(""))
    wrong = max((round(arm.misled * rules.capacity) for arm in arms), default=0)
    most = rules.capacity - wrong
    for key, found in document.pools.items():
        where = f"{path}: task key {key!r}"
        if key not in place.types:
            raise InputError(
                f"{where}: expected rules of the {place.name}'s types of tasks, "
                f"{', '.join(place.types)}; name it so, or take it out"
            )
        if len(found) > most:
            besides = f", beside the {wrong} wrong ones of an arm" if wrong else ""
            raise InputError(
                f"{where}: expected at most {most} rules, as many as a pool "
                f"keeps{besides}, got {len(found)}; take out those of the lowest scores"
            )
        for rule in found:
            _check_rule(where, rule, place, rules.min_score)


def _check_rule(where: str, rule: PoolRule, place: Place, min_score: float) -> None:
    language = place.env.language
    if read_sentence(language, rule.text) is None:
        raise InputError(
            f"{where}: expected a rule in the words of the {place.name}, such as "
            f"{sentence(language, 1, 1)!r}; the decoder reads no others; got "
            f"{rule.text!r}; docs/rules.md lists the words"
        )
    if rule.score <= min_score:
        raise InputError(
            f"{where}: expected a score above {min_score:g}, because a pool drops what "
            f"has no more, got {rule.score:g} of {rule.text!r}; raise it, or take the "
            "rule out"
        )


def _rule_config(arm: Arm) -> RuleConfig:
    return RuleConfig(num_rules=NUM_RULES, rule_dropout=arm.rule_dropout)


def _reflector(place: Place, arm: Arm, by: By) -> Reflector:
    """Writes rules without a model; of an instance's pool no other task can tell."""
    language = place.env.language
    # A group is of one task: without references no other is ever seen beside it.
    alone = by == "instance" or not arm.references
    found = ContrastReflector(language, min_tasks=1 if alone else MIN_TASKS)
    return Misled(found, language, share=arm.misled) if arm.misled else found
