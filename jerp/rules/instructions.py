"""Whether a rule is one instruction that holds for more than one instance.

An instruction is a sentence that begins with a verb, or with a condition and a comma
before the verb: "When it is cold, heat it." It names kinds of things only. Nothing here
judges whether it is right.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Sequence
from typing import Literal

__all__ = ["VERBS", "InstructionFault", "imperative_fault", "instruction_fault"]

InstructionFault = Literal["wordy", "sentences", "instance", "condition", "statement"]
"""Why a rule is no instruction; `imperative_fault` says it in words."""

_VERBS = """
add answer apply approach ask avoid back begin break bring buy call carry check
choose clean click close collect combine compare compute confirm consider
continue cook cool copy count cut deliver do drop dry ensure enter examine
explore fetch fill filter find finish focus follow get give go grab handle head
heat hold identify ignore insert inspect keep leave let lift light list locate
look make match measure move note open pack pass perform pick place plan plug
pour prefer press prioritise prioritize proceed pull push put reach read refine
remember remove repeat report rest retrieve return rinse run save scan search
see select send set skip sort start stay stop store submit switch take test
throw toggle treat try turn unplug use verify visit wait walk warm wash watch
write
"""
VERBS = frozenset(_VERBS.split())
"""First words that make a sentence an instruction, in lower case."""

_CONDITIONS = (
    *("when", "if", "before", "after", "once", "while", "until", "unless"),
    *("to", "for"),
)
_ADVERBS = ("always", "never", "first", "then", "only")


def imperative_fault(
    text: str,
    *,
    max_words: int = 25,
    instance_patterns: Sequence[str] = (),
    verbs: Collection[str] = VERBS,
) -> str | None:
    """Why a rule is not one instruction that holds for more than one instance, if so.

    Args:
      text: of a rule, as `check_rule_text` returns it.
      max_words: parts between blanks.
      instance_patterns: regular expressions of what names a single instance in a world.
        Digits always do.
      verbs: what the instruction may begin with, in lower case.

    Returns:
      A reason in words, None if there is no fault.

    Example:
      >>> imperative_fault("When it is cold, heat it.")
      >>> imperative_fault("The mug is often cold.")
      "expected an instruction, got one that begins with 'The'"
    """
    found = _no_instruction(text, max_words, instance_patterns, verbs)
    return None if found is None else found[1]


def instruction_fault(text: str) -> InstructionFault | None:
    """The first reason why a rule is no instruction, to be counted; None if it is one.

    Args:
      text: as of `imperative_fault`, with its defaults.

    Example:
      >>> instruction_fault("The mug is often cold."), instruction_fault("Heat it.")
      ('statement', None)
    """
    found = _no_instruction(text, 25, (), VERBS)
    return None if found is None else found[0]


def _no_instruction(
    text: str, max_words: int, patterns: Sequence[str], verbs: Collection[str]
) -> tuple[InstructionFault, str] | None:
    words = text.split()
    if len(words) > max_words:
        return "wordy", f"expected at most {max_words} words, got {len(words)}"
    stops = sum(map(text.count, ".!?;"))
    if stops != 1 or not text.endswith("."):
        return "sentences", f"expected one sentence, got {stops} ends of one"
    for pattern in (r"\d+", *patterns):
        if found := re.search(pattern, text):
            return "instance", f"expected no single instance, got {found.group()!r}"
    if words[0].rstrip(",").lower() in _CONDITIONS:
        condition, comma, instruction = text.partition(",")
        if not comma or len(condition.split()) < 2:
            return "condition", f"expected a comma after a condition, got {text!r}"
        words = instruction.split()
    first = _first_of(words)
    if first.lower() not in verbs:
        return (
            "statement",
            f"expected an instruction, got one that begins with {first!r}",
        )
    return None


def _first_of(words: Sequence[str]) -> str:
    """The first word that says what to do, or not to do."""
    while len(words) > 1 and words[0].lower() in _ADVERBS:
        words = words[1:]
    if words and words[0].lower() in ("don't", "don’t"):
        words = words[1:]
    elif [word.lower() for word in words[:2]] == ["do", "not"]:
        words = words[2:]
    return words[0].strip(",.") if words else ""
