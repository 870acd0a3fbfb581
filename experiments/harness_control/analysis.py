"""Numbers across run folders of the experiment: one row a run, domain and arm.

python -m experiments.harness_control.analysis jerp-runs/sweep/harness_control/*
"""

from __future__ import annotations

import json
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.table import Table

from jerp.errors import StorageError
from jerp.runs.harness.arms import ARM_LABELS

__all__ = ["load_results", "score"]


def load_results(folder: Path) -> dict[str, Any]:
    """Reads `results.json` of a run folder.

    Raises:
      StorageError: there is none, or it is not JSON.
    """
    path = folder / "results.json"
    try:
        return json.loads(path.read_text(encoding="utf-8"))
    except FileNotFoundError:
        raise StorageError(
            f"{path} is missing: the run has not finished; the same command resumes it"
        ) from None
    except json.JSONDecodeError as error:
        raise StorageError(f"{path} is not JSON: {error}") from None


def score(folders: Sequence[Path]) -> list[dict[str, Any]]:
    """One row a run, domain and arm: Q, HMS and their differences against base."""
    rows = []
    for folder in folders:
        for domain, part in load_results(folder)["domains"].items():
            for arm, values in part["arms"].items():
                difference = values.get("difference", {})
                rows.append(
                    {
                        "run": folder.name,
                        "domain": domain,
                        "arm": arm,
                        "q": values["q"]["point"],
                        "hms": values["hms"]["point"],
                        "q_difference": difference.get("q", {}).get("point"),
                        "hms_difference": difference.get("hms", {}).get("point"),
                    }
                )
    return rows


def _main(folders: Sequence[Path]) -> None:
    table = Table()
    for column in ("run", "domain", "arm", "Q", "HMS", "Q - base", "HMS - base"):
        table.add_column(column)
    for row in score(folders):
        numbers = (row["q"], row["hms"], row["q_difference"], row["hms_difference"])
        cells = ("" if n is None else f"{n:.3f}" for n in numbers)
        table.add_row(row["run"], row["domain"], ARM_LABELS[row["arm"]], *cells)
    Console().print(table)


if __name__ == "__main__":
    _main([Path(p) for p in sys.argv[1:]])
