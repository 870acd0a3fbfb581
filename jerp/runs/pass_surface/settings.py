"""The settings of `jerp passkt`: what the command line takes and the results record.

Light to import, because `jerp --help` shows them. What is wrong with them is refused
after parsing, as a `ConfigError` in one line.
"""

from __future__ import annotations

import math
import os
import shlex
from dataclasses import dataclass, fields
from pathlib import Path
from typing import Literal

from tyro.conf import Positional

from jerp.errors import ConfigError
from jerp.runs.seeds import check_seed

__all__ = ["AUTO", "PassktSettings", "check_settings", "command", "number_text"]

AUTO = "auto"
LEAST, MOST = 2.0**-126, (2 - 2.0**-23) * 2.0**127
"""Normal numbers of float32, in which budgets are compared."""

MOST_RESAMPLES = 1_000_000
"""Limits of as many hardly depend on the draw: more only take time."""

RESERVED = ("task", "sample", "spent", "outcome", "horizon")


@dataclass(frozen=True)
class PassktSettings:
    """Pass@(k, T): how often k runs of at most T solve a task, from logged outcomes.

    Attributes:
      file: a .csv, .jsonl or .parquet with the columns task, sample, spent, outcome; or
        a log of inspect_ai, tau2-bench, verifiers, HumanEval, or of conversations.
      file2: a second agent on the same tasks; the comparison is paired by task.
      by: a column with one value a task; a surface for each value.
      ks: budgets k, such as 1,2,4. auto: powers of two up to the fewest valid samples
        of a task, and that number itself.
      horizons: budgets T in the unit of spent, such as 1,2.5. auto: the values of
        spent, or six of them; with a column horizon its values.
      protocol: nested cuts long runs at T; rerun has other runs for each T, which
        the column horizon names. auto: rerun if there is such a column.
      announced: was the agent told its budget T? auto: unknown of a table; a log has
        to be given an answer, which may be unknown.
      unit: what spent counts. Of a log, steps are the agent's messages that call a
        tool, turns all its messages, calls its tool calls.
      min_coverage: least share of a task's runs that the infrastructure let finish.
      level: nominal coverage of intervals and bands.
      resamples: of tasks, for intervals and bands; at most 1,000,000.
      seed: of the resampling; at least 0.
      out: folder for results.json, the report and figures; passkt-NAME if left out.
      format: what wrote the files; auto looks. table is one with the columns above.
      score: which score of a log says that a run succeeded, if it has several.
      success_at: from which score on a run succeeded; needed unless all are 0 or 1.
      spent: the field of a log that says what a run spent, or a number for all.
      task: the field of a log that names the task, where it has no usual name.
      agent: whose runs they are, if the log has several agents.
      replicates: the column that says which training seed a run is of; gives intervals
        between seeds. A task may have samples of the same names under each.
      errors: the field of HumanEval's samples or conversations that says whether the
        infrastructure ended a run, or none, where it ended no run.
      truncated: the field of those that says whether a limit cut a run short, true,
        false or a finish_reason; or none, where none was cut.
    """

    file: Positional[Path]
    file2: Positional[Path | None] = None
    by: str | None = None
    ks: str = AUTO
    horizons: str = AUTO
    protocol: Literal["auto", "nested", "rerun"] = AUTO
    announced: Literal["auto", "yes", "no", "unknown"] = AUTO
    unit: Literal["steps", "turns", "calls", "tokens", "seconds", "dollars"] = "steps"
    min_coverage: float = 0.9
    level: float = 0.95
    resamples: int = 2000
    seed: int = 0
    out: Path | None = None
    format: Literal[
        "auto", "table", "inspect", "tau2", "verifiers", "humaneval", "chat"
    ] = AUTO
    score: str | None = None
    success_at: float | None = None
    spent: str | None = None
    task: str | None = None
    agent: str | None = None
    replicates: str | None = None
    errors: str | None = None
    truncated: str | None = None

    @property
    def files(self) -> tuple[Path, ...]:
        """The one or two inputs."""
        return (self.file,) if self.file2 is None else (self.file, self.file2)

    @property
    def file_names(self) -> list[str]:
        """The inputs as text; bytes that are no UTF-8, which JSON cannot hold, escaped.

        Python keeps such bytes as surrogates, which no encoding and no font takes.
        """
        return [os.fsencode(p).decode("utf-8", "backslashreplace") for p in self.files]

    @property
    def folder(self) -> Path:
        """Where the results go."""
        stems = "-".join(path.stem for path in self.files)
        return Path(f"passkt-{stems}") if self.out is None else self.out

    @property
    def chosen_ks(self) -> tuple[int, ...] | None:
        """The budgets k in ascending order, each once; None for auto."""
        values = _numbers("ks", self.ks)
        if values is None:
            return None
        if not all(k >= 1 and k.is_integer() for k in values):
            raise ConfigError(f"--ks: expected whole numbers from 1 on, got {self.ks}")
        return tuple(map(int, values))

    @property
    def chosen_horizons(self) -> tuple[float, ...] | None:
        """The budgets T in ascending order, each once; None for auto."""
        values = _numbers("horizons", self.horizons)
        if values is None:
            return None
        if not all(0 <= t < math.inf for t in values):
            raise ConfigError(
                f"--horizons: expected finite numbers from 0 on, got {self.horizons}"
            )
        if not all(t == 0 or LEAST <= t <= MOST for t in values):
            raise ConfigError(
                f"--horizons: expected 0 or numbers from {LEAST:.2g} to {MOST:.2g}, "
                f"the range of float32, got {self.horizons}; use another unit"
            )
        return values


