"""What a process took: memory, and what it compiled."""

from __future__ import annotations

import resource
import sys
from typing import Any

from jax import monitoring

__all__ = ["ProcessNotes"]


class ProcessNotes:
    """Counts compilations from its construction on."""

    def __init__(self):
        self._seconds: list[float] = []
        monitoring.register_event_duration_secs_listener(self._note)

    def taken(self) -> dict[str, Any]:
        """Compilations since the last call, and the largest memory ever held."""
        peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
        found = {
            # Linux counts in KiB.
            "peak_memory_bytes": peak * (1 if sys.platform == "darwin" else 1024),
            "compilations": len(self._seconds),
            "compile_seconds": sum(self._seconds),
        }
        self._seconds.clear()
        return found

    def _note(self, event: str, duration_secs: float, **kwargs: Any) -> None:
        if event.endswith("backend_compile_duration"):
            self._seconds.append(duration_secs)
