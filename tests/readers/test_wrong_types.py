"""Real files with one field of a wrong kind: refused or read, never a traceback.

Every path of every record is tried, lists by their first and last element. The records
go past the files' own parsing, which other tests break.
"""

import copy
import itertools
import json
from pathlib import Path

import pytest

from jerp.errors import InputError, StorageError
from jerp.readers import (
    chat_lines,
    humaneval_samples,
    inspect_log,
    tau2_results,
    verifiers_traces,
)
from jerp.readers.inspect_file import inspect_file
from jerp.readers.log_options import LogOptions
from jerp.readers.logs import log_format, read_runs

REAL = Path(__file__).parent / "real"
WRONG = (5, -1, 0.5, 10**400, True, [], [5], [{}], {}, {"a": 5}, "text", "", None, ...)
"""`...` takes the field out."""

UNITS = ("steps", "turns", "tokens", "seconds", "dollars")
SPENT = {"spent": "tokens", "errors": "none", "truncated": "none"}


def lines_of(module):
    """How to hand JSON lines to a reader."""

    def hand(monkeypatch, records):
        monkeypatch.setattr(module, "json_lines", lambda _: enumerate(records, 1))

    return hand


def hand_inspect(monkeypatch, records):
    header, *samples = records
    monkeypatch.setattr(inspect_log, "inspect_file", lambda _: (header, iter(samples)))


def hand_tau2(monkeypatch, records):
    rest, *runs = records
    monkeypatch.setattr(tau2_results, "json_rest", lambda *_: rest)
    monkeypatch.setattr(tau2_results, "json_elements", lambda *_: iter(runs))


def read_lines(name):
    return [json.loads(line) for line in (REAL / name).read_text().splitlines()]


def read_inspect(name):
    header, samples = inspect_file(REAL / name)
    return [header, *samples]


def read_tau2(name):
    rest = json.loads((REAL / name).read_text())
    return [rest, *rest.pop("simulations")]


# File, its records, how they are handed over, what is asked for, further columns.
FILES = [
    ("base.eval", read_inspect, hand_inspect, [{}], ["category"]),
    (
        "graded.json",
        read_inspect,
        hand_inspect,
        [{"score": "near", "success_at": 0.5}],
        [],
    ),
    ("tau2.json", read_tau2, hand_tau2, [{}], ["description.purpose"]),
    (
        "traces.jsonl",
        read_lines,
        lines_of(verifiers_traces),
        [{}, {"score": "words", "success_at": 2}, {"score": "reward"}],
        ["category"],
    ),
    (
        "samples.jsonl_results.jsonl",
        read_lines,
        lines_of(humaneval_samples),
        [SPENT, {"spent": "1", "errors": "none", "truncated": "passed"}],
        ["result"],
    ),
    (
        "chat.jsonl",
        read_lines,
        lines_of(chat_lines),
        [{}, {"truncated": "error"}, {"spent": "reward"}],
        ["category"],
    ),
]
NAMES = [file[0] for file in FILES]


UNREAD = ("events", "input", "store", "plan", "results", "stats", "policies")
"""Large fields that no reader looks into; as wholes they are tried too."""


def places(value):
    """Every container with each of its keys, down to the leaves."""
    if isinstance(value, dict):
        keys = list(value)
    elif isinstance(value, list):
        keys = sorted({0, len(value) - 1}) if value else []
    else:
        return
    for key in keys:
        yield value, key
        if key not in UNREAD:
            yield from places(value[key])


def chosen(name, format, records, options):
    """What a file says of all runs, and the first of each task and each outcome."""
    table = read_runs(REAL / name, format=format, options=options)
    several = len(records) - min(len(table.outcome), len(records))
    firsts = {}
    runs = zip(records[several:], table.task_id, table.outcome, strict=False)
    for i, (_, task, outcome) in enumerate(runs):
        firsts.setdefault(("task", task), i)
        firsts.setdefault(("outcome", outcome), i)
    return records[:several], [records[several + i] for i in {*firsts.values()}]


@pytest.mark.parametrize("every", [False, pytest.param(True, marks=pytest.mark.slow)])
@pytest.mark.parametrize(
    ("name", "records", "hand", "asked", "extra"), FILES, ids=NAMES
)
def test_a_field_of_another_kind_is_refused_or_read(
    monkeypatch, every, name, records, hand, asked, extra
):
    """Each field takes all wrong values, or two, each under the next of the options."""
    format = log_format(REAL / name)
    options = [LogOptions(unit=u, **a) for a in asked for u in UNITS]
    turns, wrongs = itertools.cycle(options), itertools.cycle(WRONG)
    head, runs = chosen(name, format, records(name), LogOptions(**asked[0]))
    hand(monkeypatch, [*head, *runs])

    def read(option):
        read_runs(REAL / name, format=format, options=option, extra=extra)

    read(options[0])
    refused = 0
    for container, key in [place for each in [*head, *runs] for place in places(each)]:
        whole = copy.copy(container)
        for wrong in WRONG if every else itertools.islice(wrongs, 2):
            if wrong is ...:
                del container[key]
            else:
                container[key] = wrong
            try:
                read(next(turns))
            except (InputError, StorageError):
                refused += 1
            container.clear()
            container.extend(whole) if type(whole) is list else container.update(whole)
    read(options[0])
    assert refused
