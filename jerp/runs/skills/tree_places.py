"""Which drafts of a tree a figure shows, and where: columns of phases, rows of drafts.

A draft stands in the column of its phase, right of the one that it revises, and as high
as the middle of those that revise it, so that no two lines cross. Here are numbers
alone; they are drawn by `jerp.runs.skills.tree_figure`.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import NamedTuple

from jerp.errors import InputError
from jerp.skills.node import SkillNode
from jerp.skills.tree import SkillTree

__all__ = ["Place", "check_some", "columns_of", "places_of", "telling_tasks"]

MOST_TASKS, MOST_SHOWN = 6, 60
"""Tasks that are chosen, and their drafts, together."""


class Place(NamedTuple):
    """Where a draft is drawn: a column, a row, and whether something revises it."""

    node: SkillNode
    x: float
    y: float
    is_parent: bool


def telling_tasks(tree: SkillTree) -> tuple[str, ...]:
    """Tasks whose drafts say most about what revision does, and fit into a figure.

    A task says as much as it has revisions whose runs succeeded more often, or less,
    than those of the draft that they revise; of equals that says more which has more
    drafts that were judged, then which came first.

    Args:
      tree: any.

    Returns:
      In the order of the tree; if no task fits, that with the fewest drafts.

    Raises:
      InputError: a tree without a draft.

    Example:
      >>> def node(id, parent, task, *outcomes):
      ...     return SkillNode(id, parent, task, 0, "# A", outcomes=outcomes)
      >>> same = [node(0, None, "move", 1, 0), node(1, 0, "move", 0, 1)]
      >>> better = [node(2, None, "copy", 0, 0), node(3, 2, "copy", 0, 1)]
      >>> many = [node(i, None, "send", 0, 0) for i in range(4, 63)]
      >>> telling_tasks(SkillTree(same + better + many))
      ('move', 'copy')
    """
    check_some(tree)
    told = {task: _told(tree, task) for task in tree.tasks}
    sizes = {task: len(tree.of_task(task)) for task in tree.tasks}
    found, room = [], MOST_SHOWN
    # A stable sort: of equals that comes first which came first.
    for task in sorted(tree.tasks, key=told.__getitem__, reverse=True):
        if sizes[task] <= room and len(found) < MOST_TASKS:
            found.append(task)
            room -= sizes[task]
    found = found or [min(tree.tasks, key=sizes.__getitem__)]
    return tuple(task for task in tree.tasks if task in found)


def check_some(tree: SkillTree) -> None:
    """Raises `InputError` for a tree without a draft."""
    if not len(tree):
        raise InputError("tree: expected at least one draft to draw, got none")


def _told(tree: SkillTree, task: str) -> tuple[int, int]:
    """Revisions that changed success, and drafts that were judged."""
    changed = judged = 0
    for node in tree.of_task(task):
        judged += node.success is not None
        if node.parent is not None and node.success is not None:
            before = tree.node(node.parent).success
            changed += before is not None and before != node.success
    return changed, judged


def columns_of(tree: SkillTree, tasks: Sequence[str]) -> dict[tuple[int, int], int]:
    """A column for each phase, and one more where it revises drafts of its own."""
    found = {_stage(tree, node) for task in tasks for node in tree.of_task(task)}
    return {stage: column for column, stage in enumerate(sorted(found))}


def _stage(tree: SkillTree, node: SkillNode) -> tuple[int, int]:
    """The phase, and how many of the drafts before it are of the same."""
    before = tree.path(node.id)[:-1]
    return node.phase, sum(parent.phase == node.phase for parent in before)


def places_of(
    tree: SkillTree, tasks: Sequence[str], columns: dict[tuple[int, int], int]
) -> tuple[dict[int, Place], dict[str, float], int]:
    """Where each draft is, by id, the row of each task's name, and how many rows."""
    places: dict[int, Place] = {}
    heads: dict[str, float] = {}
    row = 0
    for task in tasks:
        heads[task], row = row, row + 1
        for node in _children_first(tree, task):
            below = [places[child.id].y for child in tree.children(node.id)]
            y = (below[0] + below[-1]) / 2 if below else row
            row += not below
            x = columns[_stage(tree, node)]
            places[node.id] = Place(node, x, y, bool(below))
    return places, heads, row


def _children_first(tree: SkillTree, task: str) -> Iterator[SkillNode]:
    """The drafts of a task, each after all that revise it, in the order of rows."""
    waiting = [(root, False) for root in reversed(tree.roots(task))]
    while waiting:
        node, is_open = waiting.pop()
        if is_open:
            yield node
            continue
        waiting.append((node, True))
        children = reversed(tree.children(node.id))
        waiting += [(child, False) for child in children]
