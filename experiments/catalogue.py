"""Every experiment's settings under ids such as `harness_control/3`.

An experiment is a folder with `config.py` (what runs), `sweep.py` (its settings, a
tuple that only grows) and `analysis.py` (numbers across runs). Ids are stable for ever.
`experiments.launch` runs them here, one after another; `experiments.sweep` in many
processes or on a cluster.
"""

from __future__ import annotations

from experiments.gigpo_vs_grpo import main as gigpo_vs_grpo_main
from experiments.gigpo_vs_grpo import sweep as gigpo_vs_grpo_sweep
from experiments.harness_control import main as harness_control_main
from experiments.harness_control import sweep as harness_control_sweep
from experiments.joint_rules import main as joint_rules_main
from experiments.joint_rules import sweep as joint_rules_sweep
from experiments.pass_surface import main as pass_surface_main
from experiments.pass_surface import sweep as pass_surface_sweep
from experiments.settings import Setting
from experiments.wer import main as wer_main
from experiments.wer import sweep as wer_sweep
from jerp.errors import UnknownNameError

__all__ = ["EXPERIMENTS", "select"]

EXPERIMENTS: dict[str, tuple[Setting, ...]] = {
    "harness_control": tuple(
        Setting(f"harness_control/{i}", config, harness_control_main.run)
        for i, config in enumerate(harness_control_sweep.SETTINGS)
    ),
    "gigpo_vs_grpo": tuple(
        Setting(f"gigpo_vs_grpo/{i}", config, gigpo_vs_grpo_main.run)
        for i, config in enumerate(gigpo_vs_grpo_sweep.SETTINGS)
    ),
    "joint_rules": tuple(
        Setting(f"joint_rules/{i}", config, joint_rules_main.run)
        for i, config in enumerate(joint_rules_sweep.SETTINGS)
    ),
    "pass_surface": tuple(
        Setting(f"pass_surface/{i}", config, pass_surface_main.run)
        for i, config in enumerate(pass_surface_sweep.SETTINGS)
    ),
    "wer": tuple(
        Setting(f"wer/{i}", config, wer_main.run)
        for i, config in enumerate(wer_sweep.SETTINGS)
    ),
}


def select(name: str) -> tuple[Setting, ...]:
    """The setting with id `name`, or all of the experiment `name`.

    Hyphens stand for underscores: `jerp run` spells experiments with them.

    Raises:
      UnknownNameError: neither exists; the nearest is offered.
    """
    known = {s.id: (s,) for group in EXPERIMENTS.values() for s in group} | EXPERIMENTS
    underscored = name.replace("-", "_")
    if underscored not in known:
        raise UnknownNameError("setting", name, known)
    return known[underscored]
