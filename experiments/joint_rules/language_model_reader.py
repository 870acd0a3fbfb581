"""A language model that reads the house and its rules in words: who plays, and what.

The model's own matrices stay as they are, adapters beside them learn. The ids it read
and wrote are the ids it learns from.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property, partial
from typing import Any, NamedTuple, cast

import jax
import numpy as np

from experiments.joint_rules.base import all_rules
from experiments.joint_rules.language_model_config import (
    ReaderSizes,
    reader_house,
    reader_task,
)
from experiments.joint_rules.oracle import oracle_moves, right_moves, wrong_moves
from experiments.joint_rules.places import Place, place_named
from jerp.bridge.batching import BatchShape
from jerp.bridge.local import LocalExecutor
from jerp.bridge.world_episodes import play_worlds
from jerp.bridge.world_text import TextView, rows_of
from jerp.envs.house_tasks import house_tasks
from jerp.envs.house_text import HouseText
from jerp.envs.rule_language import sentence
from jerp.errors import ConfigError
from jerp.models.token_policy import TokenPolicy
from jerp.runs.jerp.occasions import situate_by_replay
from jerp.runs.policy.groups import Play, PolicyTask
from jerp.storage.weights import Weights
from jerp.trajectory import Trajectory
from jerp.typing import Key

__all__ = [
    "ORACLE",
    "Chosen",
    "Reader",
    "chosen_tasks",
    "evaluated",
    "executor_of",
    "held_out",
    "open_reader",
    "told_of",
]


HELD_OUT, ORACLE = 101, 102
"""Streams of random keys; those below belong to parts of a run."""


@dataclass(frozen=True, eq=False)
class Reader:
    """All that plays and learns, and does not change.

    Attributes:
      weights: of the model.
      place: the house, with words for rules.
      text: the house in words.
      view: the same, as tokens.
      task: what is trained.
      sizes: numbers of everything.
    """

    weights: Weights
    place: Place
    text: HouseText
    view: TextView
    task: PolicyTask
    sizes: ReaderSizes

    @property
    def policy(self) -> TokenPolicy:
        """The model, with adapters."""
        return cast(TokenPolicy, self.task.policy)

    @property
    def decoder(self) -> Any:
        """The model's own matrices."""
        return self.weights.params["params"]  # pyright: ignore

    @property
    def play(self) -> Play:
        """Plays episodes in words."""
        return partial(play_worlds, view=self.view)

    @cached_property
    def texts(self) -> tuple[str, ...]:
        """What every rule of `all_rules` says."""
        language = self.place.env.language
        return tuple(
            sentence(language, *pair) for pair in all_rules(self.place.rule_sizes)
        )

    def words(self, tasks: Any) -> tuple[str, ...]:
        """What each task asks for."""
        return tuple(self.text.task(None, row) for row in rows_of(tasks))  # pyright: ignore


def open_reader(weights: Weights, sizes: ReaderSizes) -> Reader:
    """The reader of a model.

    Raises:
      ConfigError: a model that cannot be asked, or whose context is too short.
    """
    if not weights.chat_template:
        raise ConfigError(
            "policy: expected an instruction-tuned model, which is asked for rules and "
            f"actions in its chat template, got {weights.name} without one"
        )
    task, _ = reader_task(sizes, weights.config)
    place, house = place_named("house"), reader_house(sizes)
    if sizes.large:
        draw = partial(house_tasks, size=house.size)
        place = replace(place, env=task.env, draw=draw, horizon=house.horizon)
    text = HouseText(house.size)
    view = TextView(
        text,
        weights.tokenizer,
        num_actions=house.num_actions,
        num_observation_tokens=sizes.num_observation_tokens,
        num_action_tokens=sizes.num_action_tokens,
    )
    return Reader(weights, place, text, view, task, sizes)


class Chosen(NamedTuple):
    """Tasks of the types that are tried, as many of each, type after type in turn.

    Attributes:
      tasks: leaves `[N, ...]`.
      kinds: `[N]` int32, the type of each.
    """

    tasks: Any
    kinds: np.ndarray


