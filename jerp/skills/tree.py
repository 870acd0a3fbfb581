"""The tree of revisions: every skill that was drafted, from which one, and its runs.

A node is a draft with its outcomes and its price; its children are the revisions that
were written from runs of it. Nodes are only ever added, and none is changed. A tree
holds many tasks: each has roots of its own, its seed skills, and no edge leads from
task to task. Here are records and questions about them; files are of
`jerp.storage.skill_tree`.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, Literal

from jerp.errors import InputError
from jerp.ops.checks import check_choice, check_count
from jerp.skills.node import SkillNode, node_from_row, node_row

__all__ = ["SkillTree", "draw_tree"]


class SkillTree:
    """Nodes in the order in which they were added.

    Args:
      nodes: to begin with, parents before their children.

    Raises:
      InputError: see `add`.

    Example:
      >>> tree = SkillTree([SkillNode(0, None, "move", 0, "# A", outcomes=(0, 1))])
      >>> tree.add(SkillNode(1, 0, "move", 1, "# B", outcomes=(1, 1)))
      >>> [node.id for node in tree.path(1)], tree.depth(1), tree.best("move").id
      ([0, 1], 1, 1)
    """

    def __init__(self, nodes: Iterable[SkillNode] = ()):
        self._nodes: dict[int, SkillNode] = {}
        self._children: dict[int, list[SkillNode]] = {}
        self._tasks: dict[str, list[SkillNode]] = {}
        for node in nodes:
            self.add(node)

    def __len__(self) -> int:
        return len(self._nodes)

    @property
    def nodes(self) -> tuple[SkillNode, ...]:
        """All nodes in their order."""
        return tuple(self._nodes.values())

    @property
    def tasks(self) -> tuple[str, ...]:
        """Tasks in the order of their first node."""
        return tuple(self._tasks)

    @property
    def next_id(self) -> int:
        """An id that no node has, above all that there are."""
        return max(self._nodes, default=-1) + 1

    def check(self, node: SkillNode) -> None:
        """Raises `InputError` unless the node can be added; see `add`."""
        if node.id in self._nodes:
            raise InputError(f"id: expected a new one, got {node.id} again")
        if node.parent is None:
            return
        parent = self._nodes.get(node.parent)
        if parent is None:
            raise InputError(
                f"parent: expected a node of the tree, which has {len(self)}, got "
                f"{node.parent} for node {node.id}; add parents first"
            )
        if parent.skill is None:
            raise InputError(
                f"parent: expected a node with a skill to revise, got {parent.id}, "
                f"which has none, for node {node.id}"
            )
        if parent.task != node.task:
            raise InputError(
                f"task: expected {parent.task!r}, that of the parent, got {node.task!r}"
            )
        if parent.phase > node.phase:
            raise InputError(
                f"phase: expected {parent.phase} of the parent or later, got "
                f"{node.phase} for node {node.id}"
            )

    def add(self, node: SkillNode) -> None:
        """Adds a node below its parent.

        Raises:
          InputError: its id is there, or its parent is not, has no skill, is of another
            task or of a later phase. The tree is as it was.
        """
        self.check(node)
        self._nodes[node.id] = node
        self._tasks.setdefault(node.task, []).append(node)
        if node.parent is not None:
            self._children.setdefault(node.parent, []).append(node)

    def node(self, id: int) -> SkillNode:
        """The node of an id; raises `InputError` if there is none."""
        if id not in self._nodes:
            raise InputError(f"id: expected a node of the tree, got {id!r}")
        return self._nodes[id]

    def children(self, id: int) -> tuple[SkillNode, ...]:
        """The revisions of a node."""
        self.node(id)
        return tuple(self._children.get(id, ()))

    def of_task(self, task: str | None) -> tuple[SkillNode, ...]:
        """The nodes of a task, of all for None; raises `InputError` if it has none."""
        if task is None:
            return self.nodes
        if task not in self._tasks:
            known = ", ".join(self._tasks) or "none"
            raise InputError(
                f"task: expected one of the tree ({known:.200}), got {task!r}"
            )
        return tuple(self._tasks[task])

    def roots(self, task: str | None = None) -> tuple[SkillNode, ...]:
        """First drafts, of one task or of all."""
        return tuple(node for node in self.of_task(task) if node.parent is None)

    def leaves(self, task: str | None = None) -> tuple[SkillNode, ...]:
        """Nodes that nothing revises, of one task or of all."""
        return tuple(n for n in self.of_task(task) if n.id not in self._children)

    def path(self, id: int) -> tuple[SkillNode, ...]:
        """From the root to a node, both of them in it."""
        node = self.node(id)
        found = [node]
        while node.parent is not None:
            node = self._nodes[node.parent]
            found.append(node)
        return tuple(reversed(found))

    def depth(self, id: int) -> int:
        """Revisions between the root and a node."""
        return len(self.path(id)) - 1

    def best(
        self,
        task: str | None = None,
        *,
        by: Literal["success", "reward"] = "success",
        min_runs: int = 1,
    ) -> SkillNode | None:
        """The node that did best; of equals that with more runs, then the older.

        It was chosen for having done well, by luck as well: what it is worth, only new
        runs on other tasks say.

        Args:
          task: None for all.
          by: share of answered runs that succeeded, or the reward.
          min_runs: answered ones that a node has to have.

        Returns:
          None if no node has a skill and so many runs.
        """
        check_choice("by", by, ("success", "reward"))
        check_count("min_runs", min_runs)
        found = [
            node
            for node in self.of_task(task)
            if node.answered >= min_runs and getattr(node, by) is not None
        ]
        return max(found, key=lambda n: (getattr(n, by), n.answered), default=None)

    def rows(self) -> list[dict[str, Any]]:
        """The nodes as mappings of plain types, one of its own for each of JSON."""
        return [node_row(node) for node in self.nodes]

    @classmethod
    def from_rows(cls, rows: Iterable[Mapping[str, Any]]) -> SkillTree:
        """The tree of `rows`; raises `InputError` where one is no node of it."""
        return cls(map(node_from_row, rows))


def draw_tree(tree: SkillTree, task: str | None = None) -> str:
    """The tree in lines: successes of the runs, reward, and what was kept.

    Args:
      tree: any.
      task: None for all, one below the other.

    Returns:
      Lines, each with its line break; a node's own texts are not in them.

    Raises:
      InputError: the tree has no such task.

    Example:
      >>> seed = SkillNode(0, None, "move", 0, "# A", outcomes=(0, 1), retained=True)
      >>> tree = SkillTree([seed])
      >>> tree.add(SkillNode(1, 0, "move", 1, "# B", outcomes=(1, 1), reward=1.0))
      >>> tree.add(SkillNode(2, 0, "move", 1, None, faults=("order",)))
      >>> print(draw_tree(tree), end="")
      move
      └── 0  phase 0  1 of 2  kept
          ├── 1  phase 1  2 of 2  reward 1.00
          └── 2  phase 1  no skill: order
    """
    tree.of_task(task)
    lines: list[str] = []
    for name in tree.tasks if task is None else (task,):
        lines.append(name)
        roots = tree.roots(name)
        waiting = [(node, "", node is roots[-1]) for node in reversed(roots)]
        while waiting:
            node, before, is_last = waiting.pop()
            lines.append(f"{before}{'└── ' if is_last else '├── '}{_label(node)}")
            below = before + ("    " if is_last else "│   ")
            children = tree.children(node.id)
            waiting += [(c, below, c is children[-1]) for c in reversed(children)]
    return "".join(f"{line}\n" for line in lines)


def _label(node: SkillNode) -> str:
    parts = [str(node.id), f"phase {node.phase}"]
    if node.skill is None:
        parts.append(f"no skill: {', '.join(node.faults)}")
    elif node.outcomes:
        lost = len(node.outcomes) - node.answered
        runs = f"{node.successes} of {node.answered}"
        parts.append(f"{runs}, {lost} lost" if lost else runs)
    else:
        parts.append("not run")
    if node.reward is not None:
        parts.append(f"reward {node.reward:.2f}")
    if node.retained:
        parts.append("kept")
    return "  ".join(parts)
