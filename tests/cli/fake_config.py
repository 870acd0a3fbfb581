"""Settings of an experiment that is none."""

from dataclasses import dataclass
from typing import Literal

from jerp.errors import UnknownNameError


@dataclass(frozen=True)
class FakeConfig:
    """What the experiment takes.

    Attributes:
      domain: which domains.
      executor: who answers.
      seeds: how many.
      smoke: quickly.
    """

    domain: tuple[str, ...] = ("coding", "research")
    executor: Literal["recorded", "smollm2"] = "recorded"
    seeds: int = 3
    smoke: bool = False

    def __post_init__(self):
        for name in self.domain:
            if name not in ("coding", "research"):
                raise UnknownNameError("domain", name, ("coding", "research"))
