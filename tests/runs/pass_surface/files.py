"""Small files of outcomes, written where a test wants them."""

NESTED = ("task", "sample", "spent", "outcome")


def write_csv(path, rows, header=NESTED):
    """Rows of cells as a CSV file; None is an empty cell."""
    lines = [",".join("" if v is None else str(v) for v in row) for row in rows]
    path.write_text("\n".join([",".join(header), *lines]) + "\n")
    return path


def runs_of(task, *runs, extra=()):
    """Rows of one task from (spent, outcome) pairs, samples numbered from 0."""
    return [(task, i, *run, *extra) for i, run in enumerate(runs)]
