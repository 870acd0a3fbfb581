"""Settings that end in a moment, for sweeps: what a job of a sweep can come to."""

import json
import os
import signal
import time
from dataclasses import dataclass
from pathlib import Path

from experiments.settings import Setting


@dataclass(frozen=True)
class MadeUpConfig:
    number: int
    way: str = "well"
    session: int = 0
    out: Path | None = None
    smoke: bool = False
    full: bool = False

    @property
    def command(self):
        return f"jerp run made-up --number {self.number} --out {self.out}"


def settings(*ways, session=0):
    return tuple(
        Setting(f"made_up/{i}", MadeUpConfig(i, way, session), run)
        for i, way in enumerate(ways)
    )


def begun(folder, number):
    """How often a setting was begun."""
    path = folder / "made_up" / str(number) / "begun"
    return len(path.read_text()) if path.exists() else 0


def run(config):
    config.out.mkdir(parents=True, exist_ok=True)
    with open(config.out / "begun", "a") as file:
        file.write(".")
    tries = len((config.out / "begun").read_text())
    if config.way == "killed once" and tries == 1:
        os.kill(os.getpid(), signal.SIGKILL)
    if config.way == "always killed":
        os._exit(1)
    mended = (config.out.parent / "mended").exists()
    if config.way == "raises" and not mended:
        raise ValueError("the first line\nno such luck")
    if config.way == "interrupts once" and tries == 1:
        os.kill(config.session, signal.SIGINT)
        end = time.monotonic() + 60
        while not (config.out.parent / "go on").exists() and time.monotonic() < end:
            time.sleep(0.05)
    if config.way == "leaves nothing" and not mended:
        return {}
    devices = os.environ.get("CUDA_VISIBLE_DEVICES")
    results = {"number": config.number, "smoke": config.smoke, "devices": devices}
    (config.out / "results.json").write_text(json.dumps(results))
    return results
