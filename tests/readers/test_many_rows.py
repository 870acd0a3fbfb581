"""A million runs: streamed, so that memory is that of the columns, not of the text."""

import json
import resource
import subprocess
import sys
import time

import pytest

from jerp.readers.outcomes import read_outcomes

WORDS = ("failure", "success", "truncated")

CHILD = """
import json, resource, sys, time
started = time.monotonic()
from jerp.readers.log_options import LogOptions
from jerp.readers.logs import read_runs
imported = time.monotonic()
table = read_runs(sys.argv[1])
read = time.monotonic()
arrays = table.arrays()
print(json.dumps({
    "seconds": read - imported,
    "peak": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024,
    "shape": arrays.outcome.shape,
    "successes": int((arrays.outcome == 1).sum()),
    "spent": float(table.spent.sum()),
}))
"""


def line(kind, task, sample):
    """One run: its outcome and cost follow from its numbers alone."""
    spent, word = (task + sample) % 6, WORDS[(task * 7 + sample) % 3]
    if kind == "csv":
        return f"task-{task},{sample},{spent},{word}\n"
    if kind == "jsonl":
        row = {"task": task, "sample": sample, "spent": spent, "outcome": word}
        return json.dumps(row) + "\n"
    call = {"role": "assistant", "tool_calls": [{}]}
    row = {"task": task, "sample": sample, "reward": int(word == "success")}
    row |= {"error": None, "truncated": word == "truncated"}
    return json.dumps({**row, "messages": [call] * spent}) + "\n"


def written(path, kind, tasks, samples):
    with open(path, "w") as file:
        if kind == "csv":
            file.write("task,sample,spent,outcome\n")
        for task in range(tasks):
            file.writelines(line(kind, task, sample) for sample in range(samples))
    return path


def test_a_hundred_thousand_rows(tmp_path):
    path = written(tmp_path / "runs.csv", "csv", 1000, 100)
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    started = time.monotonic()
    table = read_outcomes(path)
    seconds = time.monotonic() - started
    grown = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before
    print(f"100,000 rows: {seconds:.1f} s, {grown / 1024:.0f} MB more")
    assert len(table.tasks) == 1000 and len(table.outcome) == 100_000
    assert table.spent.sum() == sum(
        (t + s) % 6 for t in range(1000) for s in range(100)
    )
    assert grown < 150 * 1024


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["csv", "jsonl", "chat"])
def test_a_million_rows_take_less_than_two_gigabytes(tmp_path, kind, capsys):
    path = tmp_path / ("runs.csv" if kind == "csv" else "runs.jsonl")
    written(path, kind, 10_000, 100)
    done = subprocess.run(
        [sys.executable, "-c", CHILD, path], capture_output=True, text=True, check=True
    )
    found = json.loads(done.stdout)
    with capsys.disabled():
        gigabytes = found["peak"] / 1e9
        print(
            f"\n{kind}: 1,000,000 runs in {found['seconds']:.0f} s, {gigabytes:.2f} GB"
        )
    assert found["peak"] < 2e9
    assert found["shape"] == [10_000, 100]
    runs = [(task, sample) for task in range(10_000) for sample in range(100)]
    assert found["successes"] == sum((t * 7 + s) % 3 == 1 for t, s in runs)
    assert found["spent"] == sum((t + s) % 6 for t, s in runs)


@pytest.mark.slow
def test_the_whole_command_takes_a_million_rows(tmp_path, capsys):
    """Reading, surfaces, 2,000 resamples of 10,000 tasks, figures and reports."""
    written(tmp_path / "runs.csv", "csv", 10_000, 100)
    started = time.monotonic()
    child = (
        "import resource, sys; from jerp import cli; status = cli.main(sys.argv[1:]); "
        "print(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024); "
        "sys.exit(status)"
    )
    done = subprocess.run(
        [sys.executable, "-c", child, "passkt", "runs.csv"],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        check=True,
    )
    peak = int(done.stdout.splitlines()[-1])
    with capsys.disabled():
        seconds = time.monotonic() - started
        print(f"\njerp passkt, 1,000,000 rows: {seconds:.0f} s, {peak / 1e9:.2f} GB")
    assert peak < 2e9
    results = json.loads((tmp_path / "passkt-runs" / "results.json").read_text())
    assert results["parts"][0]["num_tasks"] == 10_000
