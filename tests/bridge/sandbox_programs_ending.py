"""Programs that end badly, or lie about how. Imports the standard library alone."""

from __future__ import annotations

from tests.bridge.sandbox_attack import Attack

__all__ = ["ENDING"]

ENDING = {
    "stays_after_the_end": Attack(
        """
import atexit

class Stays:
    def __del__(self):
        while True:
            pass

kept = Stays()
atexit.register(kept.__del__)
def attack():
    return []
"""
    ),
    "leaves_in_a_call": Attack("def attack(): raise SystemExit(0)", passes=False),
    "leaves_at_once_in_a_call": Attack("def attack(): os._exit(0)", "error", False),
    "leaves": Attack("raise SystemExit(0)", "error", False),
    "leaves_at_once": Attack("os._exit(0)", "error", False),
    "aborts": Attack("def attack(): os.abort()", "killed", False),
    "crashes": Attack(
        """
def attack():
    import ctypes
    ctypes.string_at(0)
""",
        "killed",
        False,
    ),
    "garbage": Attack(
        """
def attack():
    for handle in range(3, 64):
        try:
            os.write(handle, b'\\xff\\x00{"value": }\\n' + b"[" * 5000 + b"\\n")
        except OSError:
            pass
    return []
""",
        "error",
        False,
    ),
    "closes_everything": Attack(
        """
def attack():
    os.closerange(0, 64)
    return []
""",
        "error",
        False,
    ),
    "speaks_for_later_calls": Attack(
        """
for handle in range(3, 64):
    try:
        os.write(handle, b'["loaded", ""]\\n["value", "[]"]\\n["value", "[]"]\\n')
    except OSError:
        pass
""",
        "error",
        False,
    ),
}
