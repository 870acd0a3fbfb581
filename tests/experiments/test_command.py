"""Commands that make a run again."""

from dataclasses import dataclass
from pathlib import Path

from experiments.command import command_of


@dataclass(frozen=True)
class Config:
    domain: tuple[str, ...] = ("a", "b")
    seeds: int | None = None
    out: Path | None = None
    smoke: bool = False
    workers: int = 2


NAMES = ("domain", "seeds", "smoke", "out")


def test_what_is_as_by_default_is_not_said():
    assert command_of("jerp run x", Config(), NAMES) == "jerp run x"


def test_options_are_in_the_order_of_their_names():
    config = Config(("b", "a"), 1, Path("there"), True)
    command = "jerp run x --domain b a --seeds 1 --smoke --out there"
    assert command_of("jerp run x", config, NAMES) == command


def test_what_changes_no_result_is_left_out():
    assert command_of("jerp run x", Config(workers=7), NAMES) == "jerp run x"
