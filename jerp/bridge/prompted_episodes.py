"""Episodes of a world that a frozen chat model plays, asked step by step.

No gradient and no log-probability: it is what prompting alone achieves, with rules in
the prompt or without. All episodes that go on are asked in one call a step. An answer
that is no action costs the step and is counted; an executor's failure ends the episode
as INFRASTRUCTURE, before the step that nobody chose.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from jerp.bridge.blocking import wait_for
from jerp.bridge.executor import FAILED, Completion, Executor, complete_checked
from jerp.bridge.prompting import NOT_UNDERSTOOD, Log, Prompting, Turn, read_answer
from jerp.bridge.world_episodes import texts_of_rules
from jerp.bridge.world_text import rows_of
from jerp.envs.base import TimeStep, World, WorldText
from jerp.errors import ConfigError
from jerp.models.policy import Acted
from jerp.ops.checks import check_count
from jerp.rollout.episodes import (
    Now,
    StepRecord,
    finish_episodes,
    start_episodes,
    step_episodes,
    working_sets_of,
)
from jerp.trajectory import Trajectory
from jerp.typing import USAGE_KINDS, Array, Key, Outcome

__all__ = ["SPENT", "Prompted", "play_prompted"]

SPENT = -1
"""The action of a step whose answer was no action."""


class Prompted(NamedTuple):
    """Episodes that were played by prompting.

    Attributes:
      trajectory: `[B, T]`, on the host; `legal` and `log_prob` are None, an action that
        was none is `SPENT`, and usage counts calls, tokens and seconds.
      transcripts: task, thoughts, actions and what was seen, a text an episode, without
        rules and notes.
      unparsed: `[B]` int32, answers that were no action.
    """

    trajectory: Trajectory
    transcripts: tuple[str, ...]
    unparsed: np.ndarray


def play_prompted(
    key: Key,
    env: World,
    env_params: Any,
    executor: Executor,
    text: WorldText,
    prompting: Prompting,
    *,
    num_steps: int,
    batch_size: int,
    shared_start: bool = False,
    working_set: Array | None = None,
    rule_texts: Sequence[str] | None = None,
    notes: Sequence[Sequence[str]] | None = None,
    played: np.ndarray | None = None,
    first_sample: int = 0,
) -> Prompted:
    """Plays `batch_size` episodes of at most `num_steps` steps.

    Args:
      key: consumed; for the world alone. What an answer depends on besides its prompt
        is the sample index of the request, the rollout number of the task:
        `first_sample` and how many episodes before this one play the same task.
      env: a world in which an action that cannot be taken only costs the step.
      env_params: leaves `[N, ...]`, one row a task; episode `b` plays task `b % N`.
      executor: the model.
      text: the world in words.
      prompting: how it is asked.
      num_steps: T.
      batch_size: B.
      shared_start: see `jerp.rollout.scan.rollout`.
      working_set: `[N, R]` int32, ids of the rules in the prompts of each task.
      rule_texts: by rule id.
      notes: of `B` episodes, texts that their prompts have as well.
      played: `[B]` bool, the episodes that are; others take no step and are TRUNCATED.
      first_sample: rollouts of each task before these, at least 0. Who plays the same
        tasks again with the same number asks the same again, and is answered the same.

    Raises:
      ConfigError: rules without texts, or a world all of whose actions can be taken, so
        that an answer that is none cannot be played.
      ExecutorError: the executor failed as a whole.
      InputError: a rule without a text, or no steps, tasks or episodes.
    """
    check_count("num_steps", num_steps)
    check_count("first_sample", first_sample, least=0)
    seat, now = _start(
        key, env, env_params, batch_size=batch_size, shared_start=shared_start
    )
    rules = working_sets_of(seat, env_params, working_set)
    tasks = rows_of(jax.device_get(seat.tasks))
    samples = [first_sample + earlier for earlier in np.asarray(seat.seed).tolist()]
    table = _Table(executor, text, prompting, tasks, samples)
    texts = [()] * batch_size if rules is None else texts_of_rules(rules, rule_texts)
    table.begin(now, texts, notes or [()] * batch_size)
    if played is not None:
        now = _end(now, ~np.asarray(played, bool), Outcome.TRUNCATED)
    records: list[StepRecord] = []
    for t in range(num_steps):
        action, usage, failed = table.ask(now)
        if failed.any():
            now = _end(now, failed, Outcome.INFRASTRUCTURE)
            records[-1:] = [_cut(record, failed) for record in records[-1:]]
        after = _step(env, seat, now, jnp.asarray(_possible(action, now)), np.int32(t))
        table.note(now, after, action)
        used = after[1].replace(usage=usage)
        acted = Acted(jnp.asarray(action), jnp.zeros(batch_size))
        records.append(jax.device_get(StepRecord(now[1], acted, used)))
        now = after
        if _ended(now[1]).all():
            break
    records += [_nothing(records[-1], now[1])] * (num_steps - len(records))
    record = jax.tree.map(lambda *xs: np.stack(xs, axis=1), *records)
    found = jax.device_get(_finish(seat, record, now[1], working_set=rules))
    return Prompted(
        found.replace(legal=None, log_prob=None),
        tuple(log.told() for log in table.logs),
        np.asarray(table.unparsed, np.int32),
    )


class _Table:
    """What all episodes have read and written, and the model they ask."""

    def __init__(
        self,
        executor: Executor,
        text: WorldText,
        prompting: Prompting,
        tasks: Sequence[Any],
        samples: Sequence[int],
    ):
        self.executor, self.text, self.prompting = executor, text, prompting
        self.tasks, self.samples = tasks, samples
        self.logs: list[Log] = []
        self.thoughts = [""] * len(tasks)
        self.unparsed = [0] * len(tasks)

    def begin(
        self, now: Now, rules: Sequence[Sequence[str]], notes: Sequence[Sequence[str]]
    ) -> None:
        states = rows_of(jax.device_get(now[0]))
        for row, (state, task) in enumerate(zip(states, self.tasks, strict=True)):
            asked = self.text.task(state, task)
            seen = self.text.observation(state, task)
            self.logs.append(Log(asked, seen, rules[row], notes[row]))

    def ask(self, now: Now) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Actions `[B]`, usage `[B, U]` and which episodes nobody answered `[B]`."""
        legal, rows = np.asarray(now[1].legal), np.flatnonzero(~_ended(now[1])).tolist()
        options = {row: np.flatnonzero(legal[row]).tolist() for row in rows}
        words = {
            row: [self.text.action(a, self.tasks[row]) for a in options[row]]
            for row in rows
        }
        requests = [
            self.logs[row].request(self.prompting, words[row], self.samples[row])
            for row in rows
        ]
        action = np.full(len(legal), SPENT, np.int32)
        usage = np.zeros((len(legal), len(USAGE_KINDS)), np.float32)
        failed = np.zeros(len(legal), bool)
        for row, answer in zip(rows, self._answers(requests), strict=True):
            usage[row] = (1, answer.tokens_in, answer.tokens_out, answer.seconds, 0)
            failed[row] = answer.status in FAILED
            choice, thought = read_answer(
                answer, words[row], style=self.prompting.style
            )
            self.thoughts[row] = thought
            if choice is not None:
                action[row] = options[row][choice]
        return action, usage, failed

    def _answers(self, requests: Sequence[Any]) -> list[Completion]:
        if not requests:
            return []
        return wait_for(complete_checked(self.executor, requests))

    def note(self, before: Now, after: Now, action: np.ndarray) -> None:
        """Writes a step into the logs of those who took one."""
        states = rows_of(jax.device_get(after[0]))
        for row in np.flatnonzero(~_ended(before[1])).tolist():
            task, log = self.tasks[row], self.logs[row]
            seen = self.text.observation(states[row], task)
            if action[row] == SPENT:
                self.unparsed[row] += 1
                log.turns.append(Turn("", "", f"{NOT_UNDERSTOOD}\n{seen}"))
            else:
                did = self.text.action(int(action[row]), task)
                log.turns.append(Turn(self.thoughts[row], did, seen))


