"""What became of each rule, told from the rows of a ledger in their order.

A rule is a task key and the number of a text. Its history is that of its text: the
edits that wrote it and those of the rules it was made of. Votes are kept beside it:
they say how a rule fared, not what it was learned from.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Literal, get_args

from jerp.errors import InputError, UnknownNameError
from jerp.storage.rule_fields import check_key, check_score, check_sources, check_whole

__all__ = [
    "LedgerOp",
    "LedgerRow",
    "RuleEdit",
    "RuleHistories",
    "RuleHistory",
    "RuleScores",
    "histories",
]

LedgerOp = Literal[
    "START", "ADD", "EDIT", "UPVOTE", "DOWNVOTE", "MERGE", "PRUNE", "RETIRE"
]
"""The five edits; START, a rule that was there before the first; PRUNE and RETIRE, one
that went by its score or the capacity, or because the policy had absorbed it."""

WRITES: tuple[LedgerOp, ...] = ("START", "ADD", "EDIT", "MERGE")
REPLACES: tuple[LedgerOp, ...] = ("EDIT", "MERGE")
ENDS: tuple[LedgerOp, ...] = ("PRUNE", "RETIRE")


@dataclass(frozen=True)
class RuleEdit:
    """An edit, whether or not it could be applied.

    Attributes:
      step: the iteration.
      task_key: whose pool.
      op: what was done.
      rule: number of the rule that came of it, or that was voted for or went.
      text: of that rule.
      parents: numbers of the rules that it was made of, of an EDIT or MERGE.
      target: number of the rule that the edit named; -1 if none or several.
      applied: False where the edit was dropped.
      source_tasks: digests of the tasks whose episodes led to it.
      source_episodes: names of those episodes.
      reflector: who proposed it.
      note: of a rule that was there at the start.

    Raises:
      InputError, UnknownNameError: a field that cannot be meant.
    """

    step: int
    task_key: str
    op: LedgerOp
    rule: int
    text: str
    parents: tuple[int, ...] = ()
    target: int = -1
    applied: bool = True
    source_tasks: tuple[str, ...] = ()
    source_episodes: tuple[str, ...] = ()
    reflector: str = ""
    note: str = ""

    def __post_init__(self) -> None:
        if self.op not in get_args(LedgerOp):
            raise UnknownNameError("op", self.op, get_args(LedgerOp))
        for name in ("text", "reflector", "note"):
            if not isinstance(getattr(self, name), str):
                raise InputError(f"{name}: expected a text, got {getattr(self, name)}")
        fixed = {
            "step": check_whole("step", self.step),
            "task_key": check_key(self.task_key),
            "rule": check_whole("rule", self.rule, least=-1),
            "target": check_whole("target", self.target, least=-1),
            "parents": tuple(check_whole("parents", rule) for rule in self.parents),
            "source_tasks": check_sources(self.source_tasks),
            "source_episodes": tuple(map(str, self.source_episodes)),
        }
        for name, value in fixed.items():
            object.__setattr__(self, name, value)


@dataclass(frozen=True)
class RuleScores:
    """The scores of a task key's active rules at the end of a step.

    Attributes:
      step: the iteration.
      task_key: whose pool.
      scores: by number of the rule.
    """

    step: int
    task_key: str
    scores: Mapping[int, float]

    def __post_init__(self) -> None:
        scores = {
            check_whole("rule", rule): check_score(score)
            for rule, score in self.scores.items()
        }
        object.__setattr__(self, "step", check_whole("step", self.step))
        object.__setattr__(self, "task_key", check_key(self.task_key))
        object.__setattr__(self, "scores", scores)


LedgerRow = RuleEdit | RuleScores


@dataclass(frozen=True)
class RuleHistory:
    """What became of one rule.

    Attributes:
      task_key: whose pool.
      rule: its number.
      text: of it.
      writings: the edits that made its text and those of the rules that it was made of,
        oldest first.
      votes: the UPVOTEs and DOWNVOTEs of all of them, oldest first.
      scores: step and score, where they were noted for it.
      ended: the PRUNE or RETIRE after its last writing, or the EDIT or MERGE that put
        another rule in its place; None while it is there.
    """

    task_key: str
    rule: int
    text: str
    writings: tuple[RuleEdit, ...]
    votes: tuple[RuleEdit, ...]
    scores: tuple[tuple[int, float], ...]
    ended: RuleEdit | None

    @property
    def sources(self) -> tuple[str, ...]:
        """Digests of the tasks that its text was learned from."""
        return _sources(self.writings)

    @property
    def voters(self) -> tuple[str, ...]:
        """Digests of the tasks that voted on it, or on what it was made of."""
        return _sources(self.votes)

    @property
    def episodes(self) -> tuple[str, ...]:
        """Names of the episodes that its text was learned from."""
        names = (name for edit in self.writings for name in edit.source_episodes)
        return tuple(dict.fromkeys(names))

    @property
    def note(self) -> str:
        """What a person noted of it, or of the last rule it was made of with a note."""
        return next((e.note for e in reversed(self.writings) if e.note), "")


@dataclass
class _Record:
    """Rows of one rule by their place in the ledger, so that parents' rows merge."""

    text: str = ""
    writings: dict[int, RuleEdit] = field(default_factory=dict)
    votes: dict[int, RuleEdit] = field(default_factory=dict)
    scores: list[tuple[int, float]] = field(default_factory=list)
    ended: RuleEdit | None = None


