"""Runs settings by stable id in this process, one after another.

python -m experiments.launch harness_control/0 --smoke
python -m experiments.launch harness_control --shard 1/4      # a quarter of them
python -m experiments.launch --list

Many processes side by side, or a cluster: `experiments.sweep`.
"""

from __future__ import annotations

import sys
from dataclasses import dataclass
from pathlib import Path

import tyro

from experiments.catalogue import EXPERIMENTS, select
from experiments.settings import shard
from jerp.errors import JerpError

__all__ = ["Launch", "main"]


@dataclass(frozen=True)
class Launch:
    """Runs settings by stable id.

    Attributes:
      name: an id such as `harness_control/0`, or an experiment for all of its ids.
      shard: `i/n` runs every n-th setting from the i-th.
      smoke: a minute or so a setting instead of many; numbers mean nothing.
      out: folder that receives one run folder an id.
      list: prints the ids and ends.
    """

    name: tyro.conf.Positional[str] = "harness_control"
    shard: str = "0/1"
    smoke: bool = False
    out: Path = Path("jerp-runs") / "sweep"
    list: bool = False


def main(launch: Launch) -> None:
    """Runs what `launch` names, one after another."""
    if launch.list:
        for settings in EXPERIMENTS.values():
            for setting in settings:
                print(f"{setting.id}  {setting.config.command}")
        return
    for setting in shard(select(launch.name), launch.shard):
        print(f"== {setting.id}")
        setting.run(setting.placed(launch.out, smoke=launch.smoke).config)


if __name__ == "__main__":
    try:
        main(tyro.cli(Launch, prog="python -m experiments.launch"))
    except JerpError as error:
        print(f"jerp: {error}", file=sys.stderr)
        sys.exit(2)
