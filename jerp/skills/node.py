"""One draft of a skill and what came of it, as a record."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from jerp.errors import InputError
from jerp.rules.text import plain_line
from jerp.typing import Outcome

__all__ = ["SkillNode", "node_from_row", "node_row"]

MAX_CHARS = 200
"""Of the key of a task, and of the name of a fault or a run."""

MOST_REWARD = float(np.finfo(np.float32).max)


@dataclass(frozen=True)
class SkillNode:
    """One draft and what came of it.

    Attributes:
      id: of the node, >= 0.
      parent: id of the node whose skill it revises; None for a first draft.
      task: key of the task, one line.
      phase: >= 0, in which it was drafted.
      skill: as `render_skill` writes it; None for a draft that did not parse.
      reasoning: of the draft, as it was written.
      faults: names of why there is no skill; none where there is one.
      outcomes: of its runs, see `Outcome`; none where there is no skill.
      reward: see `skill_reward`; None where nobody answered, or none was asked for.
      retained: whether it was kept to be revised.
      evidence: names of the runs of the parent that it was written from.
      executor_calls: >= 0, that its runs took.
      tokens: >= 0, of the draft.

    Raises:
      InputError: a field that cannot be meant, by its name.

    Example:
      >>> SkillNode(0, None, "move", 0, None)
      Traceback (most recent call last):
          ...
      jerp.errors.InputError: faults: expected why node 0 has no skill, got none
    """

    id: int
    parent: int | None
    task: str
    phase: int
    skill: str | None
    reasoning: str = ""
    faults: tuple[str, ...] = ()
    outcomes: tuple[Outcome, ...] = ()
    reward: float | None = None
    retained: bool = False
    evidence: tuple[str, ...] = ()
    executor_calls: int = 0
    tokens: int = 0

    def __post_init__(self) -> None:
        counts = ("id", "phase", "executor_calls", "tokens")
        fixed: dict[str, Any] = {n: check_whole(n, getattr(self, n)) for n in counts}
        if self.parent is not None:
            fixed["parent"] = check_whole("parent", self.parent)
        fixed["faults"] = _names("faults", self.faults)
        fixed["evidence"] = _names("evidence", self.evidence)
        fixed["outcomes"] = _outcomes(self.outcomes)
        fixed["retained"] = _flag("retained", self.retained)
        if self.reward is not None:
            fixed["reward"] = _reward(self.reward)
        for name, value in fixed.items():
            object.__setattr__(self, name, value)
        _check_texts(self)
        _check_agreement(self)

    @property
    def successes(self) -> int:
        """Runs that succeeded."""
        return self.outcomes.count(Outcome.SUCCESS)

    @property
    def answered(self) -> int:
        """Runs that somebody answered; all others count for nothing."""
        return len(self.outcomes) - self.outcomes.count(Outcome.INFRASTRUCTURE)

    @property
    def success(self) -> float | None:
        """Share of the answered runs that succeeded; None without any."""
        return self.successes / self.answered if self.answered else None


def node_row(node: SkillNode) -> dict[str, Any]:
    """A node as a mapping of the types that JSON has; what is as ever is left out.

    Args:
      node: any.

    Example:
      >>> node_row(SkillNode(0, None, "move", 0, "# A", outcomes=(0, 1)))
      {'id': 0, 'parent': None, 'task': 'move', 'phase': 0, 'skill': '# A', \
'outcomes': [0, 1]}
    """
    row: dict[str, Any] = {}
    for field in dataclasses.fields(node):
        value = getattr(node, field.name)
        if value == field.default:
            continue
        if field.name == "outcomes":
            value = list(map(int, value))
        row[field.name] = list(value) if isinstance(value, tuple) else value
    return row


def node_from_row(row: Mapping[str, Any]) -> SkillNode:
    """The node that `node_row` wrote.

    Args:
      row: from a file, for example.

    Raises:
      InputError: it is no mapping, lacks a field, has one too many, or one that cannot
        be meant.

    Example:
      >>> row = {"id": 0, "parent": None, "task": "move", "phase": 0, "skill": "# A"}
      >>> node_from_row(row).skill
      '# A'
    """
    if not isinstance(row, Mapping):
        raise InputError(f"row: expected a mapping, got {type(row).__name__}")
    fields = dataclasses.fields(SkillNode)
    for field in fields:
        if field.default is dataclasses.MISSING and field.name not in row:
            raise InputError(f"{field.name}: expected it in a row, got none")
    if unknown := set(row) - {field.name for field in fields}:
        raise InputError(f"row: expected fields of a node, got {min(unknown)!r} too")
    return SkillNode(**row)


def check_whole(name: str, value: Any) -> int:
    """A whole number from 0 on; raises `InputError` if it is none."""
    whole = isinstance(value, int | np.integer) and not isinstance(value, bool)
    if not whole or not 0 <= value < 2**31:
        raise InputError(f"{name}: expected a whole number >= 0, got {value!r:.80}")
    return int(value)


def _names(name: str, values: Any) -> tuple[str, ...]:
    if not isinstance(values, tuple | list):
        raise InputError(f"{name}: expected a tuple of names, got {values!r:.80}")
    for value in values:
        check_line(name, value)
    return tuple(values)


def check_line(name: str, value: Any) -> None:
    """Raises `InputError` unless a value is a line that may be a key or a name."""
    if not value or plain_line(name, value, max_chars=MAX_CHARS) != value:
        raise InputError(
            f"{name}: expected words with one blank between them, got {value!r:.80}"
        )


def _outcomes(values: Any) -> tuple[Outcome, ...]:
    if not isinstance(values, tuple | list):
        raise InputError(f"outcomes: expected a tuple, got {values!r:.80}")
    known = f"numbers of outcomes, 0 to {len(Outcome) - 1}"
    for value in values:
        if check_whole("outcomes", value) >= len(Outcome):
            raise InputError(f"outcomes: expected {known}, got {value!r}")
    return tuple(map(Outcome, values))


def _flag(name: str, value: Any) -> bool:
    if not isinstance(value, bool | np.bool_):
        raise InputError(f"{name}: expected a bool, got {value!r:.80}")
    return bool(value)


def _reward(value: Any) -> float:
    number = isinstance(value, int | float | np.number) and not isinstance(value, bool)
    if not number or not abs(value) <= MOST_REWARD:
        raise InputError(
            "reward: expected a finite number of float32, or None where there is none, "
            f"got {value!r:.80}"
        )
    return float(value)


def _check_texts(node: SkillNode) -> None:
    check_line("task", node.task)
    if not isinstance(node.reasoning, str):
        raise InputError(f"reasoning: expected a text, got {node.reasoning!r:.80}")
    if node.skill is not None and (not isinstance(node.skill, str) or not node.skill):
        raise InputError(f"skill: expected a text or None, got {node.skill!r:.80}")


def _check_agreement(node: SkillNode) -> None:
    if node.skill is None and not node.faults:
        raise InputError(f"faults: expected why node {node.id} has no skill, got none")
    if node.skill is not None and node.faults:
        raise InputError(
            f"faults: expected none of node {node.id}, which has a skill, got "
            f"{', '.join(node.faults)}"
        )
    if node.skill is None and (node.outcomes or node.retained):
        name = "outcomes" if node.outcomes else "retained"
        raise InputError(f"{name}: expected none of node {node.id} without a skill")
    if node.parent is None and node.evidence:
        raise InputError(
            f"evidence: expected none of node {node.id}, which revises nothing, got "
            f"{', '.join(node.evidence):.80}"
        )