class RuleHistories:
    """Histories that grow row by row.

    Example:
      >>> found = RuleHistories()
      >>> found.add(RuleEdit(0, "put", "ADD", 0, "Heat it.", source_tasks=("a1",)))
      >>> found.add(RuleEdit(1, "put", "EDIT", 1, "Cool it.", parents=(0,)))
      >>> found["put", 1].sources, [edit.text for edit in found["put", 1].writings]
      (('a1',), ['Heat it.', 'Cool it.'])
    """

    def __init__(self) -> None:
        self._records: dict[tuple[str, int], _Record] = {}
        self._num_rows = 0

    def add(self, row: LedgerRow) -> None:
        """Tells the next row of the ledger; edits that were dropped change nothing."""
        self._num_rows += 1
        if isinstance(row, RuleScores):
            for rule, score in row.scores.items():
                self._record(row.task_key, rule).scores.append((row.step, score))
        elif row.applied and row.op in WRITES:
            self._write(row)
        elif row.applied:
            named = row.rule if row.rule >= 0 else row.target
            record = self._record(row.task_key, named)
            record.text = record.text or row.text
            if row.op in ENDS:
                record.ended = row
            else:
                record.votes[self._num_rows] = row

    def _write(self, row: RuleEdit) -> None:
        record = self._record(row.task_key, row.rule)
        record.text, record.ended = row.text, None
        for parent in row.parents or (row.target,):
            made_of = self._records.get((row.task_key, parent), _Record())
            record.writings |= made_of.writings
            record.votes |= made_of.votes
            if row.op in REPLACES and parent != row.rule:
                made_of.ended = row
        record.writings[self._num_rows] = row

    def _record(self, task_key: str, rule: int) -> _Record:
        return self._records.setdefault((task_key, rule), _Record())

    def __getitem__(self, name: tuple[str, int]) -> RuleHistory:
        if name not in self._records:
            raise InputError(
                f"rule: the ledger has none of number {name[1]} in {name[0]!r}"
            )
        record = self._records[name]
        return RuleHistory(
            *name,
            record.text,
            tuple(edit for _, edit in sorted(record.writings.items())),
            tuple(edit for _, edit in sorted(record.votes.items())),
            tuple(record.scores),
            record.ended,
        )

    def __contains__(self, name: object) -> bool:
        return name in self._records

    def __iter__(self):
        return iter(self._records)

    def __len__(self) -> int:
        return len(self._records)

    @property
    def sources(self) -> dict[tuple[str, int], tuple[str, ...]]:
        """By task key and number of a rule, digests of what it was learned from."""
        return {
            name: _sources(edit for _, edit in sorted(record.writings.items()))
            for name, record in self._records.items()
        }

    @property
    def notes(self) -> dict[tuple[str, int], str]:
        """By task key and number of a rule, what a person noted, where one did."""
        found = {name: self[name].note for name in self._records}
        return {name: note for name, note in found.items() if note}


def histories(rows: Iterable[LedgerRow]) -> RuleHistories:
    """The histories that the rows of a ledger tell.

    Args:
      rows: in their order, as `read_ledger` returns them.
    """
    found = RuleHistories()
    for row in rows:
        found.add(row)
    return found


def _sources(edits: Iterable[RuleEdit]) -> tuple[str, ...]:
    return tuple(dict.fromkeys(s for edit in edits for s in edit.source_tasks))
