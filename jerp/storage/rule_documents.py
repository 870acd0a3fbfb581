"""Pools of rules as documents: for files, for people, and for one name of a pool.

A document holds, by task key, texts with what is known of them, best first; a
`RulePool` holds the same as arrays, with ids in place of texts. A value is refused when
it is made, whoever made it, so a document that exists can be opened. Its hash stands
for the pool that a policy knows: what its prompts hold depends on nothing else.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

import jax.numpy as jnp
import numpy as np

from jerp.errors import InputError, StorageError
from jerp.rules.book import RuleBook, count_words
from jerp.rules.pool import RulePool, check_pool, init_pool
from jerp.storage.rule_fields import PoolRule, check_key

__all__ = [
    "POOL_VERSION",
    "PoolDocument",
    "PoolRule",
    "check_capacity",
    "open_document",
    "pool_document",
    "pool_hash",
]

POOL_VERSION = 1


@dataclass(frozen=True)
class PoolDocument:
    """The pools of all task keys.

    Attributes:
      pools: by task key the rules, best first and of equal scores the older; the order
        in which equals were given decides between them, as slots do in a `RulePool`.
      version: of the format.

    Raises:
      InputError: a key that is no plain line, or a text that a key has twice.
      StorageError: another version.
    """

    pools: Mapping[str, Sequence[PoolRule]]
    version: int = POOL_VERSION

    def __post_init__(self) -> None:
        check_version(self.version)
        pools: dict[str, tuple[PoolRule, ...]] = {}
        for key, rules in self.pools.items():
            if check_key(key) != key:
                raise InputError(
                    f"task key: expected one blank between words and none around them, "
                    f"got {key!r}"
                )
            texts: set[str] = set()
            for rule in rules:
                check_new(rule.text, texts, key)
            pools[key] = tuple(sorted(rules, key=lambda rule: (-rule.score, rule.born)))
        object.__setattr__(self, "pools", pools)

    @property
    def task_keys(self) -> tuple[str, ...]:
        """The keys in the order of the pool's rows."""
        return tuple(self.pools)


def pool_hash(document: PoolDocument) -> str:
    """A name for what a policy knows of a pool: keys, texts, scores, births, order.

    How the document is written, the order of the keys, counts, sources and notes do not
    change it.

    Args:
      document: any.

    Returns:
      "sha256:" and 64 hex digits.

    Example:
      >>> one = PoolDocument({"put": (PoolRule("Heat it.", 2),)})
      >>> two = PoolDocument({"put": (PoolRule(" Heat  it. ", 2.0, note="hot"),)})
      >>> pool_hash(one) == pool_hash(two)
      True
    """
    content = [
        [key, [[rule.text, rule.score, rule.born] for rule in rules]]
        for key, rules in sorted(document.pools.items())
    ]
    line = json.dumps(content, separators=(",", ":"), allow_nan=False)
    return f"sha256:{hashlib.sha256(line.encode()).hexdigest()}"


def pool_document(
    pool: RulePool,
    book: RuleBook,
    task_keys: Sequence[str],
    sources: Mapping[tuple[str, int], Sequence[str]] | None = None,
    notes: Mapping[tuple[str, int], str] | None = None,
) -> PoolDocument:
    """A pool's arrays as a document.

    Args:
      pool: `[N, C]`.
      book: that its ids are of.
      task_keys: N names, in the order of the rows.
      sources: by task key and rule id digests of tasks, as `RuleLedger.sources` has
        them; a rule that is not there has none.
      notes: by task key and rule id.

    Raises:
      InputError: a score that is no number, another number of keys, or an id that the
        book lacks.

    Example:
      >>> pool, book, keys = open_document(
      ...     PoolDocument({"put": (PoolRule("Heat it.", 2),)}), 3
      ... )
      >>> pool_document(pool, book, keys).pools["put"][0].text
      'Heat it.'
    """
    check_pool(pool)
    columns = (pool.rule_id, pool.score, pool.born, pool.uses, pool.wins)
    rule_id, score, born, uses, wins = map(np.asarray, columns)
    active = np.asarray(pool.active)
    if len({*task_keys}) != len(active) or len(task_keys) != len(active):
        raise InputError(
            f"task_keys: expected {len(active)} names, one a row and none twice, got "
            f"{len(task_keys)}: {', '.join(task_keys)[:80]}"
        )
    pools: dict[str, list[PoolRule]] = {}
    for row, key in enumerate(task_keys):
        pools[key] = []
        for slot in map(int, np.flatnonzero(active[row])):
            name = (key, int(rule_id[row, slot]))
            counts = [int(x[row, slot]) for x in (born, uses, wins)]
            learned = tuple((sources or {}).get(name, ()))
            rule = PoolRule(
                book[name[1]],
                float(score[row, slot]),
                *counts,
                sources=learned,
                note=(notes or {}).get(name, ""),
            )
            pools[key].append(rule)
    return PoolDocument(pools)


