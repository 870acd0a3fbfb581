"""Runs of skills as JSON lines: what was executed is paid for, and never run again.

    {"format": "jerp skill runs", "version": 1, "workplace": "..."}
    {"task": "...", "skill": "sha256:...", "sample": 3, "outcome": 1, "evidence": ...}

A run is known by its task, the text of its skill and the sample index, and there is one
of each: another outcome under the same key is refused. Evidence stays on the disk until
someone asks for it; in memory are a digest and a place a run, some 150 bytes.
"""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from jerp.errors import InputError, StorageError
from jerp.skills.node import check_whole
from jerp.storage.appended_lines import (
    AppendedFile,
    append_lines,
    check_begun,
    check_head,
    disk_errors,
    end_lines,
    say_torn,
    whole_size,
)
from jerp.typing import Outcome

__all__ = ["RUNS_VERSION", "SkillRun", "SkillRunFile", "Trial"]

RUNS_VERSION = 1

FORMAT = "jerp skill runs"
HASH = re.compile("sha256:[0-9a-f]{64}")
FIELDS = {
    *("task", "skill", "sample", "outcome"),
    *("executor_calls", "tokens", "evidence"),
}


@dataclass(frozen=True)
class Trial:
    """What is to be executed.

    Attributes:
      task: its key.
      skill: as `render_skill` writes it; None for the executor alone.
      sample: >= 0; equal ones of a task have the same luck, whatever the skill.

    Raises:
      InputError: a field that cannot be meant, by its name.
    """

    task: str
    skill: str | None
    sample: int

    def __post_init__(self) -> None:
        if not isinstance(self.task, str) or not self.task:
            raise InputError(f"task: expected its key, got {self.task!r:.80}")
        if self.skill is not None and (
            not isinstance(self.skill, str) or not self.skill
        ):
            raise InputError(f"skill: expected a text or None, got {self.skill!r:.80}")
        object.__setattr__(self, "sample", check_whole("sample", self.sample))

    @property
    def skill_hash(self) -> str | None:
        """As `jerp.storage.skill_document.skill_hash` has it; None for no skill."""
        if self.skill is None:
            return None
        return f"sha256:{hashlib.sha256(self.skill.encode()).hexdigest()}"

    @property
    def name(self) -> str:
        """Of the run, for people and for the tree; unique within a task."""
        text = "none" if (found := self.skill_hash) is None else found[7:19]
        return f"{text}/{self.sample}"


@dataclass(frozen=True)
class SkillRun:
    """What came of it.

    Attributes:
      outcome: of the verifier; `INFRASTRUCTURE` where nobody answered.
      evidence: what happened, verbatim, in the types of JSON.
      executor_calls: >= 0, that it took.
      tokens: >= 0, that the executor read and wrote.

    Raises:
      InputError: a field that cannot be meant, by its name.
    """

    outcome: Outcome
    evidence: Any = None
    executor_calls: int = 0
    tokens: int = 0

    def __post_init__(self) -> None:
        outcome = check_whole("outcome", self.outcome)
        if outcome >= len(Outcome):
            most = len(Outcome) - 1
            raise InputError(f"outcome: expected 0 to {most}, got {self.outcome!r}")
        object.__setattr__(self, "outcome", Outcome(outcome))
        for name in ("executor_calls", "tokens"):
            object.__setattr__(self, name, check_whole(name, getattr(self, name)))


