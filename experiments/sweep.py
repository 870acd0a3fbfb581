"""Every experiment's settings under ids such as `harness_control/3`.

An experiment is a folder with `config.py` (what runs), `sweep.py` (its settings, a
tuple that only grows) and `analysis.py` (numbers across runs). Ids are stable for ever.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from experiments.gigpo_vs_grpo import main as gigpo_vs_grpo_main
from experiments.gigpo_vs_grpo import sweep as gigpo_vs_grpo_sweep
from experiments.harness_control import main as harness_control_main
from experiments.harness_control import sweep as harness_control_sweep
from jerp.errors import ConfigError, UnknownNameError

__all__ = ["EXPERIMENTS", "Setting", "select", "shard"]


@dataclass(frozen=True)
class Setting:
    """One setting of one experiment."""

    id: str
    config: Any
    run: Callable[[Any], dict[str, Any]]


EXPERIMENTS: dict[str, tuple[Setting, ...]] = {
    "harness_control": tuple(
        Setting(f"harness_control/{i}", config, harness_control_main.run)
        for i, config in enumerate(harness_control_sweep.SETTINGS)
    ),
    "gigpo_vs_grpo": tuple(
        Setting(f"gigpo_vs_grpo/{i}", config, gigpo_vs_grpo_main.run)
        for i, config in enumerate(gigpo_vs_grpo_sweep.SETTINGS)
    ),
}


def select(name: str) -> tuple[Setting, ...]:
    """The setting with id `name`, or all of the experiment `name`.

    Raises:
      UnknownNameError: neither exists; the nearest is offered.
    """
    known = {s.id: (s,) for group in EXPERIMENTS.values() for s in group} | EXPERIMENTS
    if name not in known:
        raise UnknownNameError("setting", name, known)
    return known[name]


def shard(settings: tuple[Setting, ...], part: str) -> tuple[Setting, ...]:
    """Every `n`-th setting from the `i`-th, for `part` = `i/n` with `0 <= i < n`."""
    try:
        index, count = (int(x) for x in part.split("/"))
    except ValueError:
        raise ConfigError(f"shard: expected i/n such as 0/4, got {part!r}") from None
    if not 0 <= index < count:
        raise ConfigError(f"shard: expected 0 <= i < n, got {part!r}")
    return settings[index::count]
