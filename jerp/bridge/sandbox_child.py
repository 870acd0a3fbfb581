"""The sandbox's own process: protects itself, then runs untrusted code in forks of it.

Run as a program by `jerp.bridge.sandbox_worker` with a bare interpreter, never
imported. It takes settings as JSON in its argument, answers one frame (4 bytes of
length, then JSON) with the protections that held against an attempt, and then one frame
a request. It forks before it reads: the fork reads the request, so that this process
stays as it was at the start and no run can find anything of an earlier one.
"""

from __future__ import annotations

import contextlib
import gc
import json
import os
import select
import shutil
import signal
import sys
import time

sys.path.append(os.path.dirname(os.path.abspath(__file__)))
import sandbox_code
from sandbox_entry import enter, held, protect

PRELOADED = """bisect collections copy dataclasses datetime decimal enum fractions
functools heapq itertools math operator random re statistics string typing"""
REQUESTS, ANSWERS = 0, 1
CHUNK = 1 << 16
MOST_HANDLES = 64


def send(message: dict) -> None:
    """Writes one frame to the parent."""
    body = json.dumps(message).encode()
    data = len(body).to_bytes(4, "big") + body
    while data:
        data = data[os.write(ANSWERS, data) :]


def read_exactly(size: int) -> bytes:
    """Reads from the parent; ends the process where the parent has gone."""
    data = bytearray()
    while len(data) < size:
        chunk = os.read(REQUESTS, min(size - len(data), CHUNK))
        if not chunk:
            os._exit(0)
        data += chunk
    return bytes(data)


def receive() -> dict:
    """Reads one frame from the parent."""
    return json.loads(read_exactly(int.from_bytes(read_exactly(4), "big")))


def probe(settings: dict) -> list[str]:
    """Tries the protections in a fork that is protected as a run is.

    Raises:
      OSError: they could not be put in place.
    """
    reader, writer = os.pipe()
    pid = os.fork()
    if pid == 0:
        try:
            protect(settings)
            report = {"held": held(settings)}
        except BaseException as error:
            report = {"failed": f"{type(error).__name__}: {error}"}
        os.write(writer, json.dumps(report).encode())
        os._exit(0)
    os.close(writer)
    report = json.loads(os.read(reader, CHUNK) or b'{"failed": "the trial ended"}')
    os.close(reader)
    finish(pid, settings, time.monotonic() + settings["wall_seconds"])
    if "failed" in report:
        raise OSError(report["failed"])
    return report["held"]


def start_run(settings: dict) -> tuple[int, dict[str, int]]:
    """Forks a run; returns its process id and our ends of its pipes."""
    pipes = {name: os.pipe() for name in ("setup", "results", "printed")}
    pid = os.fork()
    if pid == 0:
        run(settings, **{name: writer for name, (_, writer) in pipes.items()})
    for reader, writer in pipes.values():
        os.close(writer)
        os.set_blocking(reader, False)
    return pid, {name: reader for name, (reader, _) in pipes.items()}


def run(settings: dict, *, setup: int, results: int, printed: int) -> None:
    """One run, in its fork: reads the request, gives all else up, evaluates."""
    try:
        request = receive()
        nothing, writer = os.pipe()
        for target, source in enumerate((nothing, printed, printed)):
            os.dup2(source, target)
        os.close(writer)
        for handle in range(3, MOST_HANDLES):
            if handle not in (setup, results):
                with contextlib.suppress(OSError):
                    os.close(handle)
        protect(settings)
        os.write(setup, b"ok")
        os.close(setup)
    except BaseException as error:
        os.write(setup, f"{type(error).__name__}: {error}".encode())
        os._exit(1)
    leave = os._exit  # bound now: the code may replace it
    try:
        if settings["runs"] == "sql":
            import sandbox_statement  # `main` has done so: its file is out of sight

            sandbox_statement.evaluate(request, settings, results)
        else:
            chars = settings["result_chars"]
            sandbox_code.evaluate(request["code"], request["calls"], results, chars)
    finally:
        leave(0)


