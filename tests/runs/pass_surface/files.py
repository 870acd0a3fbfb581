"""Small files of outcomes, written where a test wants them."""

NESTED = ("task", "sample", "spent", "outcome")

# (spent, outcome) of a run; every task has four, at horizons 1 and 3.
EARLY, LATE, NEVER = (1, "success"), (3, "success"), (3, "failure")
LOST = (None, "infrastructure")
SOLVED, SLOW, HALF = (EARLY,) * 4, (LATE,) * 4, (EARLY, NEVER, NEVER, NEVER)
OPEN = (NEVER,) * 4

# By T = 3: five gains, one loss, two solved by both, two by neither. By T = 1 B gains
# but one, because it is slow.
A = {
    **{f"gain{i}": OPEN for i in range(5)},
    "loss": HALF,
    "both0": SOLVED,
    "both1": HALF,
    "neither0": OPEN,
    "neither1": OPEN,
}
B = {
    **{f"gain{i}": SLOW for i in range(4)},
    "gain4": HALF,
    "loss": OPEN,
    "both0": SOLVED,
    "both1": SLOW,
    "neither0": OPEN,
    "neither1": OPEN,
}


def write_csv(path, rows, header=NESTED):
    """Rows of cells as a CSV file; None is an empty cell."""
    lines = [",".join("" if v is None else str(v) for v in row) for row in rows]
    path.write_text("\n".join([",".join(header), *lines]) + "\n")
    return path


def runs_of(task, *runs, extra=()):
    """Rows of one task from (spent, outcome) pairs, samples numbered from 0."""
    return [(task, i, *run, *extra) for i, run in enumerate(runs)]


def written(path, runs, kind=None):
    """The runs of each task as a CSV file; `kind` gives the column of that name."""
    rows = [
        row
        for task, four in runs.items()
        for row in runs_of(task, *four, extra=() if kind is None else (kind(task),))
    ]
    return write_csv(path, rows, NESTED if kind is None else (*NESTED, "kind"))
