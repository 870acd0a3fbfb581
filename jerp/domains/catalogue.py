"""The benchmarks by name; each is imported only where it is made."""

from __future__ import annotations

from pathlib import Path

from jerp.domains.benchmark import Benchmark
from jerp.errors import ConfigError, UnknownNameError

__all__ = ["BENCHMARKS", "make_benchmark"]

BENCHMARKS = (
    *("alfworld", "bfcl", "dbbench", "humaneval"),
    *("minigrid", "scienceworld", "tau2-airline", "tau2-retail", "tau2-telecom"),
    *("textworld", "textworld-express", "webshop"),
)


def make_benchmark(name: str, data: Path | None = None) -> Benchmark:
    """The adapter of a benchmark; close it after use.

    Args:
      name: one of `BENCHMARKS`.
      data: folder with the benchmark's files, for tau2 a Python that has it; None takes
        those of its package, or what its variable names.

    Raises:
      UnknownNameError: no such benchmark.
      MissingExtraError: its package is not installed; the message has the command.
      ConfigError: files are needed and none are named, or the other way round.
      StorageError: the files cannot be read.
    """
    match name:
        case "alfworld":
            from jerp.domains.alfworld import AlfWorld

            return AlfWorld(data)
        case "bfcl":
            from jerp.domains.bfcl import Bfcl

            return Bfcl(data)
        case "dbbench":
            from jerp.domains.dbbench import DbBench

            return DbBench(data)
        case "humaneval":
            from jerp.domains.humaneval import HumanEval

            return HumanEval(data)
        case "minigrid":
            from jerp.domains.minigrid import MiniGrid

            _refuse(data, name)
            return MiniGrid()
        case "scienceworld":
            from jerp.domains.scienceworld import ScienceWorld

            _refuse(data, name)
            return ScienceWorld()
        case "tau2-airline" | "tau2-retail" | "tau2-telecom":
            from jerp.domains.tau2 import Tau2

            return Tau2(name.removeprefix("tau2-"), data)  # pyright: ignore
        case "textworld":
            from jerp.domains.textworld import TextWorld

            return TextWorld(data)
        case "textworld-express":
            from jerp.domains.textworld_express import TextWorldExpress

            _refuse(data, name)
            return TextWorldExpress()
        case "webshop":
            from jerp.domains.webshop import WebShop

            return WebShop(data)
        case _:
            raise UnknownNameError("benchmark", name, BENCHMARKS)


def _refuse(data: Path | None, name: str) -> None:
    if data is not None:
        raise ConfigError(
            f"data: {name} makes its worlds itself, got {data}; leave it out"
        )
