"""Reflection without a model: what successes do and failures do not, as a sentence.

A `RuleLanguage` has names for situations and for moves, and a rule is a pair of them:
"When you hold what must be hot, go to the microwave." What speaks for a rule is counted
over all trials and references (see `jerp.bridge.contrast`), so that the last episode
does not decide; where successes disagree among themselves nothing is said, and so
"look into a cabinet" is no rule, for things lie elsewhere in other instances.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from jerp.bridge.contrast import Contrast, contrast
from jerp.bridge.reflection import (
    MAX_OPERATIONS,
    Occasion,
    Operation,
    Reflection,
    ShownRule,
    judged,
    nothing_judged,
)
from jerp.envs.rule_language import RuleLanguage, sentence
from jerp.errors import ConfigError
from jerp.ops.checks import check_count
from jerp.rules.edits import EditOp

__all__ = ["ContrastReflector"]

Pair = tuple[int, int]
"""A situation and a move."""

Rules = dict[Pair, tuple[int, ...]]
"""Rule ids by what they say, best first."""


class _Found(NamedTuple):
    """An operation, and how many episodes speak for it."""

    operation: Operation
    evidence: float


class ContrastReflector:
    """Writes, keeps and corrects rules by what parts success from failure.

    A rule holds where a clear majority of successes left its situation with its move,
    and failures did less often. One that holds is added, or gets a vote; a rule with
    another move for that situation is edited, or voted down if one that holds is there
    already; so is one that failures follow and successes do not. Rules that say the
    same are merged. What the language cannot read is left alone. What is surest comes
    first; in a full pool, what makes room.

    A group is of one instance: where `min_tasks` is above 1 rules are written by the
    help of references of others alone. Without references, or in pools of single
    instances, such a reflector votes and merges, and writes nothing.

    Args:
      language: of the world.
      min_support: episodes: successes that left with the move, or, to vote a rule down,
        failures.
      min_share: of the successes that came there, the mean over tasks; over a half.
      min_margin: of the gain, between success and failure.
      min_z: of the gain in standard errors, see `contrast`: with 1.64 chance alone
        passes in at most 8% of cases if a move is as likely as not, else in 15%.
      min_tasks: instances most of whose successes left with the move, for a rule to be
        written: of a few alone it may say where something lay that day. 1 for pools of
        single instances, in which there is no other.
      max_operations: a reflection.
    """

    name = "contrast"

    def __init__(
        self,
        language: RuleLanguage,
        *,
        min_support: float = 2.0,
        min_share: float = 0.6,
        min_margin: float = 0.2,
        min_z: float = 1.64,
        min_tasks: int = 3,
        max_operations: int = MAX_OPERATIONS,
    ):
        check_count("min_tasks", min_tasks)
        check_count("max_operations", max_operations)
        if not 0.5 < min_share <= 1:
            raise ConfigError(
                f"min_share: expected in (0.5, 1], as two moves cannot both be what "
                f"most successes do, got {min_share}"
            )
        if not 0 < min_margin <= 1:
            raise ConfigError(f"min_margin: expected in (0, 1], got {min_margin}")
        self.language = language
        self.min_support, self.min_tasks = min_support, min_tasks
        self.min_share, self.min_margin = min_share, min_margin
        self.min_z = min_z
        self.max_operations = max_operations
        self._pairs = {
            _canonical(sentence(language, situation, move)): (situation, move)
            for situation in range(1, len(language.situations))
            for move in range(1, len(language.moves))
        }

    @property
    def needs_references(self) -> bool:
        """Whether occasions without references of other instances bring no rule."""
        return self.min_tasks > 1

    def reflect(self, occasions: Sequence[Occasion]) -> list[Reflection]:
        """See `jerp.bridge.reflection.Reflector`; the same answer every time."""
        return [self._reflect(occasion) for occasion in occasions]

    def _reflect(self, occasion: Occasion) -> Reflection:
        if not judged(occasion.trials):
            return nothing_judged(occasion)
        seen = contrast(
            occasion,
            num_situations=len(self.language.situations),
            num_moves=len(self.language.moves),
        )
        rules = self._read(occasion.rules)
        holds = self._holding(seen)
        general = {s: m for s, m in holds.items() if seen.tasks[s, m] >= self.min_tasks}
        found = [*self._merged(rules), *self._voted(seen, holds, general, rules)]
        found += self._written(seen, general, rules)
        # A new rule needs room, and in a full pool others make it first.
        last = {EditOp.ADD} if occasion.full else set()
        found.sort(key=lambda f: (f.operation.op in last, -f.evidence))
        return _first(found, self.max_operations)

    def _read(self, rules: Sequence[ShownRule]) -> Rules:
        """What the rules say, of those that the language can read."""
        found: dict[Pair, list[int]] = defaultdict(list)
        for rule in rules:
            pair = self._pairs.get(_canonical(rule.text))
            if pair is not None:
                found[pair].append(rule.rule_id)
        return {pair: tuple(ids) for pair, ids in found.items()}

    def _holding(self, seen: Contrast) -> dict[int, int]:
        """The move that holds, of the situations that have one."""
        holds = (seen.share >= self.min_share) & (seen.gain >= self.min_margin)
        holds &= (seen.support >= self.min_support) & (seen.z >= self.min_z)
        holds[:, 0] = False
        return {int(s): int(m) for s, m in np.argwhere(holds)}

    def _merged(self, rules: Rules) -> list[_Found]:
        return [
            _Found(Operation(EditOp.MERGE, ids, self._say(*pair)), np.inf)
            for pair, ids in sorted(rules.items())
            if len(ids) > 1
        ]

    def _voted(
        self,
        seen: Contrast,
        holds: dict[int, int],
        general: dict[int, int],
        rules: Rules,
    ) -> list[_Found]:
        """Votes for what holds, and against what loses, or is not what holds."""
        found = []
        for (situation, move), ids in sorted(rules.items()):
            cell = situation, move
            gained = float(seen.z[cell])
            if holds.get(situation) == move:
                found.append(_Found(Operation(EditOp.UPVOTE, ids[:1]), gained))
            elif self._loses(seen, cell) or (situation in general and gained <= 0):
                found.append(_Found(Operation(EditOp.DOWNVOTE, ids[:1]), -gained))
        return found

    def _loses(self, seen: Contrast, cell: Pair) -> bool:
        """Failures follow it, and most successes do not."""
        often = seen.failed[cell] >= self.min_support and seen.share[cell] < 0.5
        return bool(
            often
            and seen.gain[cell] <= -self.min_margin
            and seen.z[cell] <= -self.min_z
        )

    def _written(
        self, seen: Contrast, general: dict[int, int], rules: Rules
    ) -> list[_Found]:
        """What holds and is no rule: in place of one that loses, or added."""
        found = []
        for situation, move in sorted(general.items()):
            cell = situation, move
            if cell in rules:
                continue
            evidence = float(seen.z[cell])
            losing = [
                ids[0]
                for (where, other), ids in sorted(rules.items())
                if where == situation and seen.gain[where, other] <= 0
            ]
            text = self._say(*cell)
            operation = Operation(EditOp.ADD, (), text)
            if losing:
                operation = Operation(EditOp.EDIT, (losing[0],), text)
            found.append(_Found(operation, evidence))
        return found

    def _say(self, situation: int, move: int) -> str:
        return sentence(self.language, situation, move)


def _first(found: Sequence[_Found], most: int) -> Reflection:
    """The first operations, one a rule; an edit of a rule wins over a vote on it."""
    edited = {f.operation.targets for f in found if f.operation.op == EditOp.EDIT}
    operations: list[Operation] = []
    used: set[int] = set()
    for operation, _ in found:
        voted_down = operation.op == EditOp.DOWNVOTE and operation.targets in edited
        if not voted_down and used.isdisjoint(operation.targets):
            used |= {*operation.targets}
            operations.append(operation)
    left = len(operations[most:])
    rejected = Counter({"too_many": left} if left else {})
    return Reflection(tuple(operations[:most]), rejected)


def _canonical(text: str) -> str:
    """The same for texts that differ in case, spaces or the full stop alone."""
    return " ".join(text.casefold().split()).rstrip(" .")
