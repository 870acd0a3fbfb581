"""`jerp skills`: skills in words, to read, compare and hand on, and their revisions."""

from __future__ import annotations

import sys
import warnings
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from tyro.conf import Positional

from jerp.cli.terminal import show
from jerp.errors import ConfigError

if TYPE_CHECKING:
    from jerp.skills.tree import SkillTree
    from jerp.storage.skill_document import SkillDocument

__all__ = ["SkillsDiff", "SkillsExport", "SkillsShow", "SkillsTree"]


@dataclass(frozen=True)
class SkillsShow:
    """Show skills, and what was measured of them.

    Attributes:
      skill: a .md file, or the folder of a run that writes skills.
      domain: show the skill of this domain alone.
    """

    skill: Positional[Path]
    domain: str | None = None

    def __call__(self) -> int:
        """Prints each skill below what is known of it."""
        from jerp.skills.document import render_skill
        from jerp.storage.skill_files import find_skills

        pages = []
        for document in find_skills(self.skill, domain=self.domain).values():
            pages.append(
                "\n".join([*_known(document), "", render_skill(document.skill)])
            )
        _print("\n".join(pages))
        return 0


@dataclass(frozen=True)
class SkillsDiff:
    """Compare two skills: texts that were added, removed or changed.

    Attributes:
      before: a .md file, or the folder of a run that writes skills.
      after: another.
      domain: whose skills, where a run has several.
    """

    before: Positional[Path]
    after: Positional[Path]
    domain: str | None = None

    def __call__(self) -> int:
        """Prints the differences; 1 if there are any."""
        from jerp.skills.difference import diff_skills

        paths = (self.before, self.after)
        before, after = (_the_skill(path, self.domain).skill for path in paths)
        changes = diff_skills(before, after)
        lines = []
        for change in changes:
            lines.append(f"{change.where} {change.kind}")
            lines += [f"  - {change.before}"] if change.before else []
            lines += [f"  + {change.after}"] if change.after else []
        _print("\n".join(lines) or "no difference")
        return 1 if changes else 0


@dataclass(frozen=True)
class SkillsExport:
    """Write the skill of a run as Markdown, with what was measured of it.

    Attributes:
      skill: the folder of a run that writes skills, or a .md file.
      out: the .md file to write.
      domain: whose skill, where a run has several.
      force: replace the file if it is there.
    """

    skill: Positional[Path]
    out: Path
    domain: str | None = None
    force: bool = False

    def __call__(self) -> int:
        """Prints where the skill is, and its hash."""
        from jerp.storage.skill_document import skill_hash
        from jerp.storage.skill_files import write_skill

        if self.out.suffix != ".md":
            raise ConfigError(
                f"--out: expected a name that ends with .md, got {self.out}"
            )
        document = _the_skill(self.skill, self.domain)
        if self.out.exists() and not self.force:
            raise ConfigError(f"{self.out}: it is there already; --force replaces it")
        write_skill(self.out, document)
        print(f"{self.out}: {skill_hash(document.skill)}")
        return 0


@dataclass(frozen=True)
class SkillsTree:
    """Draw the revisions of a run: which skill came of which, and how each fared.

    Attributes:
      run: the folder of a run that writes skills.
      task: draw the revisions of this task alone.
      figure: the .png or .svg file to draw them in, in place of lines; without a task
        those of the tasks that say most.
      force: replace the figure if it is there.
    """

    run: Positional[Path]
    task: str | None = None
    figure: Path | None = None
    force: bool = False

    def __call__(self) -> int:
        """Prints the branches of each task, or where they are drawn."""
        from jerp.skills.tree import draw_tree

        if self.figure is None and self.force:
            raise ConfigError("--force: expected with --figure FILE, got it alone")
        if self.figure is not None:
            _print(_drawn_figure(self.figure, self.force, self.run, self.task))
        else:
            _print(draw_tree(_the_tree(self.run), task=self.task))
        return 0


def _drawn_figure(path: Path, force: bool, run: Path, task: str | None) -> str:
    """Draws the tree of a run in a file; says what is in it."""
    from jerp.storage.atomic import write_bytes

    if path.suffix not in (".png", ".svg"):
        raise ConfigError(
            f"--figure: expected a name that ends with .png or .svg, got {path}"
        )
    tree = _the_tree(run)
    if path.exists() and not force:
        raise ConfigError(f"{path}: it is there already; --force replaces it")
    # Drawing takes a second to import, which a mistake need not wait for.
    from jerp.runs.pass_surface.figure_style import figure_bytes
    from jerp.runs.skills.tree_figure import draw_skill_tree, shown_words
    from jerp.runs.skills.tree_places import telling_tasks

    figure = draw_skill_tree(tree, task)
    write_bytes(path, figure_bytes(figure, path.suffix))
    tasks = telling_tasks(tree) if task is None else (task,)
    return f"{path}: {shown_words(tree, tasks)}: {', '.join(tasks)}"


def _the_tree(run: Path) -> SkillTree:
    """The tree of a run; what was cut off of its file is said."""
    from jerp.storage.skill_files import find_tree

    with warnings.catch_warnings(record=True) as notes:
        warnings.simplefilter("always")
        tree = find_tree(run)
    for note in notes:
        print(f"jerp: {note.message}", file=sys.stderr)
    return tree


def _the_skill(path: Path, domain: str | None) -> SkillDocument:
    """The one skill that is meant, or why it is not clear which."""
    from jerp.storage.skill_files import find_skills

    found = find_skills(path, domain=domain)
    if len(found) > 1:
        raise ConfigError(
            f"--domain: expected one of {', '.join(found)}; {path} has a skill of each"
        )
    return next(iter(found.values()))


def _known(document: SkillDocument) -> Iterator[str]:
    """What is known of a skill, a line for each."""
    from jerp.storage.skill_document import skill_hash

    if document.effect is None:
        measured = "not measured"
    else:
        interval = "no interval"
        if document.interval is not None:
            low, high = document.interval
            interval = f"{document.level:.4g} interval {low:+.3f} to {high:+.3f}"
        more = [interval]
        more += [f"against {document.against}"] if document.against else []
        more += [f"{document.tasks} tasks"] if document.tasks is not None else []
        more += [f"split {document.split}"] if document.split else []
        measured = f"{document.effect:+.3f} ({', '.join(more)})"
    facts = {
        "domain": document.domain,
        "effect": measured,
        "executor": document.model,
        "run": document.run,
        "hash": skill_hash(document.skill),
    }
    return (f"{name}: {fact}" for name, fact in facts.items() if fact)


def _print(text: str) -> None:
    """Prints a text as it is: nothing in it is markup."""
    from rich.text import Text

    show(Text(text.removesuffix("\n")))
