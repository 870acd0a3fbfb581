"""What the tree and the metrics of a run of skills warn of."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from jerp.models.draft_policy import DraftPolicy
from jerp.runs.policy.warnings import collapse_warnings
from jerp.runs.skills.settings import SkillSettings
from jerp.skills.node import SkillNode
from jerp.skills.tree import SkillTree

__all__ = ["skill_warnings"]


def skill_warnings(
    rows: Sequence[Mapping[str, Any]],
    tree: SkillTree,
    settings: SkillSettings,
    policy: DraftPolicy,
) -> list[str]:
    """Sentences about a run, none where all seems well.

    Args:
      rows: of metrics, in order.
      tree: of the run.
      settings: of the run.
      policy: the optimizer.

    Returns:
      Of each finished phase without a skill that was kept, and of a collapse.
    """
    found = []
    for phase in range(1, len(rows) // settings.batches + 1):
        nodes = [node for node in tree.nodes if node.phase == phase]
        if not any(node.retained for node in nodes):
            found.append(_nothing_kept(phase, nodes, settings))
    return found + collapse_warnings(rows, num_actions=policy.config.vocab_size)


def _nothing_kept(
    phase: int, nodes: Sequence[SkillNode], settings: SkillSettings
) -> str:
    shares = [node.success for node in nodes if node.success is not None]
    mean = sum(shares) / len(shares) if shares else 0.0
    remedy = "easier tasks" if mean < 0.5 else "harder tasks"
    next_one = "" if phase == settings.phases else "; the next one revises the seeds"
    return (
        f"phase {phase} kept none of its {len(nodes)} drafts: {len(shares)} were "
        f"answered, with success {mean:.2f}, and none both succeeded and failed in "
        f"{settings.num_runs} runs{next_one}. More runs a skill would help, {remedy}, "
        "or an optimizer whose drafts differ more (a higher temperature) or parse more "
        "often (cloned for longer)"
    )
