"""Programs that use up what there is. Imports the standard library alone."""

from __future__ import annotations

from tests.bridge.sandbox_attack import Attack

__all__ = ["EXHAUSTING"]

EXHAUSTING = {
    "loop": Attack(
        """
def attack():
    while True:
        pass
""",
        "timeout",
        False,
    ),
    "fork_bomb": Attack(
        """
def attack():
    import time
    while True:
        try:
            if os.fork() == 0:
                time.sleep(5)
                os._exit(0)
        except OSError:
            pass
""",
        "timeout",
        False,
    ),
    "memory_at_once": Attack(
        "def attack(): return len(bytearray(10 << 30))", "memory", False
    ),
    "memory_bit_by_bit": Attack(
        """
def attack():
    kept = []
    while True:
        kept.append(bytearray(1 << 20))
""",
        "memory",
        False,
    ),
    "memory_without_python": Attack(
        """
def attack():
    import ctypes, mmap
    return done({
        "mmap": lambda: mmap.mmap(-1, 10 << 30), "memfd": lambda: os.memfd_create("x")
    })
"""
    ),
    "sparse_files": Attack(
        """
def attack():
    def grow(name, size):
        with open(name, "wb") as file:
            file.truncate(size)
    def reserve(name, size):
        os.posix_fallocate(os.open(name, os.O_CREAT | os.O_RDWR), 0, size)

    return done({
        "truncate": lambda: grow("a", 1 << 40),
        "reserve": lambda: reserve("b", 1 << 30),
    })
"""
    ),
    "returns_too_much": Attack(
        "def attack(): return ['x' * 100] * 10_000", passes=False
    ),
    "returns_too_deep": Attack(
        """
def attack():
    deep = []
    for _ in range(100_000):
        deep = [deep]
    return deep
""",
        passes=False,
    ),
    "unpacks_too_much": Attack(
        """
def attack():
    import zlib
    packed = zlib.compress(bytes(1 << 26))
    return len(zlib.decompress(packed) + zlib.decompress(packed) * 8)
""",
        "memory",
        False,
    ),
    "pattern": Attack(
        """
def attack():
    import re
    return re.match("(a+)+$", "a" * 64 + "b")
""",
        "timeout",
        False,
    ),
    "prints_for_ever": Attack(
        """
def attack():
    while True:
        print("x" * 80)
""",
        "output_limit",
        False,
    ),
    "errors_for_ever": Attack(
        """
import sys
while True:
    sys.stderr.write("x" * 80)
""",
        "output_limit",
        False,
    ),
    "results_for_ever": Attack(
        """
while True:
    for handle in range(3, 64):
        try:
            os.write(handle, b"x" * 4096)
        except OSError:
            pass
""",
        "output_limit",
        False,
    ),
    "open_files": Attack(
        """
def attack():
    inherited = done({handle: lambda h=handle: os.fstat(h) for handle in range(3, 256)})
    if len(inherited) != 1:
        return inherited
    kept = []
    return done({"many": lambda: kept.extend(os.pipe() for _ in range(1000))})
"""
    ),
    "fills_the_folder": Attack(
        """
def attack():
    def fill(number):
        with open(f"file{number}", "wb") as file:
            for _ in range(12):
                file.write(bytes(1 << 20))
    return done({"three": lambda: [fill(n) for n in range(3)],
                 "names": lambda: [open(f"n{n}", "w").close() for n in range(5000)]})
"""
    ),
    "deep_recursion": Attack(
        """
def attack():
    return attack()
""",
        passes=False,
    ),
}
