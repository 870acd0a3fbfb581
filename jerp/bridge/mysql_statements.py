"""Which statements a MySQL server is given at all.

The account that statements run by is what holds them in their database. This list comes
before it: what would outlive the statement, leave the database or loosen a limit is
refused by its words, outside of texts, names and comments.
"""

from __future__ import annotations

import re

__all__ = ["only_reads", "refusal"]

_READS = frozenset({"SELECT", "SHOW", "DESC", "DESCRIBE", "EXPLAIN", "VALUES", "TABLE"})
_WRITES = frozenset({"INSERT", "REPLACE", "UPDATE", "DELETE", "TRUNCATE", "WITH"})
_DEFINES = re.compile(
    r"(CREATE (OR REPLACE )?TABLE|CREATE (UNIQUE |FULLTEXT )?INDEX"
    r"|ALTER (IGNORE )?TABLE|DROP TABLE|DROP INDEX|RENAME TABLE)\b"
)
_TWO_WORDS = frozenset({"CREATE", "ALTER", "DROP", "RENAME"})
_ASIDE = re.compile(
    r"""(?P<text>'(?:[^'\\]|\\.|'')*'|"(?:[^"\\]|\\.|"")*"|`(?:[^`]|``)*`)"""
    r"|\#[^\n]*|--(?=\s|\Z)[^\n]*|/\*(?!!|M!|\+).*?\*/",
    re.DOTALL,
)
_REFUSED = {
    r"/\*(!|M!|\+)": "comments that are executed",
    r"\bINTO (OUTFILE|DUMPFILE)\b": "INTO OUTFILE",
    r"\bLOAD_FILE\b": "LOAD_FILE",
    # Of ENGINE these reach other machines or files; a quoted name may be any of them.
    r"^(CREATE|ALTER)\b.*\bENGINE ?=? ?('|FEDERATED|CONNECT|SPIDER|S3\b)": "ENGINE",
    r"\b(DATA|INDEX) DIRECTORY\b": "DATA DIRECTORY",
}


def refusal(statement: str, *, read_only: bool = False) -> str | None:
    """What of a statement is not allowed; None where the server may have it.

    Args:
      statement: untrusted.
      read_only: refuse all that changes anything.

    Example:
      >>> print(refusal("SELECT 'INTO OUTFILE' AS a"))
      None
      >>> refusal("SELECT 1 INTO OUTFILE '/tmp/x'")
      'INTO OUTFILE'
      >>> refusal("SET GLOBAL max_connections = 1")
      'SET'
    """
    words = _words(statement)
    for pattern, name in _REFUSED.items():
        if re.search(pattern, words):
            return name
    first = words.split(" ", 1)[0]
    if read_only and not only_reads(statement):
        return f"{first} where reading is meant"
    if not first or first in _READS | _WRITES or _DEFINES.match(words):
        return None
    return " ".join(words.split(" ")[: 2 if first in _TWO_WORDS else 1])[:40]


def only_reads(statement: str) -> bool:
    """Whether it cannot change a table, by its first word.

    Example:
      >>> only_reads("(SELECT 1)"), only_reads("WITH a AS (SELECT 1) DELETE FROM t")
      (True, False)
    """
    words = _words(statement).split(" ")
    return words[0] in _READS and "ANALYZE" not in words[:3]


def _words(statement: str) -> str:
    """In capitals and single blanks; texts and names are `'`, comments a blank."""
    bare = _ASIDE.sub(lambda found: " ' " if found["text"] else " ", statement)
    return " ".join(bare.upper().split()).lstrip("( ")
