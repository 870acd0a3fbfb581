"""`jerp view`: one HTML page of a harness run."""

from __future__ import annotations

import sys
from dataclasses import dataclass
from pathlib import Path

from tyro.conf import Positional

__all__ = ["View"]


@dataclass(frozen=True)
class View:
    """Write one self-contained HTML page with every episode of a harness run.

    Attributes:
      folder: of a run of `jerp run harness`, or of an agent's log. Runs that train a
        policy keep no episodes.
    """

    folder: Positional[Path]

    def __call__(self) -> int:
        """Prints where the page is, and what it had to leave out; 1 if anything."""
        from jerp.runs.browse import printable
        from jerp.runs.viewer import write_view

        notes: list[str] = []
        print(write_view(self.folder, on_note=notes.append))
        for note in notes:
            print(printable(note), file=sys.stderr)
        return 1 if notes else 0
