"""`jerp run`: experiments with settings of their own."""

from __future__ import annotations

import functools
import importlib
import inspect
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, get_type_hints

__all__ = [
    "RunGigpoVsGrpo",
    "RunHarness",
    "RunJerp",
    "RunPassSurface",
    "RunWer",
    "run_commands",
]


@dataclass(frozen=True)
class RunHarness:
    """Compares harness controllers around a frozen model: collects, trains, reports."""


@dataclass(frozen=True)
class RunGigpoVsGrpo:
    """Compares GRPO with GiGPO and its control in a house: trains and reports."""


@dataclass(frozen=True)
class RunJerp:
    """Learns rules and a policy together in a household: trains arms and reports."""


@dataclass(frozen=True)
class RunPassSurface:
    """Asks whether training moved the capability boundary: trains, samples, reports."""


@dataclass(frozen=True)
class RunWer:
    """Trains an optimizer of skills on what its drafts lead to, and compares it."""


EXPERIMENTS = {
    "harness": ("harness_control", "HarnessConfig"),
    "gigpo-vs-grpo": ("gigpo_vs_grpo", "GigpoConfig"),
    "jerp": ("joint_rules", "JerpConfig"),
    "pass-surface": ("pass_surface", "PassSurfaceConfig"),
    "wer": ("wer", "WerConfig"),
}
"""By command the package in `experiments` and the class of its settings."""


def run_commands() -> dict[str, Callable[..., Callable[[], int]]]:
    """The experiments as tyro sees them; their packages are imported."""
    return {name: _command(*parts) for name, parts in EXPERIMENTS.items()}


def _command(package: str, config_name: str) -> Callable[..., Callable[[], int]]:
    """A config as tyro sees it, constructed only after parsing.

    tyro reports what a config refuses as a mistake of parsing, under a name of its own.
    Constructed later, the refusal is printed as every other error is.
    """
    module = importlib.import_module(f"experiments.{package}.config")
    config_class = getattr(module, config_name)

    def settings_of(**settings: Any) -> Callable[[], int]:
        def command() -> int:
            config = config_class(**settings)
            importlib.import_module(f"experiments.{package}.main").run(config)
            return 0

        return command

    functools.update_wrapper(settings_of, config_class, updated=())
    settings_of.__annotations__ = get_type_hints(config_class, include_extras=True)
    settings_of.__doc__ = inspect.getdoc(config_class)
    return settings_of
