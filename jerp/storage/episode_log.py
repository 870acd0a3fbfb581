"""Logging episodes of a deployed agent, so that the next controller learns from them.

A trajectory folder, written one decision at a time from a plain loop. An episode is on
the disk when its `end` returns, or with `shard_size` others; what was not yet written
when a process dies is absent, never half there. A folder has one log at a time, and
opening it again continues it. Episodes may overlap, in threads too.
"""

from __future__ import annotations

import hashlib
import threading
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from numpy.typing import ArrayLike

from jerp.errors import ConfigError, StorageError
from jerp.models.acting import Decision
from jerp.models.acting_checks import check_features
from jerp.ops.checks import check_count
from jerp.storage.documents import write_json
from jerp.storage.locks import lock_folder
from jerp.storage.log_session import (
    check_seed,
    check_version,
    checked_meta,
    continued,
    log_folder,
    next_number,
    shard_name,
)
from jerp.storage.logged_steps import LoggedEnd, LoggedStep, as_trajectory
from jerp.storage.trajectories import TrajectoryFolder
from jerp.typing import Outcome

__all__ = ["EpisodeLog", "OpenEpisode"]


class EpisodeLog:
    """A trajectory folder that grows by one episode after the other.

        with jerp.EpisodeLog("logs", features=FEATURES, actions=ACTIONS) as log:
            episode = log.begin("task-17")
            decision = controller.act(features, legal, seed=episode.seed)
            episode.step(features, legal, decision)
            episode.end(score=0.8)

    Args:
      folder: new, empty, or of an earlier log of the same layout, which is continued.
      features: names of the features, in order.
      actions: names of the actions, in order.
      feature_version: of the layout of features.
      version: of the policy that acts, kept with every episode.
      shard_size: episodes that are written together. One loses nothing that ended; more
        make fewer files.
      extra: JSON-able, into the folder's `meta.json`; `jerp view` shows `domain` and
        `arm`.
      seed: of the seeds of all decisions. None draws one for a new folder, so that
        folders which are filled side by side explore differently, and continues with
        an old folder's own; a number makes the same decisions again.

    Raises:
      ConfigError: a setting is none, or the folder was begun with other ones, and it
        is named; or the folder holds something else.
      StorageError: another process logs here, or the folder cannot be written.
    """

    def __init__(
        self,
        folder: Path | str,
        *,
        features: Sequence[str],
        actions: Sequence[str],
        feature_version: int = 0,
        version: int = 0,
        shard_size: int = 1,
        extra: Mapping[str, Any] | None = None,
        seed: int | None = None,
    ):
        check_count("shard_size", shard_size)
        check_version("version", version)
        check_seed(seed)
        meta = checked_meta(features, actions, feature_version, extra)
        path = log_folder(folder)
        self._file = lock_folder(path)
        try:
            meta, self._seed = continued(path, meta, seed)
            self._folder = TrajectoryFolder.create(path, meta)
            self._next_shard = next_number(self._folder.shards())
        except BaseException:
            self._file.close()
            raise
        self._task_ids = {key: int(i) for i, key in meta.task_keys.items()}
        self._session, self._begun = self._next_shard, 0
        self._version, self._shard_size = version, shard_size
        self._ended: list[tuple[list[LoggedStep], LoggedEnd]] = []
        self._writing: tuple[int, list[list[LoggedStep]]] = (-1, [])
        self._guard = threading.Lock()

    def begin(self, task: str) -> OpenEpisode:
        """A new episode of the task with that key, an old or a new one.

        Raises:
          ConfigError: the log is closed, or the key is empty.
        """
        if not isinstance(task, str) or not task:
            raise ConfigError(f"task: expected a key, as text, got {task!r}")
        with self._guard:
            self._check_open()
            task_id = self._task_ids.setdefault(task, len(self._task_ids))
            self._begun += 1
            name = f"{self._seed}/{self._session}/{self._begun}"
        return OpenEpisode(self, task_id, name)

    def close(self) -> None:
        """Writes what ended, forgets what did not, and gives the folder free."""
        with self._guard:
            if not self._file.closed:
                try:
                    self._take_note()
                    self._write()
                finally:
                    self._file.close()

    def __enter__(self) -> EpisodeLog:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def _add(self, steps: list[LoggedStep], end: LoggedEnd) -> None:
        with self._guard:
            self._check_open()
            if self._take_note() and any(one is steps for one in self._writing[1]):
                return
            self._forget([steps])
            self._ended.append((steps, end))
            if len(self._ended) < self._shard_size:
                return
            try:
                self._write()
            except BaseException:
                # Whoever is told of a failure calls `end` again, or gives it up.
                self._forget([steps])
                raise

    def _forget(self, episodes: list[list[LoggedStep]]) -> None:
        """Writes these no more."""
        gone = {id(steps) for steps in episodes}
        self._ended = [one for one in self._ended if id(one[0]) not in gone]

    def _take_note(self) -> bool:
        """Whether the shard that was written last is whole, which is then noted.

        An interrupt may come at any moment, also after the shard is in its place: what
        is on the disk decides, and taking note twice is taking note once.
        """
        number, episodes = self._writing
        if number < 0 or not self._folder.holds(shard_name(number)):
            return False
        self._forget(episodes)
        self._next_shard = number + 1
        return True

    def _write(self) -> None:
        """One more shard, of all that ended; the names of new tasks come first."""
        if not self._ended:
            return
        folder = self._folder
        if len(self._task_ids) != len(folder.meta.task_keys):
            keys = {str(i): key for key, i in self._task_ids.items()}
            meta = replace(folder.meta, task_keys=keys)
            write_json(folder.folder / "meta.json", meta.document())
            self._folder = replace(folder, meta=meta)
        trajectory = as_trajectory(
            self._ended,
            num_features=len(folder.meta.feature_names),
            num_actions=len(folder.meta.action_names),
            version=self._version,
        )
        text = [[step.text for step in steps] for steps, _ in self._ended]
        name = shard_name(self._next_shard)
        is_taken = self._folder.holds(name)
        if not is_taken:
            self._writing = self._next_shard, [steps for steps, _ in self._ended]
        try:
            self._folder.write_shard(name, trajectory, text)
        except StorageError:
            # A flush of the folder can fail when the shard is whole and in its place.
            if is_taken or not self._take_note():
                raise
        self._take_note()

    def _check_open(self) -> None:
        if self._file.closed:
            raise ConfigError(
                f"{self._folder.folder}: this log is closed; open it again"
            )