def collect(
    pid: int, pipes: dict[str, int], settings: dict, deadline: float
) -> tuple[dict[str, bytearray], bool]:
    """Reads a run's pipes until all are closed, one is too full or time is up.

    Returns:
      What was read, by pipe, and whether a pipe was too full.
    """
    text = {name: bytearray() for name in pipes}
    names = {handle: name for name, handle in pipes.items()}
    poller = select.poll()
    poller.register(REQUESTS, 0)  # only its closing: the parent has gone
    for handle in names:
        poller.register(handle, select.POLLIN)
    while names and (left := deadline - time.monotonic()) > 0:
        for handle, _ in poller.poll(left * 1000):
            if handle == REQUESTS:
                os.kill(pid, signal.SIGKILL)
                sys.exit()
            chunk = os.read(handle, CHUNK)
            text[names[handle]] += chunk
            if len(text[names[handle]]) > settings["output_kib"] << 10:
                return text, True
            if not chunk:
                poller.unregister(handle)
                del names[handle]
    return text, False


def finish(pid: int, settings: dict, deadline: float) -> tuple[int, float, bool]:
    """Waits for a fork until `deadline`, then kills it; removes what it left.

    Returns:
      Wait status, seconds of CPU, and whether it was killed here.
    """
    done, status, usage = os.wait4(pid, os.WNOHANG)
    while not done and time.monotonic() < deadline:
        time.sleep(0.0002)
        done, status, usage = os.wait4(pid, os.WNOHANG)
    if not done:
        os.kill(pid, signal.SIGKILL)
        _, status, usage = os.wait4(pid, 0)
    if settings["isolation"] == "limits":
        with contextlib.suppress(OSError):  # nothing may be left of the group
            os.killpg(pid, signal.SIGKILL)
        shutil.rmtree(f"{settings['folder']}/run", ignore_errors=True)
    return status, usage.ru_utime + usage.ru_stime, not done


def drain(handle: int, text: bytearray) -> None:
    """Takes what an ended run left in its pipe."""
    with contextlib.suppress(BlockingIOError):
        while chunk := os.read(handle, CHUNK):
            text += chunk


def out_of_time(number: int, cpu: float, settings: dict) -> bool:
    """Whether a signal was the kernel's answer to the limit of processor time.

    SIGXCPU at the limit, SIGKILL a second later where the code ignores that. The
    kernel's clock for limits and the one that is read afterwards differ a little.
    """
    return number == signal.SIGXCPU or (
        number == signal.SIGKILL and cpu > 0.8 * settings["cpu_seconds"]
    )


def serve_one(settings: dict) -> dict:
    """One run from fork to answer."""
    deadline = time.monotonic() + settings["wall_seconds"]
    pid, pipes = start_run(settings)
    text, too_much = collect(pid, pipes, settings, deadline)
    status, cpu, killed = finish(pid, settings, 0.0 if too_much else deadline)
    drain(pipes["results"], text["results"])
    for handle in pipes.values():
        os.close(handle)
    if text["setup"] != b"ok":
        return {"end": "setup", "detail": text["setup"].decode(errors="replace")}
    signaled = os.WIFSIGNALED(status)
    number = os.WTERMSIG(status) if signaled else os.WEXITSTATUS(status)
    end = "signal" if signaled else "exit"
    if too_much:
        end = "output"
    elif killed or (signaled and out_of_time(number, cpu, settings)):
        end = "time"
    return {"end": end, "number": number, "results": text["results"].decode("latin-1")}


def main() -> None:
    """Protects this process, reports, and serves until the parent closes the pipe."""
    settings = json.loads(sys.argv[1])
    for name in PRELOADED.split():
        __import__(name)
    if settings["runs"] == "sql":
        __import__("sandbox_statement")
    sys.path.pop()
    try:
        how = enter(settings, pipes=(REQUESTS, ANSWERS))
        names = probe(settings)
    except OSError as error:
        send({"failed": str(error)})
        return
    send({"protections": {name: how.get(name, "") for name in names}})
    gc.freeze()
    poller = select.poll()
    poller.register(REQUESTS, select.POLLIN)
    try:
        while poller.poll()[0][1] & select.POLLIN:
            send(serve_one(settings))
    finally:
        shutil.rmtree(settings["folder"], ignore_errors=True)


if __name__ == "__main__":
    main()
