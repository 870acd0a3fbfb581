"""`jerp run`: experiments with settings of their own."""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, get_type_hints

__all__ = ["RunHarness", "run_harness"]


@dataclass(frozen=True)
class RunHarness:
    """Compares harness controllers around a frozen model: collects, trains, reports."""


def run_harness() -> Callable[..., Callable[[], int]]:
    """`HarnessConfig` as tyro sees it, constructed only after parsing.

    tyro reports what a config refuses as a mistake of parsing, under a name of its own.
    Constructed later, the refusal is printed as every other error is.
    """
    from experiments.harness_control.config import HarnessConfig

    def harness(**settings: Any) -> Callable[[], int]:
        def command() -> int:
            config = HarnessConfig(**settings)
            from experiments.harness_control.main import run

            run(config)
            return 0

        return command

    functools.update_wrapper(harness, HarnessConfig, updated=())
    harness.__annotations__ = get_type_hints(HarnessConfig, include_extras=True)
    harness.__doc__ = inspect.getdoc(HarnessConfig)
    return harness
