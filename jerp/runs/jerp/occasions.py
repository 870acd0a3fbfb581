"""From episodes to what a reflector reads, on the host.

Row `b` of a batch is of group `b % G`. Episodes that an executor's failure ended are
left out, and groups of nothing else with them.
"""

from __future__ import annotations

from functools import partial
from typing import Any, NamedTuple

import jax
import numpy as np

from jerp.bridge.reflection import Occasion, ShownRule, Trial
from jerp.bridge.world_episodes import Replay
from jerp.envs.rule_language import Situated
from jerp.errors import ConfigError
from jerp.rollout.scan import rollout
from jerp.rules.book import RuleBook
from jerp.rules.pool import RulePool
from jerp.runs.jerp.references import References
from jerp.runs.jerp.settings import Tasks, Teller
from jerp.trajectory import Trajectory
from jerp.typing import Outcome

__all__ = ["Group", "groups_of", "occasion_of", "shown_rules", "situate_by_replay"]


class Group(NamedTuple):
    """Episodes of one task that were compared with each other.

    Attributes:
      number: of the group in its batch.
      task: index of the task.
      trials: that somebody answered; none where nobody did.
    """

    number: int
    task: int
    trials: tuple[Trial, ...]


def groups_of(
    env: Any, tasks: Tasks, data: Trajectory, *, num_groups: int, iteration: int
) -> list[Group]:
    """The groups of a batch, in order.

    Args:
      env: the world; one that is `Situated` says situations and moves.
      tasks: of which `data.task_id` are indices.
      data: `[B, T]`, on the host.
      num_groups: G.
      iteration: an episode is called "<iteration>/<row>".
    """
    steps = _steps(env, tasks, data)
    rows = range(len(data.outcome))
    texts = (
        [""] * len(rows) if tasks.tell is None else tasks.tell(data, tasks.env_params)
    )
    if len(texts) != len(rows):
        raise ConfigError(
            f"tell: expected {len(rows)} transcripts, one an episode, got {len(texts)}"
        )

    def trial(row: int) -> Trial:
        real = int(data.mask[row].sum())
        found = {name: x[row, :real].astype(np.int32) for name, x in steps.items()}
        outcome = int(data.outcome[row])
        return Trial(
            success=outcome == Outcome.SUCCESS,
            score=float(data.score[row]),
            outcome=outcome,
            text=texts[row],
            task_digest=tasks.digests[int(data.task_id[row])],
            episode=f"{iteration}/{row}",
            **found,
        )

    answered = np.asarray(data.outcome) != Outcome.INFRASTRUCTURE
    return [
        Group(
            number,
            int(data.task_id[number]),
            tuple(trial(row) for row in rows[number::num_groups] if answered[row]),
        )
        for number in range(num_groups)
    ]


def occasion_of(
    group: Group,
    tasks: Tasks,
    pool: RulePool,
    book: RuleBook,
    references: References | None,
    *,
    capacity: int,
) -> Occasion:
    """What is reflected on: a group beside the pool and successes before it.

    Args:
      group: with trials.
      tasks: of which the group's is one.
      pool: on the host, as it was when the group was played.
      book: of the pool.
      references: of earlier groups; None for reflection without.
      capacity: rules that make a pool full.
    """
    key = int(tasks.key[group.task])
    rules = shown_rules(pool, book, key)
    return Occasion(
        task_key=tasks.names[key],
        task=tasks.words_of(group.task),
        rules=rules,
        trials=group.trials,
        references=() if references is None else references.of(tasks.names[key]),
        full=len(rules) >= capacity,
    )


def shown_rules(pool: RulePool, book: RuleBook, key: int) -> tuple[ShownRule, ...]:
    """The active rules of a task key, in the order in which prompts take them."""
    score, active, ids, born = (
        np.asarray(x)[key] for x in (pool.score, pool.active, pool.rule_id, pool.born)
    )
    order = np.lexsort((np.arange(score.size), born, -score))
    return tuple(
        ShownRule(int(ids[slot]), book[int(ids[slot])], float(score[slot]))
        for slot in order
        if active[slot]
    )


def situate_by_replay(env: Situated) -> Teller:
    """Situations and moves of episodes that were seen otherwise, such as as text.

    Their actions are done again in the same tasks, where fields are shown; for worlds
    in which nothing but the actions decides.

    Args:
      env: which shows fields.

    Returns:
      `(data, env_params) -> (situation [B, T], move [B, T])`.
    """
    return partial(_replayed, env)


def _replayed(
    env: Situated, data: Trajectory, env_params: Any
) -> tuple[np.ndarray, np.ndarray]:
    rows = jax.tree.map(lambda x: x[data.task_id], env_params)
    return jax.device_get(_again(env, rows, data.action))


@partial(jax.jit, static_argnums=0)
def _again(env: Situated, params: Any, action: Any) -> tuple[Any, Any]:
    size, steps = action.shape
    key = jax.random.key(0)  # nothing is drawn
    replay: Any = Replay()
    seen = rollout(
        *(key, env, params, replay, action), num_steps=steps, batch_size=size
    )
    fields: Any = seen.observation
    return fields[..., -1], env.moves(action, fields, params)


def _steps(env: Any, tasks: Tasks, data: Trajectory) -> dict[str, np.ndarray]:
    """`[B, T]` anchors, situations and moves, or none of them."""
    if tasks.situate is not None:
        situation, move = tasks.situate(data, tasks.env_params)
    elif tasks.language is not None:
        if not (isinstance(env, Situated) and env.world.observation == "fields"):
            raise ConfigError(
                "language: expected a Situated world that shows fields, which say the "
                f"situation of a step, got {type(env).__name__}; wrap it, or give "
                "`situate`"
            )
        rows = jax.tree.map(lambda x: x[data.task_id], tasks.env_params)
        situation = np.asarray(data.observation)[..., -1]
        move = _moves(env, data.action, data.observation, rows)
    else:
        return {}
    found = {"anchor": data.anchor, "situation": situation, "move": move}
    return {name: np.asarray(x) for name, x in found.items()}


@partial(jax.jit, static_argnums=0)
def _moves(env: Situated, action: Any, fields: Any, params: Any) -> Any:
    return env.moves(action, fields, params)
