"""Waiting for a coroutine from synchronous code, wherever that code runs.

One event loop for the whole process lives in a thread of its own, so that it works
inside a notebook's running loop and inside a JAX callback, and so that an executor
meets one loop only, however many sessions share it.
"""

from __future__ import annotations

import asyncio
import os
import threading
from collections.abc import Coroutine
from functools import lru_cache
from typing import Any, TypeVar

from jerp.errors import ExecutorError

__all__ = ["wait_for"]

T = TypeVar("T")


def wait_for(coroutine: Coroutine[Any, Any, T]) -> T:
    """The result of `coroutine`; an interrupt (Ctrl-C) cancels it and propagates.

    Raises:
      ExecutorError: called from the bridge's own loop, which would wait for ever.
    """
    loop = _loop(os.getpid())
    if _running_loop() is loop:
        coroutine.close()
        raise ExecutorError(
            "an executor called a synchronous session from its own coroutine; "
            "await Session.step_async there"
        )
    future = asyncio.run_coroutine_threadsafe(coroutine, loop)
    try:
        return future.result()
    except BaseException:
        # Also after Ctrl-C, which this thread alone sees: stop the work behind it.
        future.cancel()
        raise


@lru_cache(maxsize=1)
def _loop(pid: int) -> asyncio.AbstractEventLoop:
    """The bridge's loop. `pid` is the key because a forked child has no threads."""
    del pid
    loop = asyncio.new_event_loop()
    threading.Thread(target=loop.run_forever, name="jerp-bridge", daemon=True).start()
    return loop


def _running_loop() -> asyncio.AbstractEventLoop | None:
    try:
        return asyncio.get_running_loop()
    except RuntimeError:
        return None
