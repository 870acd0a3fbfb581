"""From what a reflector says to edits as arrays, and to what is said of them.

Texts become numbers of the book here, once. What a reflector may not say is left out
and counted by reason, whoever the reflector is: more operations than were asked for, a
merge of more rules than the arrays hold, a rule that no pool ever had, a text that no
rule may be, one that the policy cannot read, or one that was retired.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from jerp.bridge.reflection import Occasion, Operation, Reflection, Trial
from jerp.envs.rule_language import RuleLanguage, read_sentence
from jerp.rules.book import RuleBook
from jerp.rules.edits import EXPEL_ORDER, EditCounts, EditOp, RuleEdits
from jerp.rules.text import check_rule_text, rule_text_fault
from jerp.runs.jerp.occasions import Group
from jerp.storage.rule_ledger import RuleEdit
from jerp.training.joint import RuleConfig

__all__ = [
    "Edit",
    "Proposal",
    "edit_arrays",
    "edit_metrics",
    "ledger_rows",
    "proposed",
]

_NEW = (EditOp.ADD, EditOp.EDIT, EditOp.MERGE)
"""Operations with a text."""


class Edit(NamedTuple):
    """An operation whose text has a number.

    Attributes:
      group: of the batch.
      place: among the operations of the group.
      op: what is done.
      targets: rule ids.
      rule_id: of the new text, or of the rule that is voted on.
    """

    group: int
    place: int
    op: EditOp
    targets: tuple[int, ...]
    rule_id: int


@dataclass(frozen=True)
class Proposal:
    """All that was proposed in an iteration.

    Attributes:
      edits: in order.
      occasions: by group what was reflected on.
      rejected: by reason.
    """

    edits: tuple[Edit, ...]
    occasions: Mapping[int, Occasion]
    rejected: Mapping[str, int]


def proposed(
    groups: Sequence[Group],
    occasions: Sequence[Occasion],
    reflections: Sequence[Reflection],
    book: RuleBook,
    rules: RuleConfig,
    *,
    language: RuleLanguage | None = None,
    retired: Mapping[str, Collection[str]] | None = None,
) -> Proposal:
    """Reads reflections, and puts new texts into the book.

    Args:
      groups: that were reflected on.
      occasions: of each.
      reflections: of each.
      book: is added to.
      rules: bounds.
      language: that new texts have to be in; None for any words.
      retired: by task key, texts that no edit may bring back.
    """
    edits: list[Edit] = []
    known = len(book)
    rejected: Counter[str] = Counter()
    for group, occasion, reflection in zip(groups, occasions, reflections, strict=True):
        rejected.update(reflection.rejected)
        place, gone = 0, (retired or {}).get(occasion.task_key, ())
        for operation in reflection.operations:
            reason = _fault(operation, place, rules, known)
            if reason is None and operation.op in _NEW:
                reason = _text_fault(operation.text, language, gone)
            if reason:
                rejected[reason] += 1
                continue
            edits.append(_edit(group.number, place, operation, book))
            place += 1
    by_group = {g.number: o for g, o in zip(groups, occasions, strict=True)}
    return Proposal(tuple(edits), by_group, dict(rejected))


def edit_arrays(
    edits: Sequence[Edit], book: RuleBook, rules: RuleConfig, *, num_groups: int
) -> RuleEdits:
    """Leaves `[G, E, ...]` for `revise`; what is not there is not valid."""
    shape = (num_groups, rules.max_ops)
    op, target, rule_id, tokens = (np.zeros(shape, np.int32) for _ in range(4))
    members = np.full((*shape, rules.max_merged), -1, np.int32)
    valid = np.zeros(shape, bool)
    for edit in edits:
        at = edit.group, edit.place
        valid[at], op[at], rule_id[at] = True, edit.op, edit.rule_id
        tokens[at] = book.num_tokens(edit.rule_id) if edit.op in _NEW else 0
        if edit.op == EditOp.MERGE:
            members[at][: len(edit.targets)] = edit.targets
        elif edit.targets:
            target[at] = edit.targets[0]
    arrays: Any = (op, target, rule_id, tokens, members, valid)
    return RuleEdits(*arrays)


def edit_metrics(proposal: Proposal, counts: EditCounts) -> dict[str, float]:
    """What became of an iteration's edits.

    Args:
      proposal: of the iteration.
      counts: leaves `[G, ...]` on the host.

    Returns:
      `applied_<op>`, as the ledger has them, `dropped_<op>`, `rejected`,
      `rejected_<reason>`, and `edited_share`, groups reflected on whose pool changed.
    """
    found = {}
    for name, count in (("applied", counts.applied), ("dropped", counts.dropped)):
        for op in EditOp:
            found[f"{name}_{op.name.lower()}"] = float(np.sum(count[:, op]))
    upvoted = float(np.sum(counts.upvoted))
    found["applied_edit"] -= upvoted
    found["applied_upvote"] += upvoted
    groups = max(len(proposal.occasions), 1)
    edited = np.any(np.asarray(counts.took_effect), axis=1)
    found["edited_share"] = float(np.sum(edited)) / groups
    found["rejected"] = float(sum(proposal.rejected.values()))
    for reason, number in sorted(proposal.rejected.items()):
        found[f"rejected_{reason}"] = float(number)
    return found


def ledger_rows(
    proposal: Proposal,
    counts: EditCounts,
    book: RuleBook,
    *,
    step: int,
    reflector: str,
    order: str,
) -> list[RuleEdit]:
    """Every edit that was proposed, in the order in which they were applied.

    An EDIT into the text of a rule of the pool is the UPVOTE of that rule that it was:
    its task has not written the text.

    Args:
      proposal: of the iteration.
      counts: leaves `[G, ...]` on the host.
      book: of the texts.
      step: the iteration.
      reflector: who proposed them.
      order: of `RuleConfig`.
    """

    def turn(edit: Edit) -> tuple[int, int]:
        return edit.group, EXPEL_ORDER.index(edit.op) if order == "expel" else 0

    return [
        _row(
            *(_as_done(edit, counts), proposal.occasions[edit.group]),
            text=book[edit.rule_id],
            step=step,
            applied=bool(counts.took_effect[edit.group, edit.place]),
            reflector=reflector,
        )
        for edit in sorted(proposal.edits, key=turn)
    ]


def _as_done(edit: Edit, counts: EditCounts) -> Edit:
    if not counts.upvoted[edit.group, edit.place]:
        return edit
    return edit._replace(op=EditOp.UPVOTE, targets=(edit.rule_id,))


def _fault(
    operation: Operation, place: int, rules: RuleConfig, known: int
) -> str | None:
    """Why an operation cannot be used; `known` rules were there before."""
    needed = {EditOp.ADD: (0, 0), EditOp.MERGE: (2, rules.max_merged)}
    least, most = needed.get(operation.op, (1, 1))
    if place >= rules.max_ops:
        return "too_many"
    if not least <= len(operation.targets) <= most:
        return "malformed" if len(operation.targets) < least else "too_many"
    if not all(0 <= target < known for target in operation.targets):
        return "unknown_rule"
    return None


def _text_fault(
    text: str, language: RuleLanguage | None, retired: Collection[str]
) -> str | None:
    """Why a new text cannot be a rule."""
    if not isinstance(text, str):
        return "text_type"
    if fault := rule_text_fault(text):
        return f"text_{fault}"
    text = check_rule_text(text)
    if language is not None and read_sentence(language, text) is None:
        return "unreadable"
    return "retired" if text in retired else None


def _edit(group: int, place: int, operation: Operation, book: RuleBook) -> Edit:
    op, targets = EditOp(operation.op), operation.targets
    rule_id = book.intern(operation.text) if op in _NEW else targets[0]
    return Edit(group, place, op, tuple(map(int, targets)), int(rule_id))


def _row(edit: Edit, occasion: Occasion, **fields: Any) -> RuleEdit:
    """References too are what an edit was made from: their tasks may leak."""
    trials: list[Trial] = [*occasion.trials, *occasion.references]
    replaced = edit.op in (EditOp.EDIT, EditOp.MERGE)
    return RuleEdit(
        task_key=occasion.task_key,
        op=edit.op.name,
        rule=edit.rule_id,
        parents=edit.targets if replaced else (),
        target=edit.targets[0] if len(edit.targets) == 1 else -1,
        source_tasks=tuple(dict.fromkeys(t.task_digest for t in trials)),
        source_episodes=tuple(t.episode for t in trials),
        **fields,
    )
