"""Episodes of a benchmark in text that a frozen chat model plays, asked step by step.

What `jerp.bridge.prompted_episodes` is to our own worlds this is to those of others:
rules stand in the prompt or not, an answer of another form costs the step and is
counted, and an executor's failure ends the episode as INFRASTRUCTURE, before the step
that nobody chose. All episodes that go on are asked in one call a step.
"""

from __future__ import annotations

import zlib
from collections.abc import Sequence
from contextlib import ExitStack, closing
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from jerp.bridge.blocking import wait_for
from jerp.bridge.executor import FAILED, Completion, Executor, complete_checked
from jerp.bridge.prompted_episodes import SPENT
from jerp.bridge.prompting import Log, Prompting, Turn, read_command
from jerp.domains.benchmark import Benchmark
from jerp.domains.commands import CommandSession, command
from jerp.errors import ConfigError
from jerp.ops.checks import check_count
from jerp.records import Task
from jerp.trajectory import Trajectory
from jerp.typing import USAGE_KINDS, Outcome

__all__ = ["PlayedTexts", "play_texts"]

MOST_LISTED = 60
"""Commands that a prompt lists; ScienceWorld has thousands."""

FORM = "(That was not understood, and nothing happened. Answer in the form asked for.)"


class PlayedTexts(NamedTuple):
    """Episodes that were played by prompting.

    Attributes:
      trajectory: `[B, T]`, NumPy arrays; `legal` and `log_prob` are None, observations
        are empty, an action is its place in the list or, for one of the model's own,
        the length of that list; `SPENT` for an answer that was none. The reward is the
        score, at the last step.
      transcripts: task, thoughts, commands and what was seen, a text an episode,
        without rules.
      unparsed: `[B]` int32, answers that were no command.
    """

    trajectory: Trajectory
    transcripts: tuple[str, ...]
    unparsed: np.ndarray


def play_texts(
    benchmark: Benchmark,
    tasks: Sequence[Task],
    executor: Executor,
    prompting: Prompting,
    *,
    num_steps: int,
    sample_index: ArrayLike,
    task_id: ArrayLike,
    rules: Sequence[Sequence[str]] = (),
    working_set: np.ndarray | None = None,
) -> PlayedTexts:
    """Plays an episode a task, all side by side, of at most `num_steps` steps.

    Args:
      benchmark: whose sessions take commands.
      tasks: `B` of them; one may occur often.
      executor: the model.
      prompting: how it is asked.
      num_steps: T.
      sample_index: `[B]` int32, of every request of the episode, and its seed.
      task_id: `[B]` int32, goes into the trajectory as it is.
      rules: of `B` prompts, texts, best first; none for no rules at all.
      working_set: `[B, R]` int32, their ids, goes into the trajectory as it is.

    Raises:
      ConfigError: no tasks, or a benchmark that is not one of commands.
      ExecutorError: the executor failed as a whole.
    """
    check_count("num_steps", num_steps)
    samples = np.asarray(sample_index, np.int32)
    if not tasks or samples.shape != (len(tasks),):
        raise ConfigError(
            f"sample_index: expected one for each of the {len(tasks)} tasks, at least "
            f"one, got shape {list(samples.shape)}"
        )
    with ExitStack() as stack:
        rows = [
            stack.enter_context(
                closing(_begun(benchmark, task, int(s), told, prompting))
            )
            for task, s, told in zip(
                tasks, samples, rules or [()] * len(tasks), strict=True
            )
        ]
        for _ in range(num_steps):
            going = [row for row in rows if not row.ended]
            if not going:
                break
            requests = [row.request() for row in going]
            answers = wait_for(complete_checked(executor, requests))
            for row, answer in zip(going, answers, strict=True):
                row.take(answer)
        ids = (samples, np.asarray(task_id, np.int32), working_set)
        return PlayedTexts(
            _trajectory(rows, num_steps, *ids),
            tuple(row.log.told() for row in rows),
            np.asarray([row.unparsed for row in rows], np.int32),
        )


class _Step(NamedTuple):
    action: int
    usage: tuple[float, ...]
    anchor: int


