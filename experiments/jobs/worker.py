"""Runs a module as a program that ends when the process that started it does.

    python -m experiments.jobs.worker PARENT MODULE ARGUMENT...

PARENT is the number of the process that started it. One that was killed cannot end its
workers, and they would keep the folders of their jobs locked until they are through.
"""

from __future__ import annotations

import os
import runpy
import sys
import threading
import time

SECONDS = 0.5
"""Between two looks."""


def end_with(parent: int) -> None:
    """Ends this process, as a kill would, once it is no child of `parent`."""

    def watch() -> None:
        while os.getppid() == parent:
            time.sleep(SECONDS)
        os._exit(1)

    threading.Thread(target=watch, daemon=True).start()


if __name__ == "__main__":
    _, number, module, *words = sys.argv
    end_with(int(number))
    sys.argv[1:] = words
    runpy.run_module(module, run_name="__main__", alter_sys=True)
