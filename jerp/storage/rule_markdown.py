"""Pools of rules as Markdown, the form that people read and edit.

A heading for each task key, an item for each rule, and below it what is known of it:

    # jerp rules, version 1

    ## put hot

    - **3** When it is cold, go to the microwave.
      - born 10, uses 5, wins 3
      - learned from 0f3a91c2d4e5b687 77ab01c2d4e5b687
      - note: seen by hand

Of a rule only the first line has to be there. Lines that are blank, or a comment
between `<!--` and `-->`, mean nothing. What a text has of Markdown's signs is quoted.
"""

from __future__ import annotations

import re
from typing import Any

from jerp.errors import InputError
from jerp.rules.text import quoted, unquoted
from jerp.storage.rule_documents import PoolDocument, check_new, check_version
from jerp.storage.rule_fields import PoolRule, check_key

__all__ = ["pool_from_markdown", "pool_to_markdown"]

_HEAD = re.compile(r"# jerp rules, version (\d{1,9})")
_KEY = re.compile(r"##(?!#)\s*(.*)")
_RULE = re.compile(r"[-*] \*\*([^*]*)\*\*\s*(.*)")
_NUMBER = re.compile(r"[-+]?(\d+\.?\d*|\.\d+)([eE][-+]?\d+)?|nan|[-+]?inf")
_COUNTS = re.compile(r"born (\d{1,10}), uses (\d{1,10}), wins (\d{1,10})")
_SOURCES = re.compile(r"learned from (.+)")
_NOTE = re.compile(r"note: (.*)")
_COMMENT = re.compile(r"<!--.*-->")
_EXPECTED = (
    "expected '## TASK KEY', '- **SCORE** Text of a rule.' or, below a rule and "
    "indented, '- born N, uses N, wins N', '- learned from DIGEST DIGEST' or "
    "'- note: TEXT'"
)


def pool_to_markdown(document: PoolDocument) -> str:
    """The document as Markdown.

    Args:
      document: any.

    Example:
      >>> rule = PoolRule("Heat it.", 2, born=1, sources=("a1",))
      >>> print(pool_to_markdown(PoolDocument({"put": (rule,)})), end="")
      # jerp rules, version 1
      <BLANKLINE>
      ## put
      <BLANKLINE>
      - **2** Heat it.
        - born 1, uses 0, wins 0
        - learned from a1
    """
    lines = [f"# jerp rules, version {document.version}"]
    for key, rules in document.pools.items():
        lines += ["", f"## {quoted(key)}", ""]
        for rule in rules:
            lines += _lines_of(rule)
    return "\n".join(lines).rstrip("\n") + "\n"


def pool_from_markdown(text: str) -> PoolDocument:
    """The document that a Markdown text holds.

    Args:
      text: as `pool_to_markdown` writes it, or a person.

    Raises:
      InputError: with the line, what was expected and what came.
      StorageError: another version.
    """
    reader = _Reader()
    for number, line in enumerate(text.split("\n"), start=1):
        try:
            reader.take(line.rstrip())
        except InputError as error:
            raise InputError(f"line {number}: {error}") from error
    return reader.document()


def _lines_of(rule: PoolRule) -> list[str]:
    score = f"{rule.score:.0f}" if rule.score.is_integer() else f"{rule.score!r}"
    lines = [f"- **{score}** {quoted(rule.text)}"]
    lines.append(f"  - born {rule.born}, uses {rule.uses}, wins {rule.wins}")
    if rule.sources:
        lines.append(f"  - learned from {' '.join(rule.sources)}")
    if rule.note:
        lines.append(f"  - note: {quoted(rule.note)}")
    return lines


class _Reader:
    """What was read so far. All is checked in its own line, so that errors name it."""

    def __init__(self) -> None:
        self._has_head = False
        self._pools: dict[str, list[PoolRule]] = {}
        self._texts: set[str] = set()
        self._key: str | None = None
        self._fields: dict[str, Any] = {}

    def take(self, line: str) -> None:
        """Reads the next line."""
        if not line or _COMMENT.fullmatch(line.strip()):
            return
        if not self._has_head:
            head = _HEAD.fullmatch(line)
            if not head:
                raise InputError(
                    f"expected '# jerp rules, version 1' first, got {_cut(line)}"
                )
            check_version(int(head[1]))
            self._has_head = True
        elif line[0].isspace():
            self._detail(line.strip())
        elif match := _KEY.fullmatch(line):
            self._begin_key(match[1])
        elif match := _RULE.fullmatch(line):
            self._begin_rule(match[1], match[2])
        else:
            raise InputError(f"{_EXPECTED}, got {_cut(line)}")

    def document(self) -> PoolDocument:
        """What all lines say."""
        if not self._has_head:
            raise InputError("line 1: expected '# jerp rules, version 1', got nothing")
        self._end_rule()
        return PoolDocument(self._pools)

    def _begin_key(self, written: str) -> None:
        self._end_rule()
        key = check_key(unquoted(written))
        if key in self._pools:
            raise InputError(f"task key: expected {key!r} once, got it again")
        self._key, self._pools[key], self._texts = key, [], set()

    def _begin_rule(self, score: str, text: str) -> None:
        self._end_rule()
        if self._key is None:
            raise InputError("expected '## TASK KEY' before a rule, got a rule")
        if not _NUMBER.fullmatch(score):
            raise InputError(f"score: expected a number, got {score!r}")
        self._fields = {"score": float(score), "text": unquoted(text)}
        check_new(PoolRule(**self._fields).text, self._texts, self._key)

    def _end_rule(self) -> None:
        if self._fields and self._key is not None:
            self._pools[self._key].append(PoolRule(**self._fields))
            self._fields = {}

    def _detail(self, line: str) -> None:
        found: dict[str, Any] = {}
        detail = line[2:].strip() if line[:2] in ("- ", "* ") else ""
        if match := _COUNTS.fullmatch(detail):
            names = ("born", "uses", "wins")
            found.update(zip(names, map(int, match.groups()), strict=True))
        elif match := _SOURCES.fullmatch(detail):
            found["sources"] = tuple(re.split(r"[,\s]+", match[1].strip(", ")))
        elif match := _NOTE.fullmatch(detail):
            found["note"] = unquoted(match[1])
        else:
            raise InputError(f"{_EXPECTED}, got {_cut(line)}")
        if not self._fields:
            raise InputError(f"expected a rule before {_cut(line)}, got none")
        if found.keys() & self._fields.keys():
            raise InputError(f"expected one such line for a rule, got {_cut(line)} too")
        PoolRule("Text.", 0, **found)
        self._fields |= found


def _cut(line: str) -> str:
    return repr(line if len(line) <= 60 else f"{line[:57]}...")