def open_document(
    document: PoolDocument,
    capacity: int,
    *,
    task_keys: Sequence[str] | None = None,
    book: RuleBook | None = None,
    count_tokens: Callable[[str], int] = count_words,
) -> tuple[RulePool, RuleBook, tuple[str, ...]]:
    """A document as arrays, with the book of its texts and the names of the rows.

    Args:
      document: any.
      capacity: C, slots of each task key.
      task_keys: the rows in their order; one that the document lacks has no rules. None
        takes the document's keys.
      book: an earlier one, whose ids stay; it is added to. None begins a new one.
      count_tokens: of a new book, how long a text is.

    Raises:
      InputError: a key has more rules than `capacity`, or is not among `task_keys`.

    Example:
      >>> document = PoolDocument({"put": (PoolRule("Heat it.", 2),), "look": ()})
      >>> pool, book, keys = open_document(document, 3)
      >>> pool.rule_id.tolist(), book.texts, keys
      ([[0, -1, -1], [-1, -1, -1]], ('Heat it.',), ('put', 'look'))
    """
    keys = document.task_keys if task_keys is None else tuple(task_keys)
    pool = init_pool(len(keys), capacity)
    check_capacity(document, capacity)
    for key in document.task_keys:
        if key not in keys:
            raise InputError(
                f"document: expected rules of {', '.join(keys)[:200]}, got rules of "
                f"{key!r} too; take that key out"
            )
    book = RuleBook(count_tokens=count_tokens) if book is None else book
    fields = ("rule_id", "score", "active", "born", "uses", "wins", "tokens")
    # Copies: what np.asarray gives of a jax array cannot be written to.
    columns = {name: np.array(getattr(pool, name)) for name in fields}
    for row, key in enumerate(keys):
        for slot, rule in enumerate(document.pools.get(key, ())):
            number = book.intern(rule.text)
            values = (number, rule.score, True, rule.born, rule.uses, rule.wins)
            values = (*values, book.num_tokens(number))
            for name, value in zip(fields, values, strict=True):
                columns[name][row, slot] = value
    arrays = {name: jnp.asarray(column) for name, column in columns.items()}
    return RulePool(**arrays), book, keys


def check_capacity(document: PoolDocument, capacity: int) -> None:
    """Raises `InputError` if a task key has more rules than there are slots."""
    for key, rules in document.pools.items():
        if len(rules) > capacity:
            raise InputError(
                f"task key {key!r}: expected at most {capacity} rules, the capacity, "
                f"got {len(rules)}; take out those of the lowest scores, or raise it"
            )


def check_new(text: str, texts: set[str], key: str) -> None:
    """Adds a text to those of a task key, or raises `InputError` if it is there."""
    if text in texts:
        raise InputError(
            f"text: expected each once in {key!r}, got {text!r} again; keep one, or "
            "word them apart"
        )
    texts.add(text)


def check_version(version: object) -> None:
    """Raises `StorageError` for a version that this program does not read."""
    if type(version) is not int or version != POOL_VERSION:
        newer = type(version) is int and version > POOL_VERSION
        hint = "; a newer jerp may have written it" if newer else ""
        raise StorageError(f"version: expected {POOL_VERSION}, got {version!r}{hint}")