def check_settings(settings: PassktSettings) -> None:
    """Refuses what cannot be, naming the option, before any file is read.

    Raises:
      ConfigError: a value out of range, or a column that is not one to group by.
    """
    check_seed(settings.seed)
    rules = (
        ("min-coverage", 0 <= settings.min_coverage <= 1, "in [0, 1]"),
        ("level", 0 < settings.level < 1, "in (0, 1)"),
        (
            "resamples",
            1 <= settings.resamples <= MOST_RESAMPLES,
            f"from 1 to {MOST_RESAMPLES:,}",
        ),
        (
            "by",
            settings.by not in RESERVED,
            f"a further column, with one value a task (the surface itself is made of "
            f"{', '.join(RESERVED)})",
        ),
        (
            "replicates",
            settings.replicates not in RESERVED,
            f"a further column, the training seed of a run (the surface itself is made "
            f"of {', '.join(RESERVED)})",
        ),
    )
    for name, holds, expected in rules:
        if not holds:
            got = getattr(settings, name.replace("-", "_"))
            raise ConfigError(f"--{name}: expected {expected}, got {got}")
    if settings.by is not None and settings.by == settings.replicates:
        raise ConfigError(
            f"--by: expected another column than --replicates, got {settings.by} for "
            "both: a part would have runs of one training seed, and nothing between "
            "seeds; leave out --by. The surface of one seed is that of a file with its "
            "rows alone"
        )
    # Reading them is the check.
    _ = settings.chosen_ks, settings.chosen_horizons


def command(settings: PassktSettings) -> str:
    """The command line that makes these results, without what is left to default."""
    words = ["jerp", "passkt", *settings.file_names]
    for field in fields(settings):
        value = getattr(settings, field.name)
        if field.name not in ("file", "file2") and value != field.default:
            words += [f"--{field.name.replace('_', '-')}", str(value)]
    return shlex.join(words)


def number_text(value: float) -> str:
    """A number as people write it: 4, not 4.0."""
    return f"{value:.12g}"


def _numbers(name: str, text: str) -> tuple[float, ...] | None:
    if text == AUTO:
        return None
    try:
        return tuple(sorted({float(word) for word in text.split(",")}))
    except ValueError as error:
        raise ConfigError(
            f"--{name}: expected numbers separated by commas, such as 1,2,4, or auto, "
            f"got {text!r}"
        ) from error
