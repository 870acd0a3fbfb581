"""`jerp rules`: pools of rules, to read, compare, edit and hand on."""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from tyro.conf import Positional

from jerp.cli.terminal import show
from jerp.errors import ConfigError

if TYPE_CHECKING:
    from jerp.storage.rule_documents import PoolDocument

__all__ = ["RulesDiff", "RulesEdit", "RulesExport", "RulesImport", "RulesShow"]


@dataclass(frozen=True)
class RulesShow:
    """List the rules of a pool with their scores, uses and sources.

    Attributes:
      pool: a .json or .md file, or the folder of a run that learns rules.
      task: show the rules of this task key alone.
      history: show what became of each rule of a run instead.
      evaluated: a file with the digests of evaluated tasks, a line each; rules that
        were learned from them are flagged. A run's evaluated.txt if none.
    """

    pool: Positional[Path]
    task: str | None = None
    history: bool = False
    evaluated: Path | None = None

    def __call__(self) -> int:
        """Prints a table, or the histories."""
        from jerp.runs.rule_pools import find_pool
        from jerp.runs.rule_tables import history_pages, pool_table

        found = find_pool(self.pool, evaluated=self.evaluated)
        page = history_pages if self.history else pool_table
        show(page(found, task=self.task))
        return 0


@dataclass(frozen=True)
class RulesDiff:
    """Compare two pools: rules that were added, removed, or scored otherwise.

    Attributes:
      before: a .json or .md file, or the folder of a run.
      after: another.
    """

    before: Positional[Path]
    after: Positional[Path]

    def __call__(self) -> int:
        """Prints the differences; 1 if there are any."""
        from jerp.runs.rule_pools import find_pool
        from jerp.runs.rule_tables import difference_table

        pools = [find_pool(path).document for path in (self.before, self.after)]
        table = difference_table(*pools)
        show("no difference" if table is None else table)
        return 0 if table is None else 1


@dataclass(frozen=True)
class RulesEdit:
    """Open a pool in an editor, as Markdown; it is checked when the editor closes.

    Attributes:
      pool: a .json or .md file; not the pool of a run.
      editor: the command; $EDITOR if none.
    """

    pool: Positional[Path]
    editor: str | None = None

    def __call__(self) -> int:
        """Prints what was changed."""
        from jerp.runs.rule_editing import edit_pool
        from jerp.runs.rule_tables import difference_table

        editor = self.editor or os.environ.get("EDITOR", "")
        if not editor.strip():
            raise ConfigError(
                "--editor: expected a command, got none, and $EDITOR is not set"
            )
        edited = edit_pool(self.pool, editor)
        if edited is None:
            print(f"{self.pool}: nothing was changed")
            return 0
        before, after = edited
        table = None if before is None else difference_table(before, after)
        if table is not None:
            show(table)
        print(f"{self.pool}: changed")
        return 0


@dataclass(frozen=True)
class RulesImport:
    """Check a pool that a person or program wrote, and write it as JSON.

    Attributes:
      file: a .json or .md file.
      out: the .json file to write.
      capacity: refuse more rules of a task key.
      force: replace the file if it is there.
    """

    file: Positional[Path]
    out: Path
    capacity: int | None = None
    force: bool = False

    def __call__(self) -> int:
        """Prints where the pool is, and its hash."""
        from jerp.runs.rule_pools import check_no_run
        from jerp.storage.rule_documents import pool_hash
        from jerp.storage.rule_files import read_pool, write_pool

        if self.out.suffix != ".json":
            raise ConfigError(
                f"--out: expected a name that ends with .json, got {self.out}"
            )
        if self.capacity is not None and self.capacity < 1:
            raise ConfigError(f"--capacity: expected at least 1, got {self.capacity}")
        check_no_run(self.out, "import to")
        document = read_pool(self.file, capacity=self.capacity)
        _check_free(self.out, self.force)
        write_pool(self.out, document)
        print(f"{self.out}: {pool_hash(document)}")
        return 0


@dataclass(frozen=True)
class RulesExport:
    """Write the pool of a run, or of a file, as Markdown or JSON.

    Attributes:
      pool: the folder of a run, or a .json or .md file.
      file: to write; .md for people, .json for programs.
      without_leaks: leave out the rules that were learned from evaluated tasks.
      evaluated: a file with the digests of those, a line each; a run's evaluated.txt if
        none.
      force: replace the file if it is there.
    """

    pool: Positional[Path]
    file: Positional[Path]
    without_leaks: bool = False
    evaluated: Path | None = None
    force: bool = False

    def __call__(self) -> int:
        """Prints where the pool is, and how many rules it has."""
        from jerp.runs.rule_pools import check_no_run, find_pool
        from jerp.runs.rule_tables import counted
        from jerp.storage.rule_files import write_pool
        from jerp.storage.rule_leaks import without_leaks

        check_no_run(self.file, "export to")
        found = find_pool(self.pool, evaluated=self.evaluated)
        document, num_all = found.document, _num_rules(found.document)
        if self.without_leaks:
            if found.evaluated is None:
                raise ConfigError(
                    "--without-leaks: expected to know the evaluated tasks; name a "
                    "file with their digests by --evaluated"
                )
            document = without_leaks(document, found.evaluated)
        _check_free(self.file, self.force)
        write_pool(self.file, document)
        kept = _num_rules(document)
        out = f", {num_all - kept} left out" if self.without_leaks else ""
        print(f"{self.file}: {counted(kept, 'rule')}{out}")
        return 0


def _num_rules(document: PoolDocument) -> int:
    return sum(map(len, document.pools.values()))


def _check_free(path: Path, force: bool) -> None:
    if path.exists() and not force:
        raise ConfigError(f"{path}: it is there already; --force replaces it")