_start = jax.jit(start_episodes, static_argnames=("env", "batch_size", "shared_start"))
_step = jax.jit(step_episodes, static_argnames="env")
_finish = jax.jit(finish_episodes)


def _ended(now: TimeStep) -> np.ndarray:
    return np.asarray(now.terminated) | np.asarray(now.truncated)


def _possible(action: np.ndarray, now: Now) -> np.ndarray:
    """Actions to play: one that cannot be taken, in place of one that is none."""
    legal = np.asarray(now[1].legal)
    stuck = (action == SPENT) & legal.all(axis=1)
    if stuck.any():
        raise ConfigError(
            f"env: expected an action that cannot be taken, to spend a step with, got "
            f"{legal.shape[1]} that all can in episode {int(np.argmax(stuck))}"
        )
    return np.where(action == SPENT, np.argmin(legal, axis=1), action).astype(np.int32)


def _end(now: Now, rows: np.ndarray, outcome: Outcome) -> Now:
    """Ends episodes where they stand."""
    state, step = now
    ended = step.replace(
        truncated=np.asarray(step.truncated) | rows,
        legal=np.asarray(step.legal) & ~rows[:, None],
        outcome=np.where(rows, np.int32(outcome), step.outcome),
        score=np.where(rows, np.float32(0), step.score),
    )
    return state, ended


def _cut(record: StepRecord, rows: np.ndarray) -> StepRecord:
    """The step before, which turned out to be an episode's last."""
    after = record.after.replace(truncated=record.after.truncated | rows)
    return record._replace(after=after)


def _nothing(record: StepRecord, last: TimeStep) -> StepRecord:
    """A step in which all episodes had ended."""
    return StepRecord(jax.device_get(last), record.acted, record.after)
