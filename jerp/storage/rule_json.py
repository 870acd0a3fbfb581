"""Pools of rules as JSON, the form that programs keep."""

from __future__ import annotations

import dataclasses
import difflib
import json
from collections.abc import Collection
from typing import Any

from jerp.errors import InputError, JerpError, UnknownNameError
from jerp.storage.located_json import Place, read_located
from jerp.storage.rule_documents import PoolDocument, check_new, check_version
from jerp.storage.rule_fields import PoolRule, check_key

__all__ = ["pool_from_json", "pool_to_json"]

FORMAT = "jerp rules"
FIELDS = tuple(field.name for field in dataclasses.fields(PoolRule))
NEEDED = FIELDS[:2]


def pool_to_json(document: PoolDocument) -> str:
    """The document as JSON, always in the same form; see docs/rules.md.

    Args:
      document: any.

    Example:
      >>> print(pool_to_json(PoolDocument({"put": (PoolRule("Heat it.", 2),)})), end="")
      {
       "format": "jerp rules",
       "version": 1,
       "pools": {
        "put": [
         {
          "text": "Heat it.",
          "score": 2.0,
          "born": 0,
          "uses": 0,
          "wins": 0,
          "sources": [],
          "note": ""
         }
        ]
       }
      }
    """
    fields = {
        "format": FORMAT,
        "version": document.version,
        "pools": {
            key: [dataclasses.asdict(rule) for rule in rules]
            for key, rules in document.pools.items()
        },
    }
    return json.dumps(fields, indent=1, ensure_ascii=False) + "\n"


def pool_from_json(text: str) -> PoolDocument:
    """The document that a JSON text holds.

    Args:
      text: see docs/rules.md.

    Raises:
      InputError: with the line, what was expected and what came: another structure, a
        field that is unknown, missing, there twice or cannot be meant, a text twice.
      StorageError: another version.
    """
    content, lines = read_located(text)
    fields = _object(content, lines, (), ("format", "version", "pools"))
    if fields["format"] != FORMAT:
        raise InputError(
            f"line {lines['format',]}: format: expected {FORMAT!r}, got "
            f"{fields['format']!r}"
        )
    check_version(fields["version"])
    if not isinstance(fields["pools"], dict):
        raise InputError(f"line {lines['pools',]}: pools: expected an object")
    pools: dict[str, list[PoolRule]] = {}
    for name, found in fields["pools"].items():
        place: Place = ("pools", name)
        try:
            key = check_key(name)
            if key in pools:
                raise InputError(f"task key: expected {key!r} once, got it again")
        except InputError as error:
            raise InputError(f"line {lines[place]}: {error}") from error
        if not isinstance(found, list):
            raise InputError(f"line {lines[place]}: expected a list of rules")
        texts: set[str] = set()
        pools[key] = [
            _rule(rule, lines, (*place, index), texts, key)
            for index, rule in enumerate(found)
        ]
    return PoolDocument(pools)


def _rule(
    content: Any, lines: dict[Place, int], place: Place, texts: set[str], key: str
) -> PoolRule:
    which = f"(rule {int(place[-1]) + 1} of {key!r})"
    try:
        fields = _object(content, lines, place, NEEDED, FIELDS)
    except InputError as error:
        raise InputError(f"{error} {which}") from error.__cause__
    try:
        rule = PoolRule(**fields)
        check_new(rule.text, texts, key)
    except InputError as error:
        named = (*place, str(error).partition(":")[0])
        line = lines.get(named, lines[place])
        raise InputError(f"line {line}: {error} {which}") from error
    return rule


def _object(
    content: Any,
    lines: dict[Place, int],
    place: Place,
    needed: Collection[str],
    known: Collection[str] = (),
) -> dict[str, Any]:
    """The fields of an object that has the needed ones and no unknown one."""
    if not isinstance(content, dict):
        raise InputError(
            f"line {lines[place]}: expected an object with {', '.join(needed)}, got "
            f"{json.dumps(content)[:60]}"
        )
    for name in content:
        if name not in (known or needed):
            line = lines[(*place, name)]
            if not difflib.get_close_matches(name, known or needed):
                raise InputError(
                    f"line {line}: expected the fields "
                    f"{', '.join(known or needed)} and no others, got {name!r}"
                )
            error: JerpError = UnknownNameError("field", name, known or needed)
            raise InputError(f"line {line}: {error}") from error
    for name in needed:
        if name not in content:
            raise InputError(
                f"line {lines[place]}: expected the field {name!r}, got "
                f"{', '.join(content) or 'none'}"
            )
    return content
