"""Files of skills, and the folder of a run that writes some.

A run has `skills/DOMAIN.md` for each domain that it wrote a skill for, and all of its
drafts in `tree.jsonl` (`jerp.storage.skill_tree`).
"""

from __future__ import annotations

from pathlib import Path

from jerp.errors import InputError, StorageError, UnknownNameError
from jerp.skills.tree import SkillTree
from jerp.storage.atomic import read_regular, write_bytes
from jerp.storage.skill_document import (
    SkillDocument,
    check_domain,
    skill_from_text,
    skill_to_text,
)
from jerp.storage.skill_tree import read_tree

__all__ = ["find_skills", "find_tree", "read_skill", "skill_path", "write_skill"]

SKILLS, TREE = "skills", "tree.jsonl"

MAX_BYTES = 1 << 20
"""Of a file that is read: more than any skill has."""


def read_skill(path: Path | str) -> SkillDocument:
    """The skill that a file holds.

    Args:
      path: of the file.

    Raises:
      InputError: the file, the line, what was expected and what came; or it is no
        regular file, or too large.
      StorageError: there is no such file, or it is of another version.
    """
    path = Path(path)
    data = read_regular(path, "skill", max_bytes=MAX_BYTES)
    try:
        return skill_from_text(data.decode("utf-8-sig").replace("\r\n", "\n"))
    except UnicodeDecodeError as error:
        line = data.count(b"\n", 0, error.start) + 1
        raise InputError(f"{path}: line {line}: expected text in UTF-8") from error
    except InputError as error:
        raise InputError(f"{path}: {error}") from error
    except StorageError as error:
        raise StorageError(f"{path}: {error}") from error


def write_skill(path: Path | str, document: SkillDocument) -> None:
    """Writes a skill to a file, complete or not at all.

    Args:
      path: of the file, in a folder that is there.
      document: any.

    Raises:
      StorageError: the disk refuses.
    """
    write_bytes(Path(path), skill_to_text(document).encode())


def skill_path(folder: Path | str, domain: str) -> Path:
    """Where a run keeps the skill of a domain.

    Args:
      folder: of the run.
      domain: its name.

    Raises:
      InputError: a name that no domain has.

    Example:
      >>> skill_path("run", "files").as_posix()
      'run/skills/files.md'
    """
    return Path(folder) / SKILLS / f"{check_domain(domain)}.md"


def find_skills(
    path: Path | str, *, domain: str | None = None
) -> dict[str, SkillDocument]:
    """The skills of a file or of a run's folder, by domain.

    Args:
      path: a file, or a folder with `skills/DOMAIN.md`.
      domain: whose skill alone is wanted; None for all.

    Returns:
      By domain, in the order of their names; "" where a file does not say it.

    Raises:
      StorageError: there is none; folders below that have some are named.
      InputError: a file is damaged, cannot be meant, or says another domain than its
        name; or a domain is wanted of a file that says none.
      UnknownNameError: there is no such domain.
    """
    path = Path(path)
    if not path.exists():
        raise StorageError(f"{path}: there is no such file or folder; check the path")
    if not path.is_dir():
        document = read_skill(path)
        if domain is not None and not document.domain:
            raise InputError(
                f"domain: {path} says no domain, so none can be chosen, got "
                f"{domain!r}; leave --domain out"
            )
        found = {document.domain: document}
    else:
        found = {file.stem: _of_run(file) for file in _files(path)}
    if domain is not None and domain not in found:
        raise UnknownNameError("domain", domain, found)
    return found if domain is None else {domain: found[domain]}


def find_tree(path: Path | str) -> SkillTree:
    """The tree of revisions of a run.

    Args:
      path: a folder with `tree.jsonl`, or that file.

    Raises:
      StorageError: there is none, and folders below that have one are named; or it is
        damaged, see `read_tree`.
    """
    path = Path(path)
    if not path.exists():
        raise StorageError(f"{path}: there is no such file or folder; check the path")
    if path.is_dir() and not (path / TREE).exists():
        raise StorageError(_missing(path, TREE, TREE))
    return read_tree(path / TREE if path.is_dir() else path)


def _files(folder: Path) -> list[Path]:
    files = sorted((folder / SKILLS).glob("*.md"))
    if not files:
        raise StorageError(_missing(folder, f"{SKILLS}/DOMAIN.md", f"{SKILLS}/*.md"))
    return files


def _missing(folder: Path, name: str, pattern: str) -> str:
    """What a folder lacks, and which folders below have it."""
    depth = pattern.count("/")
    below = sorted({file.parents[depth] for file in folder.rglob(pattern)})
    expected = f"{folder}: expected a folder with {name}, of a run that writes skills"
    if not below:
        return f"{expected}, found none here or below; check the path"
    names = ", ".join(map(str, below[:5]))
    more = f" and {len(below) - 5} more" if len(below) > 5 else ""
    return f"{expected}; name one of {names}{more}"


def _of_run(file: Path) -> SkillDocument:
    document = read_skill(file)
    if document.domain != file.stem:
        raise InputError(
            f"{file}: expected the skill of {file.stem!r}, the name of the file, got "
            f"one whose domain is {document.domain!r}"
        )
    return document
