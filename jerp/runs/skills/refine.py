"""Skills written by a trained optimizer: a seed a task, then rounds of revision.

    <folder>/refinement.json   what it is of; another is refused
    <folder>/tree.jsonl        a node a draft; depth 0 are the seeds
    <folder>/runs.jsonl        every run
    <folder>/metrics.jsonl     a row a depth: success, calls, tokens, seconds

A depth applies the optimizer once to every task. What is killed goes on with the depths
that are whole, and executes nothing again; more rounds go on as well.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, Literal, NamedTuple

import jax

from jerp.errors import StorageError
from jerp.models.draft_policy import DraftPolicy
from jerp.ops.checks import check_choice, check_whole
from jerp.runs.policy.description import described, params_digest
from jerp.runs.skills.acceptance import Acceptance
from jerp.runs.skills.depth import Depth, Refinement
from jerp.runs.skills.merge import MeasuredSkill
from jerp.runs.skills.session import METRICS, RUNS, TREE
from jerp.runs.skills.settings import EVIDENCE, EvidenceShown, tasks_of
from jerp.runs.skills.work import Workplace, workplace_name
from jerp.skills.document import parse_skill
from jerp.skills.tree import SkillTree
from jerp.storage.atomic import make_folder
from jerp.storage.documents import difference, plain, read_json, write_json
from jerp.storage.metrics import MetricsLog, read_metrics
from jerp.storage.skill_runs import SkillRunFile
from jerp.storage.skill_tree import SkillTreeFile
from jerp.typing import Key

__all__ = ["Refined", "refine_skills"]

SETTINGS = "refinement.json"

Choose = Literal["last", "best"]


class Refined(NamedTuple):
    """What came of it.

    Attributes:
      skills: of every task that has one, with its success on the runs that it was
        written and chosen by: luck is in that number, fresh runs say what it is worth.
      depths: what each depth came to and cost; the last one is after all rounds.
      tree: of all drafts.
    """

    skills: tuple[MeasuredSkill, ...]
    depths: tuple[Depth, ...]
    tree: SkillTree


def refine_skills(
    folder: Path | str,
    key: Key,
    workplace: Workplace,
    policy: DraftPolicy,
    params: Any,
    tasks: Sequence[str],
    *,
    rounds: int = 2,
    num_drafts: int = 1,
    num_runs: int = 2,
    evidence: EvidenceShown = "paired",
    choose: Choose = "last",
    acceptance: Acceptance | None = None,
    block: int = 64,
    execute_at_once: int = 256,
    on_progress: Callable[[int], None] = lambda done: None,
) -> Refined:
    """Drafts a skill for every task and revises it `rounds` times.

    Args:
      folder: of this refinement alone.
      key: of it; not consumed.
      workplace: where.
      policy: the optimizer.
      params: of it, all entries.
      tasks: keys.
      rounds: of revision after the seeds; those of earlier sessions count.
      num_drafts: K, of each task and depth, of which the one goes on that did best.
      num_runs: n, of each skill.
      evidence: see `SkillSettings`.
      choose: the skill after the last round, or of all the one that did best.
      acceptance: a revision replaces its parent only where a test on fresh runs says
        so; None, where it is a skill.
      block: drafts that are written at once; it decides the random numbers too.
      execute_at_once: see `jerp.runs.skills.work.executed`.
      on_progress: called with 1 after each depth.

    Returns:
      `Refined`.

    Raises:
      ConfigError: a setting out of range.
      StorageError: files that cannot be read or written, or are of another refinement;
        another process works in the folder.

    Deviations: a task without a skill, because no draft parsed, is executed without
      one, and begins from nothing in the next round.

    Reference: Peng et al., "WER", arXiv:2608.17587, section 4: two rounds, one draft.
    """
    folder, tasks = Path(folder), tasks_of(tasks)
    check_whole("rounds", rounds, least=0)
    for name, value in (
        *(("num_drafts", num_drafts), ("num_runs", num_runs)),
        *(("block", block), ("execute_at_once", execute_at_once)),
    ):
        check_whole(name, value, least=1)
    check_choice("evidence", evidence, EVIDENCE)
    check_choice("choose", choose, ("last", "best"))
    settings = {
        **described("key", jax.random.key_data(key)),
        **described("policy", policy),
        **described("acceptance", acceptance),
        "params": params_digest(params),
        "tasks": list(tasks),
        **{"num_drafts": num_drafts, "num_runs": num_runs},
        **{"evidence": evidence, "block": block},
    }
    a_depth, name = len(tasks) * num_drafts, workplace_name(workplace)
    make_folder(folder)
    # Whoever has the runs has the folder.
    with SkillRunFile(folder / RUNS, workplace=name) as runs:
        _check_settings(folder, settings)
        whole = _whole_depths(folder / TREE, a_depth)
        with SkillTreeFile(folder / TREE, num_nodes=whole * a_depth) as tree:
            refinement = Refinement(
                *(key, workplace, policy, params, tasks, tree, runs),
                *(num_drafts, num_runs, evidence, acceptance, block, execute_at_once),
            )
            depths = _advanced(refinement, folder, rounds, whole, on_progress)
            found = _chosen(refinement, tasks, choose)
            return Refined(found, tuple(depths), tree.tree)


def _advanced(
    refinement: Refinement,
    folder: Path,
    rounds: int,
    whole: int,
    on_progress: Callable[[int], None],
) -> list[Depth]:
    """All depths; those that are in the metrics took as long as is said there."""
    known = read_metrics(folder / METRICS)[:whole]
    log = MetricsLog(folder / METRICS, first=len(known))
    depths = []
    for number in range(rounds + 1):
        before = time.monotonic()
        depth = refinement.advance(number)
        if number < len(known):
            depth = depth._replace(seconds=known[number]["seconds"])
        else:
            depth = depth._replace(seconds=time.monotonic() - before)
            log.write([{"step": number, **depth.metrics}])
        depths.append(depth)
        on_progress(1)
    return depths


def _chosen(
    refinement: Refinement, tasks: Sequence[str], choose: Choose
) -> tuple[MeasuredSkill, ...]:
    tree, found = refinement.tree.tree, []
    for task in tasks:
        node = refinement.current[task]
        if choose == "best" and (best := tree.best(task)) is not None:
            node = best
        if node is not None and node.skill is not None:
            skill = parse_skill(node.skill)
            found.append(MeasuredSkill(task, skill, node.success))
    return tuple(found)


def _check_settings(folder: Path, settings: dict[str, Any]) -> None:
    path = folder / SETTINGS
    if not path.exists():
        write_json(path, settings)
        return
    if differs := difference(read_json(path), plain(settings)):
        raise StorageError(
            f"{path}: this folder is of another refinement: {differs}; use another "
            "folder, or the same settings"
        )


def _whole_depths(path: Path, a_depth: int) -> int:
    """How many depths have all of their nodes."""
    with SkillTreeFile(path) as tree:
        return len(tree.tree) // a_depth
