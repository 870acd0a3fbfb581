"""The settings of `jerp train harness`: what is typed, and what the manifest records.

Light to import, because `jerp --help` shows them. What is wrong with them is refused
after parsing, as a `ConfigError` in one line.
"""

from __future__ import annotations

import math
import shlex
from dataclasses import asdict, dataclass, fields
from pathlib import Path
from typing import Annotated, Any, Literal

from tyro.conf import Positional, arg

from jerp.errors import ConfigError
from jerp.runs.seeds import check_seed

__all__ = ["TrainSettings", "check_settings", "command", "recorded_settings"]

WHERE = ("trajectories", "out")


@dataclass(frozen=True)
class TrainSettings:
    """Trains a controller on logged episodes, by advantage-weighted regression.

    Attributes:
      trajectories: trajectory folders of one layout, such as RUN/coding/buffer.
      out: folder for the controller.
      advantage: trajectory weighs an episode by its return against its task's mean;
        step weighs a step by its TD(lambda) return against a learned value.
      temperature: of the weights; smaller is greedier, inf clones the behaviour.
      epochs: passes over the buffer that train the policy.
      batch_size: steps a minibatch.
      hidden_size: width of the controller.
      seed: of the first parameters and the order of the steps.
      normalize: scale features to mean 0 and standard deviation 1 over the buffer.
      standardize: scale the advantages to mean 0 and standard deviation 1.
      leave_one_out: leave an episode out of its own task's mean (trajectory alone).
      min_weight: least weight.
      max_weight: greatest weight.
      entropy_weight: of the policy's entropy, which is maximised.
      learning_rate: Adam's, for the policy.
      discount: of rewards.
      value_epochs: passes that train the value (step alone).
      value_learning_rate: Adam's, for the value (step alone).
      lambda_: of TD(lambda) (step alone).
    """

    trajectories: Positional[tuple[Path, ...]]
    out: Path
    advantage: Literal["trajectory", "step"] = "trajectory"
    temperature: float = 0.2
    epochs: int = 20
    batch_size: int = 256
    hidden_size: int = 64
    seed: int = 0
    normalize: bool = False
    standardize: bool = False
    leave_one_out: bool = False
    min_weight: float = 0.1
    max_weight: float = 10.0
    entropy_weight: float = 0.01
    learning_rate: float = 1e-3
    discount: float = 1.0
    value_epochs: int = 20
    value_learning_rate: float = 1e-3
    lambda_: Annotated[float, arg(name="lambda")] = 0.95


def check_settings(settings: TrainSettings) -> None:
    """Refuses what cannot be, naming the option, before any file is read.

    Raises:
      ConfigError: a value out of range, or one that contradicts another.
    """
    s = settings
    check_seed(s.seed)
    if not s.trajectories:
        raise ConfigError(
            "trajectories: expected at least one folder, such as RUN/coding/buffer, "
            "got none"
        )
    rules = (
        ("temperature", s.temperature > 0, "above 0, or inf"),
        ("epochs", s.epochs >= 1, "at least 1"),
        ("batch_size", s.batch_size >= 1, "at least 1"),
        ("hidden_size", s.hidden_size >= 1, "at least 1"),
        ("min_weight", 0 <= s.min_weight < math.inf, "at least 0"),
        ("max_weight", s.min_weight < s.max_weight < math.inf, "above --min-weight"),
        ("entropy_weight", 0 <= s.entropy_weight < math.inf, "at least 0"),
        ("learning_rate", 0 < s.learning_rate < math.inf, "above 0"),
        ("discount", 0 <= s.discount <= 1, "in [0, 1]"),
        ("value_epochs", s.value_epochs >= 1, "at least 1"),
        ("value_learning_rate", 0 < s.value_learning_rate < math.inf, "above 0"),
        ("lambda_", 0 <= s.lambda_ <= 1, "in [0, 1]"),
        (
            "leave_one_out",
            not (s.leave_one_out and s.advantage == "step"),
            "only with --advantage trajectory, whose task means it concerns",
        ),
    )
    for name, holds, expected in rules:
        if not holds:
            got = getattr(settings, name)
            raise ConfigError(f"{_option(name)}: expected {expected}, got {got}")


def command(settings: TrainSettings) -> str:
    """The command line that trains this, without what is left to default."""
    words = ["jerp", "train", "harness", *map(str, settings.trajectories)]
    words += ["--out", str(settings.out)]
    for field in fields(settings):
        value = getattr(settings, field.name)
        if field.name not in WHERE and value != field.default:
            words += [_option(field.name), *([] if value is True else [str(value)])]
    return shlex.join(words)


def recorded_settings(settings: TrainSettings) -> dict[str, Any]:
    """Everything that the parameters depend on besides the episodes; JSON-able."""
    values = {k: v for k, v in asdict(settings).items() if k not in WHERE}
    if math.isinf(settings.temperature):
        values["temperature"] = "inf"
    return values


def _option(name: str) -> str:
    return "--" + name.strip("_").replace("_", "-")
