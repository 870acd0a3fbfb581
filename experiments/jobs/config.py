"""What the settings of all experiments of jobs have in common, but for the fields.

The fields stand in the frozen dataclass of each experiment, because their order is that
of the command line's help.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any, ClassVar, Protocol

from experiments.command import command_of
from jerp.errors import ConfigError, UnknownNameError
from jerp.runs.seeds import check_seed

__all__ = ["MODELS", "JobsConfig", "ReaderConfig"]

SEEDS = {"default": 3, "smoke": 1, "full": 5}

MODELS = {"smollm2-135m": "smollm2"}
"""Language models by the name of `--policy`, and their names in the cache."""


class JobsConfig:
    """Base of a frozen dataclass with these fields.

    Attributes:
      name: of the experiment, after `jerp run`.
      options: fields that can change a result, as the command lists them.
      seeds: training seeds; None for those of the scale.
      workers: processes side by side.
      out: run folder, or None.
      smoke: the smallest scale.
      full: the largest scale.
      seed: root of all random keys.

    Raises:
      ConfigError: a field that cannot be meant, by its name.
    """

    name: ClassVar[str]
    options: ClassVar[tuple[str, ...]]
    seeds: int | None
    workers: int
    out: Path | None
    smoke: bool
    full: bool
    seed: int

    def __post_init__(self) -> None:
        for name in ("seeds", "workers"):
            value = getattr(self, name)
            if value is not None and value < 1:
                raise ConfigError(f"{name}: expected at least 1, got {value}")
        check_seed(self.seed)
        if self.smoke and self.full:
            raise ConfigError("smoke and full exclude each other; give one of them")

    @property
    def scale(self) -> str:
        """Which of the experiment's sizes."""
        return "smoke" if self.smoke else "full" if self.full else "default"

    @property
    def num_seeds(self) -> int:
        """Of training."""
        return SEEDS[self.scale] if self.seeds is None else self.seeds

    @property
    def variant(self) -> str:
        """What the run folder's name says beside experiment and scale."""
        return ""

    @property
    def folder(self) -> Path:
        """The run folder."""
        scale = "" if self.scale == "default" else f"-{self.scale}"
        return self.out or Path("jerp-runs") / f"{self.name}{self.variant}{scale}"

    @property
    def command(self) -> str:
        """The command that makes this run."""
        return command_of(f"jerp run {self.name}", self, self.options)


class Setting(Protocol):
    """What a language model's run is about, for the process that it is in."""

    @property
    def identity(self) -> Mapping[str, Any]:
        """What must agree for a run to be resumed."""
        ...

    def to_json(self) -> str:
        """All of it."""
        ...


class NoSetting:
    """Of an experiment in which there is nothing to choose."""

    identity: Mapping[str, Any] = {}

    def to_json(self) -> str:
        """Nothing."""
        return "{}"


class ReaderConfig(JobsConfig):
    """Base of one whose policy may be a language model, of which there is one run.

    Attributes:
      single: fields that such a run takes no other value of than the default.
      policy: "tiny", a name of `MODELS`, or the path of a model.

    Raises:
      ConfigError: a field that cannot be meant, by its name.
    """

    single: ClassVar[tuple[str, ...]] = ("seeds", "workers")
    policy: str

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.reads:
            self._check_reader()

    def _check_reader(self) -> None:
        there = Path(self.policy).exists()
        if not there and {os.sep, "/"} & {*self.policy}:
            raise ConfigError(
                f"policy: {self.policy}: no such file or folder; check the path"
            )
        if self.policy not in MODELS and not there:
            raise UnknownNameError("policy", self.policy, ("tiny", *MODELS))
        for name in self.single:
            # A dataclass keeps the default of a field as an attribute of the class.
            if (value := getattr(self, name)) != getattr(type(self), name):
                raise ConfigError(
                    f"{name}: expected none with policy {self.policy!r}, of which "
                    f"there is one run, got {value}"
                )

    @property
    def reads(self) -> bool:
        """Whether the policy is a language model that reads text."""
        return self.policy != "tiny"

    @property
    def setting(self) -> Setting:
        """What a language model's run is about, beside its sizes."""
        return NoSetting()

    @property
    def variant(self) -> str:
        """The model's name, if there is one."""
        return f"-{Path(self.policy).stem}" if self.reads else ""