def chosen_tasks(key: Key, reader: Reader, each: int, split: str) -> Chosen:
    """The first `each` tasks of every type of `sizes.types`; `key` is consumed."""
    place = reader.place
    drawn = place.tasks(key, reader.sizes.oracle_tasks, split)
    kinds = place.keys_of(drawn)
    wanted = [place.types.index(name) for name in reader.sizes.types]
    rows = np.stack([np.flatnonzero(kinds == kind)[:each] for kind in wanted], axis=1)
    rows = rows.reshape(-1)
    return Chosen(jax.tree.map(lambda x: np.asarray(x)[rows], drawn), kinds[rows])


def _told_rules(
    key: Key, reader: Reader, kinds: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """`[N, R]` right rules and `[N, R]` wrong ones for tasks of types `[N]`.

    Both speak of the same situations: first those in which types differ most, of equal
    ones those that come up most often. Consumes `key`.
    """
    place, number = reader.place, reader.sizes.num_rules
    found = oracle_moves(key, place, reader.sizes.oracle_tasks)
    right = right_moves(found)
    wrong = wrong_moves(right)
    told = np.full((2, len(right), number), -1, np.int32)
    visits = found.made.sum(axis=-1)
    for kind, row in enumerate(right):
        differs = (right != row).mean(axis=0)
        order = sorted(
            np.flatnonzero(row), key=lambda s: (-differs[s], -visits[kind, s])
        )
        for place_in, situation in enumerate(order[:number]):
            for which, moves in enumerate((row, wrong[kind])):
                if moves[situation]:
                    rule = situation * place.rule_sizes[1] + moves[situation]
                    told[which, kind, place_in] = rule
    return told[0][kinds], told[1][kinds]


def held_out(key: Key, reader: Reader) -> Chosen:
    """Tasks to try everything on; `key` is the run's, and not consumed."""
    stream = jax.random.fold_in(key, HELD_OUT)
    return chosen_tasks(stream, reader, reader.sizes.held_out, "seen")


def told_of(key: Key, reader: Reader, held: Chosen) -> tuple[np.ndarray, np.ndarray]:
    """`[N, R]` right rules and `[N, R]` wrong ones for tasks; as `held_out`."""
    return _told_rules(jax.random.fold_in(key, ORACLE), reader, held.kinds)


def executor_of(reader: Reader) -> LocalExecutor:
    """The model as it is, without adapters, to be asked."""
    rows = reader.sizes.prompted * len(reader.sizes.types)
    return LocalExecutor(reader.weights, shape=BatchShape(rows=rows, capacity=1024))


def evaluated(
    key: Key,
    reader: Reader,
    held: Chosen,
    adapters: Any,
    *,
    working_set: np.ndarray | None = None,
    texts: Sequence[str] = (),
) -> dict[str, np.ndarray]:
    """Plays held-out tasks; whatever is compared uses the same key, not consumed.

    Args:
      key: of the episodes.
      reader: who plays.
      held: N tasks.
      adapters: of the policy.
      working_set: `[N, R]` ids of the rules in their prompts; None for none.
      texts: of the rules by id.

    Returns:
      `outcome` and `steps` `[N, samples]`; `situation` and `move` `[N, samples, T]`, 0
      behind an episode's end.
    """
    number, parts = len(held.kinds), []
    # On the devices where they are, by intention, as training has them: with others the
    # same programs would be compiled again.
    adapters = jax.tree.map(lambda x: jax.device_put(x, x.sharding), adapters)
    params = {"decoder": reader.decoder, "adapters": adapters}
    rules = {} if working_set is None else {"rule_texts": texts}
    for sample in range(reader.sizes.samples):
        data = reader.play(
            jax.random.fold_in(key, sample),
            reader.place.env,
            held.tasks,
            reader.policy,
            params,
            num_steps=reader.sizes.num_steps,
            batch_size=number,
            working_set=working_set,
            **rules,
        )
        parts.append(_said(reader, held, data))
    return {name: np.stack([p[name] for p in parts], axis=1) for name in parts[0]}


def _said(reader: Reader, held: Chosen, data: Trajectory) -> dict[str, np.ndarray]:
    """Outcomes, steps, situations and moves of an episode a task."""
    mask = np.asarray(data.mask)
    situation, move = situate_by_replay(reader.place.env)(data, held.tasks)
    return {
        "outcome": np.asarray(data.outcome, np.int32),
        "steps": mask.sum(axis=1, dtype=np.int32),
        "situation": np.where(mask, situation, 0).astype(np.int32),
        "move": np.where(mask, move, 0).astype(np.int32),
    }
