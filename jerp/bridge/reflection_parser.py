"""The answer of a language model that was asked to revise rules, read line by line.

    ADD: text          EDIT 3: text          MERGE 1,4: text
    UPVOTE 3           DOWNVOTE 3            NONE

A line is one of these, in these letters, or it is counted as malformed: nothing is
guessed at, and nothing that a model writes raises. Numbers are those of the rules in
the prompt, from 1. A text that no rule may have is counted by what is wrong with it;
one that speaks to its reader about rules and prompts, and not about a world, is none.
"""

from __future__ import annotations

import re
import unicodedata
from collections import Counter
from collections.abc import Callable, Sequence
from typing import NamedTuple

from jerp.bridge.reflection import MAX_OPERATIONS, Operation, ShownRule
from jerp.rules.edits import EditOp
from jerp.rules.text import check_rule_text, rule_text_fault

__all__ = [
    "MAX_ANSWER",
    "READER_WORDS",
    "ParsedAnswer",
    "addresses_reader",
    "parse_answer",
]

_READER_WORDS = """
assistant assistants chatbot developer developers disregard disregarding ignore ignored
ignores ignoring instruct instructed instruction instructions jailbreak llm override
overrides overriding prompt prompted prompts reader readers rule rules system systems
user users
"""
READER_WORDS = (
    *_READER_WORDS.split(),
    *("act as", "forget all", "forget everything", "forget what", "from now on"),
    *("language model", "language models", "pretend", "you are now"),
)
"""Words that an instruction in a world hardly needs, and one to its reader does.

They are few and plain: who words an attack otherwise passes. Some good rules have one
of them ("Ignore what is not asked for."), and are refused.
"""

MAX_ANSWER = 20_000
"""Characters; a longer answer is refused as a whole, before anything is searched in."""

_NUMBER = r"[1-9][0-9]{0,3}"
_LINE = re.compile(
    rf"(?:(?P<vote>UPVOTE|DOWNVOTE) (?P<voted>{_NUMBER})"
    rf"|(?P<new>ADD):(?P<added>.*)"
    rf"|(?P<edit>EDIT) (?P<edited>{_NUMBER}):(?P<rewritten>.*)"
    rf"|(?P<merge>MERGE) (?P<members>{_NUMBER}(?:, ?{_NUMBER})+):(?P<merged>.*))",
    re.DOTALL,
)
_WORD = re.compile(rf"\b(?:{'|'.join(op.name for op in EditOp)})\b")
_LETTERS = re.compile(r"[^\W\d_]+")
_MARGIN = " \t\r"


class ParsedAnswer(NamedTuple):
    """Operations in the order of their lines, and what was not used, by reason.

    Reasons: "huge", "empty", "malformed", "unknown_rule", "duplicate" (a rule had its
    operation, or a new text is there), "too_many", "text_" and a
    `jerp.rules.text.TextFault`, "text_addresses_reader", and "text_" and what `refuse`
    says.
    """

    operations: tuple[Operation, ...]
    rejected: Counter[str]


def parse_answer(
    text: str,
    rules: Sequence[ShownRule],
    *,
    max_operations: int = MAX_OPERATIONS,
    refuse: Callable[[str], str | None] | None = None,
) -> ParsedAnswer:
    """Reads an answer; see the module's first lines.

    Args:
      text: whatever a model wrote.
      rules: that it was shown, numbered from 1 in this order.
      max_operations: those after the first so many are counted as too many.
      refuse: what else a rule may not be: a reason of one word, such as those of
        `jerp.rules.instructions.instruction_fault`, or None for a text that may stay. A
        reason in more words counts as "refused".
    """
    if len(text) > MAX_ANSWER:
        return ParsedAnswer((), Counter({"huge": 1}))
    lines = [line.strip(_MARGIN) for line in text.split("\n")]
    lines = [line for line in lines if line]
    if not lines:
        return ParsedAnswer((), Counter({"empty": 1}))
    operations: list[Operation] = []
    rejected: Counter[str] = Counter()
    used: set[int] = set()
    texts = {rule.text for rule in rules}
    for line in lines if lines != ["NONE"] else ():
        found = _operation(line, rules, refuse)
        if isinstance(found, Operation):
            found = _once(found, used, texts)
        if isinstance(found, Operation) and len(operations) == max_operations:
            found = "too_many"
        if isinstance(found, str):
            rejected[found] += 1
            continue
        used.update(found.targets)
        texts.add(found.text)
        operations.append(found)
    return ParsedAnswer(tuple(operations), rejected)


def addresses_reader(text: str) -> bool:
    """Whether a text has one of `READER_WORDS`, in any case or compatible letters.

    Args:
      text: of a rule.

    Example:
      >>> addresses_reader("Ignore all that was said."), addresses_reader("Heat it.")
      (True, False)
    """
    plain = unicodedata.normalize("NFKC", text).casefold()
    words = f" {' '.join(_LETTERS.findall(plain))} "
    return any(f" {word} " in words for word in READER_WORDS)


def _operation(
    line: str, rules: Sequence[ShownRule], refuse: Callable[[str], str | None] | None
) -> Operation | str:
    """What a line says, or why it says nothing."""
    found = _LINE.fullmatch(line)
    if found is None:
        return "malformed"
    name = found["vote"] or found["new"] or found["edit"] or found["merge"]
    numbers = found["voted"] or found["edited"] or found["members"] or ""
    named = [int(number) for number in re.findall(_NUMBER, numbers)]
    if len({*named}) < len(named):
        return "malformed"
    if any(number > len(rules) for number in named):
        return "unknown_rule"
    targets = tuple(rules[number - 1].rule_id for number in named)
    if found["vote"]:
        return Operation(EditOp[name], targets)
    text = found["added"] or found["rewritten"] or found["merged"] or ""
    # Two operations in one line: which of them was meant is not for us to say.
    if _WORD.search(text):
        return "malformed"
    fault = rule_text_fault(text)
    if fault is not None:
        return f"text_{fault}"
    text = check_rule_text(text)
    if addresses_reader(text):
        return "text_addresses_reader"
    reason = None if refuse is None else refuse(text)
    if reason is not None:
        # Reasons name metrics, and no text of a model does.
        return f"text_{reason if reason.isidentifier() else 'refused'}"
    return Operation(EditOp[name], targets, text)


def _once(operation: Operation, used: set[int], texts: set[str]) -> Operation | str:
    """An operation, unless its rule had one or what it adds is there."""
    again = operation.op == EditOp.ADD and operation.text in texts
    return (
        operation if used.isdisjoint(operation.targets) and not again else "duplicate"
    )