class OpenEpisode:
    """An episode in the making; `EpisodeLog.begin` makes one."""

    def __init__(self, log: EpisodeLog, task_id: int, name: str):
        self._log, self._task_id, self._name = log, task_id, name
        self._steps: list[LoggedStep] = []
        self._is_over = False

    @property
    def seed(self) -> int:
        """For the next decision: another one for every step of every logged episode.

        The first eight bytes of SHA-256 of `SEED/SESSION/EPISODE/STEP`.
        """
        text = f"{self._name}/{len(self._steps)}"
        return int.from_bytes(hashlib.sha256(text.encode()).digest()[:8])

    def step(
        self,
        features: ArrayLike,
        legal: ArrayLike,
        decision: Decision,
        *,
        reward: float = 0.0,
        usage: Mapping[str, float] | None = None,
        text: Mapping[str, Any] | None = None,
    ) -> None:
        """Logs one decision.

        Args:
          features: `[F]` numbers that the decision was made from.
          legal: `[A]` bool.
          decision: what `HarnessController.act` returned, or a `jerp.Decision` of
            another policy with the log-probability it really acted with; 0 if certain.
          reward: of this step alone.
          usage: amounts by kind, of `jerp.typing.USAGE_KINDS`; the others are 0.
          text: JSON-able, what people will read of this step.

        Raises:
          ConfigError: the episode is over, or the action is another layout's.
          ShapeError, InputError: other axes, types or numbers than the names promise.
        """
        self._check_going()
        meta = self._log._folder.meta
        self._steps.append(
            LoggedStep.checked(
                features, legal, decision, reward, usage, text, meta=meta
            )
        )

    def end(
        self,
        score: float | None = None,
        *,
        outcome: Outcome | None = None,
        reward: float | None = None,
        final_features: ArrayLike | None = None,
    ) -> None:
        """Ends the episode, which is then on the disk, or among the next shard's.

        Args:
          score: in [0, 1], how good the result is; None only if `outcome` is
            INFRASTRUCTURE.
          outcome: SUCCESS at score 1 and FAILURE below if None. INFRASTRUCTURE where
            something broke that says nothing of the agent: nobody learns from it, and
            its reward is 0.
          reward: of the end, added to that of the last step; `score` if None.
          final_features: `[F]`, what the agent would have seen next; needed if
            `outcome` is TRUNCATED, whose end learning bootstraps from.

        Raises:
          ConfigError: the episode is over or nothing was done, or an argument lacks.
          InputError: the score or the reward is no number or out of range, or the
            outcome is none.
          StorageError: the disk refuses and this episode is not logged; `end` may be
            called again. After an interrupt too: the episode is then logged once.
        """
        self._check_going()
        end = LoggedEnd.checked(
            score, outcome, reward, task_id=self._task_id, num_steps=len(self._steps)
        )
        if final_features is not None:
            names = self._log._folder.meta.feature_names
            end = replace(end, feature=check_features(final_features, names, ndim=1))
        elif end.outcome == Outcome.TRUNCATED:
            raise ConfigError(
                "final_features: expected what the agent would have seen next, as the "
                "outcome is TRUNCATED, got None"
            )
        self._log._add(self._steps, end)
        self._is_over = True

    def _check_going(self) -> None:
        if self._is_over:
            raise ConfigError("this episode is over; begin another one")
