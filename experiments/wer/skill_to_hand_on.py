"""The skill that a run hands on: a file with what the locked test said of it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

from experiments.wer.config import WerConfig
from jerp.skills.document import parse_skill
from jerp.storage.skill_document import SkillDocument
from jerp.storage.skill_files import skill_path, write_skill

__all__ = ["hand_on"]


def hand_on(
    config: WerConfig,
    domain: str,
    skill: str,
    effect: Mapping[str, Any],
    *,
    tasks: int,
    model: str,
    method: str,
) -> None:
    """Writes a skill and its effect into the run's `skills/`.

    Args:
      config: of the run; no path of this machine goes with the skill.
      domain: that it is for.
      skill: as Markdown.
      effect: `point`, `low` and `high` against no skill; ends of None are unknown.
      tasks: of the test.
      model: that followed it.
      method: how it was written.
    """
    known = effect["low"] is not None
    policy = Path(config.policy).stem if config.reads else config.policy
    told = replace(config, out=None)
    command = told.command.replace(config.policy, policy)
    document = SkillDocument(
        parse_skill(skill),
        domain,
        effect=effect["point"],
        interval=(effect["low"], effect["high"]) if known else None,
        tasks=tasks,
        against="no skill",
        split="test",
        model=model,
        run=f"{command}, {method}",
    )
    path = skill_path(config.folder, domain)
    path.parent.mkdir(parents=True, exist_ok=True)
    write_skill(path, document)
