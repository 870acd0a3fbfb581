"""The smallest joint run of a house, and a reflector that uses every operation."""

from collections import Counter
from dataclasses import dataclass, replace
from functools import partial

import jax
import jax.numpy as jnp
import numpy as np

from jerp.bridge.reflection import Operation, Reflection
from jerp.envs.house import House, house_small
from jerp.envs.house_rules import TASK_TYPES, HouseRules
from jerp.envs.house_tasks import house_tasks
from jerp.envs.rule_language import Situated, sentence
from jerp.models.step_policy import step_policy
from jerp.rules.edits import EditOp
from jerp.runs.jerp.loop import train_jerp
from jerp.runs.jerp.settings import RuleSettings
from jerp.runs.policy.groups import PolicyTask
from jerp.training.group_settings import GroupConfig, GroupHyper
from jerp.training.joint import RuleConfig
from jerp.typing import Outcome

STEPS = 4
HOUSE: House = replace(house_small(), horizon=STEPS)
LANGUAGE = HouseRules(HOUSE.size)


@dataclass(frozen=True)
class Lucky(Situated):
    """A house in which every fourth action succeeds, so that few steps are enough."""

    def step(self, key, state, action, params):
        state, now = super().step(key, state, action, params)
        won = (action % 4 == 0) & ~now.truncated
        return state, now.replace(
            legal=now.legal & ~won,
            terminated=now.terminated | won,
            outcome=jnp.where(won, Outcome.SUCCESS, now.outcome).astype(jnp.int32),
            score=jnp.where(won, 1.0, now.score),
            reward=jnp.where(won, 1.0, now.reward),
        )


ENV = Lucky(HOUSE, LANGUAGE)
POLICY = step_policy(
    ENV.field_sizes,
    ENV.num_actions,
    num_steps=STEPS,
    hidden_size=16,
    num_layers=2,
    num_heads=2,
    rule_sizes=(len(LANGUAGE.situations), len(LANGUAGE.moves)),
    num_rules=2,
)
TASK = PolicyTask(ENV, POLICY, GroupConfig(4), 2, STEPS)
HYPER = GroupHyper(learning_rate=0.02)
RULES = RuleSettings(RuleConfig(num_rules=2, capacity=4), references=3, scores_every=2)
TASKS = jax.device_get(house_tasks(jax.random.key(0), 12, size=HOUSE.size))
TYPES = np.asarray(TASKS.task, np.int32)
KEY = jax.random.key(7)


@dataclass(frozen=True)
class Busy:
    """Says something of every group that depends on all that it is shown.

    One more operation than is asked for, and one that cannot be read, at times.
    """

    name: str = "busy"
    shift: int = 0

    def reflect(self, occasions):
        return [self._one(occasion) for occasion in occasions]

    def _one(self, occasion):
        steps = [
            (int(s), int(m))
            for trial in (*occasion.references[-1:], *occasion.trials)
            for s, m in zip(trial.situation, trial.move, strict=True)
        ]
        turn = sum(a + b for a, b in steps) + self.shift + len(occasion.references)
        situation, move = steps[turn % len(steps)]
        text = sentence(LANGUAGE, situation, move)
        rules = [rule.rule_id for rule in occasion.rules]
        found = [Operation(EditOp.ADD, (), text)]
        if rules:
            vote = EditOp.UPVOTE if turn % 2 else EditOp.DOWNVOTE
            found.append(Operation(vote, (rules[turn % len(rules)],)))
        other = sentence(LANGUAGE, *steps[0])
        if len(rules) > 1 and turn % 3 == 0:
            found.append(Operation(EditOp.MERGE, tuple(rules[:2]), other))
        elif rules and turn % 3 == 1:
            found.append(Operation(EditOp.EDIT, (rules[-1],), other))
        return Reflection(tuple(found), Counter({"malformed": turn % 2}))


@partial(jax.jit, static_argnums=0)
def first_params(policy):
    return policy.init(jax.random.key(1))


def run(folder, iterations, **changes):
    """`train_jerp` with small settings, some of them changed."""
    task, hyper = changes.pop("task", TASK), changes.pop("hyper", HYPER)
    tasks, key = changes.pop("tasks", TASKS), changes.pop("key", KEY)
    params = changes.pop("params", None)
    params = first_params(task.policy) if params is None else params
    settings = {
        "rules": RULES,
        "reflector": Busy(),
        "task_keys": TASK_TYPES,
        "task_key": TYPES,
        "language": LANGUAGE,
        "chunk": 2,
    }
    return train_jerp(
        *(folder, key, task, hyper, tasks, params),
        iterations=iterations,
        **{**settings, **changes},
    )


def bits(tree):
    """Of every leaf, keys included."""
    return [
        np.asarray(jax.random.key_data(x) if "key<" in str(x.dtype) else x).tobytes()
        for x in jax.tree.leaves(tree)
    ]


def written(folder):
    """What a run says in files, but for its checkpoints."""
    names = ("metrics.jsonl", "rules.jsonl", "pool.json")
    return {name: (folder / name).read_bytes() for name in names}
