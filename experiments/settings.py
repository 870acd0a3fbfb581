"""What a setting is: a config under a stable id, and the function that runs it.

All settings there are: `experiments.catalogue`. This module imports none of them, so
that a process that runs a setting imports its experiment and no other.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from jerp.errors import ConfigError

__all__ = ["Setting", "shard"]


@dataclass(frozen=True)
class Setting:
    """One setting of one experiment.

    Attributes:
      id: such as `harness_control/3`; stable for ever.
      config: a frozen dataclass with `out`, `smoke`, `full` and `command`.
      run: runs or resumes a config in its folder `out`, writes `results.json` there.
    """

    id: str
    config: Any
    run: Callable[[Any], dict[str, Any]]

    def placed(self, out: Path, *, smoke: bool = False) -> Setting:
        """The same with the run folder `out/<id>`, and small if `smoke`."""
        changes: dict[str, Any] = {"out": out / self.id, "smoke": smoke}
        if smoke:
            changes["full"] = False
        return replace(self, config=replace(self.config, **changes))


def shard(settings: tuple[Setting, ...], part: str) -> tuple[Setting, ...]:
    """Every `n`-th setting from the `i`-th, for `part` = `i/n` with `0 <= i < n`."""
    try:
        index, count = (int(x) for x in part.split("/"))
    except ValueError:
        raise ConfigError(f"shard: expected i/n such as 0/4, got {part!r}") from None
    if not 0 <= index < count:
        raise ConfigError(f"shard: expected 0 <= i < n, got {part!r}")
    return settings[index::count]