@dataclass
class _Row:
    """One episode."""

    session: CommandSession
    log: Log
    sample: int
    prompting: Prompting
    steps: list[_Step] = field(default_factory=list)
    listed: tuple[str, ...] = ()
    seen: str = ""
    unparsed: int = 0
    ended: bool = False
    lost: bool = False

    def request(self) -> Any:
        self.listed = self.session.admissible[:MOST_LISTED]
        return self.log.request(self.prompting, self.listed, self.sample, freely=True)

    def take(self, answer: Completion) -> None:
        """Does what was answered, or ends the episode that nobody answered."""
        if answer.status in FAILED:
            self.ended = self.lost = True
            return
        said = read_command(answer, style=self.prompting.style)
        usage = (1.0, answer.tokens_in, answer.tokens_out, answer.seconds)
        usage = (*usage, answer.dollars)
        anchor = zlib.crc32(self.seen.encode(errors="replace")) & 0x7FFFFFFF
        if said is None:
            self.unparsed += 1
            self.steps.append(_Step(SPENT, usage, anchor))
            self.log.turns.append(Turn("", "", f"{FORM}\n{self.seen}"))
            return
        reply = self.session.move(command(said.action))
        known = said.action in self.listed
        action = self.listed.index(said.action) if known else len(self.listed)
        self.steps.append(_Step(action, usage, anchor))
        self.log.turns.append(Turn(said.thought, said.action, reply.text))
        self.seen, self.ended = reply.text, reply.ended

    def close(self) -> None:
        self.session.close()

    def result(self) -> tuple[Outcome, float]:
        """Outcome and score; of an episode that did not end nothing is judged."""
        if self.lost:
            return Outcome.INFRASTRUCTURE, 0.0
        if not self.ended:
            return Outcome.TRUNCATED, 0.0
        verdict = self.session.score()
        outcome = Outcome.SUCCESS if verdict.success else Outcome.FAILURE
        return outcome, verdict.score


def _begun(
    benchmark: Benchmark,
    task: Task,
    sample: int,
    rules: Sequence[str],
    prompting: Prompting,
) -> _Row:
    session = benchmark.start(task, seed=sample)
    if not isinstance(session, CommandSession):
        session.close()
        raise ConfigError(
            f"benchmark: expected one whose worlds take commands, got "
            f"{benchmark.name}, whose tools are {[t.name for t in session.tools]}"
        )
    asked, _, seen = session.opening.partition("\n")
    return _Row(session, Log(asked, seen, rules), sample, prompting, seen=seen)


def _trajectory(
    rows: Sequence[_Row],
    num_steps: int,
    samples: np.ndarray,
    task_id: np.ndarray,
    working_set: np.ndarray | None,
) -> Trajectory:
    size = (len(rows), num_steps)
    taken = np.asarray([len(row.steps) for row in rows])
    found = [row.result() for row in rows]
    outcome = np.asarray([o for o, _ in found], np.int32)
    score = np.asarray([s for _, s in found], np.float32)
    mask = np.arange(num_steps)[None] < taken[:, None]
    last = np.arange(num_steps)[None] == taken[:, None] - 1
    judged = np.isin(outcome, (Outcome.SUCCESS, Outcome.FAILURE))[:, None]
    action, anchor = np.zeros(size, np.int32), np.zeros(size, np.int32)
    usage = np.zeros((*size, len(USAGE_KINDS)), np.float32)
    for i, row in enumerate(rows):
        for t, step in enumerate(row.steps):
            action[i, t], usage[i, t], anchor[i, t] = (
                step.action,
                step.usage,
                step.anchor,
            )
    arrays: dict[str, Any] = dict(
        observation=np.zeros((*size, 1), np.float32),
        action=action,
        reward=np.where(last, score[:, None], 0).astype(np.float32),
        terminated=last & judged,
        truncated=last & ~judged,
        mask=mask,
        anchor=anchor,
        usage=usage,
        final_observation=np.zeros((len(rows), 1), np.float32),
        task_id=task_id,
        group_id=task_id,
        seed=samples,
        outcome=outcome,
        score=score,
        version=np.zeros(len(rows), np.int32),
        working_set=working_set,
    )
    return Trajectory(**arrays)
