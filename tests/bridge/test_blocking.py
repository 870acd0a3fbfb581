import asyncio
import os
import signal
import threading

import pytest

from jerp.bridge.blocking import wait_for
from jerp.errors import ExecutorError


async def double(x):
    await asyncio.sleep(0)
    return 2 * x


def test_returns_the_result_and_raises_the_error():
    async def fail():
        raise KeyError("inside")

    assert wait_for(double(21)) == 42
    with pytest.raises(KeyError, match="inside"):
        wait_for(fail())


def test_works_inside_a_running_loop_as_in_a_notebook():
    async def cell():
        return wait_for(double(4))

    assert asyncio.run(cell()) == 8


def test_all_callers_share_one_loop():
    async def loop():
        return asyncio.get_running_loop()

    found = []
    threads = [
        threading.Thread(target=lambda: found.append(wait_for(loop())))
        for _ in range(3)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(set(map(id, found))) == 1


def test_an_interrupt_cancels_the_coroutine():
    cancelled = threading.Event()

    async def forever():
        try:
            await asyncio.sleep(0.2)  # until the caller waits
            os.kill(os.getpid(), signal.SIGINT)
            await asyncio.sleep(3600)
        except asyncio.CancelledError:
            cancelled.set()
            raise

    with pytest.raises(KeyboardInterrupt):
        wait_for(forever())
    assert cancelled.wait(timeout=10)


def test_waiting_in_the_bridges_own_loop_is_refused():
    async def nested():
        return wait_for(double(1))

    with pytest.raises(ExecutorError, match="step_async"):
        wait_for(nested())


@pytest.mark.filterwarnings("ignore::DeprecationWarning")
@pytest.mark.filterwarnings("ignore::RuntimeWarning")
def test_a_forked_child_gets_a_loop_of_its_own():
    assert wait_for(double(1)) == 2
    child = os.fork()
    if child == 0:
        os._exit(wait_for(double(3)))
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 6