class SkillRunFile(AppendedFile):
    """Appends runs to a file such as `runs.jsonl`, which it locks until it is closed.

    Args:
      path: of the file; it is made where there is none.
      workplace: whose runs these are, in a short text; those of another are refused.

    Attributes:
      path: of the file.

    Raises:
      StorageError: another process writes to the file, it is no file of runs, damaged
        before its last line, of another version or workplace, or the disk refuses.
    """

    def __init__(self, path: Path | str, *, workplace: str):
        super().__init__(path, "runs")
        self._workplace = workplace
        self._places: dict[bytes, int] = {}
        with self._closed_on_failure():
            self._recover()

    def __len__(self) -> int:
        return len(self._places)

    def __contains__(self, trial: Trial) -> bool:
        return _key(trial.task, trial.skill_hash, trial.sample) in self._places

    def __getitem__(self, trial: Trial) -> SkillRun:
        """The run of a trial; raises `KeyError` if there is none."""
        return self._at(self._places[_key(trial.task, trial.skill_hash, trial.sample)])

    def append(self, trials: Sequence[Trial], runs: Sequence[SkillRun]) -> None:
        """Adds runs, one a trial, and waits until they are on disk.

        What is there already stays as it is.

        Raises:
          InputError: evidence that JSON has no types for; nothing is written.
          StorageError: another outcome of what was executed before, or the disk
            refuses; nothing is written.
        """
        new: dict[bytes, tuple[SkillRun, bytes]] = {}
        for trial, run in zip(trials, runs, strict=True):
            key = _key(trial.task, trial.skill_hash, trial.sample)
            if key in self._places or key in new:
                known = new[key][0] if key in new else self[trial]
                _check_same(self.path, trial.task, known.outcome, run.outcome)
            else:
                new[key] = run, _line(_run_row(trial, run))
        if not new:
            return
        lines = b"".join(line for _, line in new.values())
        place = append_lines(self.path, self._file, lines)
        for key, (_, line) in new.items():
            self._places[key], place = place, place + len(line)

    def _recover(self) -> None:
        """Finds the place of every run, and cuts off what is no whole line."""
        with disk_errors(self.path), open(self.path, "rb") as lines:
            whole, place = whole_size(lines), 0
            torn = lines.tell() - whole
            lines.seek(0)
            for number, line in enumerate(lines, start=1):
                if place == whole:
                    break
                try:
                    self._take(number, _parsed(line), place)
                except (InputError, ValueError, RecursionError) as error:
                    what = "no run of a skill" if number > 1 else "no head of such runs"
                    raise StorageError(
                        f"{self.path}: line {number} is {what} ({str(error)[:300]}); "
                        "bring the file back, or remove the lines from it on"
                    ) from error
                place += len(line)
        head = {"format": FORMAT, "version": RUNS_VERSION}
        first = _line({**head, "workplace": self._workplace})
        if not whole:
            check_begun(self.path, self._file, first)
        say_torn(self.path, torn)
        end_lines(self.path, self._file, whole, first)

    def _take(self, number: int, row: Any, place: int) -> None:
        """Notes where a row is, if it is one."""
        if number == 1:
            found = check_head(row, FORMAT, RUNS_VERSION).get("workplace")
            if found != self._workplace:
                raise InputError(
                    f"workplace: expected {self._workplace!r}, got {found!r:.80}: "
                    "these are runs of another executor, or of other tasks; use "
                    "another folder"
                )
            return
        key, run = _read(row)
        if key in self._places:
            known = self._at(self._places[key])
            _check_same(self.path, row["task"], known.outcome, run.outcome)
        else:
            self._places[key] = place

    def _at(self, place: int) -> SkillRun:
        with disk_errors(self.path), open(self.path, "rb") as file:
            file.seek(place)
            return _read(json.loads(file.readline()))[1]


def _key(task: str, skill: str | None, sample: int) -> bytes:
    """A digest of what a run is known by: a million of them are no burden."""
    text = json.dumps([task, skill, sample]).encode()
    return hashlib.blake2b(text, digest_size=16).digest()


def _run_row(trial: Trial, run: SkillRun) -> dict[str, Any]:
    known = {"task": trial.task, "skill": trial.skill_hash, "sample": trial.sample}
    price = {"executor_calls": run.executor_calls, "tokens": run.tokens}
    return {**known, "outcome": int(run.outcome), **price, "evidence": run.evidence}


def _read(row: Any) -> tuple[bytes, SkillRun]:
    """Key and run of a row; raises `InputError` if it is none."""
    if not isinstance(row, dict) or set(row) != FIELDS:
        raise InputError(f"expected the fields {', '.join(sorted(FIELDS))}")
    trial = Trial(row["task"], None, row["sample"])
    skill = row["skill"]
    if skill is not None and not (isinstance(skill, str) and HASH.fullmatch(skill)):
        raise InputError(
            f"skill: expected 'sha256:' and 64 hexadecimal digits, or null, got "
            f"{skill!r:.80}"
        )
    run = SkillRun(
        *(row["outcome"], row["evidence"], row["executor_calls"], row["tokens"])
    )
    return _key(trial.task, skill, trial.sample), run


def _parsed(line: bytes) -> Any:
    """As `json.loads`, without the NaN and the infinities that JSON does not have."""

    def refused(name: str) -> None:
        raise InputError(f"evidence: expected finite numbers, got {name}")

    return json.loads(line, parse_constant=refused)


def _check_same(path: Path, task: str, before: Outcome, now: Outcome) -> None:
    if before != now:
        raise StorageError(
            f"{path}: expected one outcome of a task, a skill and a sample, got "
            f"{before.name} and {now.name} of task {task!r}; see whether executor and "
            "verifier do the same for the same sample"
        )


def _line(row: dict[str, Any]) -> bytes:
    try:
        return json.dumps(row, allow_nan=False).encode() + b"\n"
    except (TypeError, ValueError, RecursionError) as error:
        raise InputError(
            f"evidence: expected texts, finite numbers, lists and dicts: {error}"
        ) from error
