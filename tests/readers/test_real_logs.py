"""Files that the tools themselves wrote, against numbers counted by hand in the script.

tests/readers/recipes/endpoint.py says what every run does: which boxes it looks into,
what it answers, where it breaks.
"""

import sys
import zipfile
from pathlib import Path

import numpy as np
import pytest

from jerp.errors import InputError, MissingExtraError
from jerp.readers.log_options import LogOptions
from jerp.readers.logs import log_format, read_runs
from jerp.readers.zip_members import ZipMembers

REAL = Path(__file__).parent / "real"
FOUR_ITEMS = ["base.eval", "trained.eval", "tau2.json", "traces.jsonl", "chat.jsonl"]

F, S, T, M, X = range(5)
"""Failure, success, truncated, malformed, infrastructure."""

OUTCOMES = {"key": [S, F, S, S], "coin": [F, S, S, X], "lamp": [F, F, F, T]}
STEPS = {"key": [1, 0, 2, 1], "coin": [0, 2, 1, 1], "lamp": [0, 1, 2, 0]}
# `ring` runs into the limit, which counts messages here, rounds there; and an answer in
# no format is what only inspect's scorer tells apart.
RING = {
    "base.eval": ([F, S, T, M], [1, 0, 5, 0]),
    "tau2.json": ([F, S, T, F], [1, 0, 4, 0]),
    "traces.jsonl": ([F, S, T, F], [1, 0, 4, 0]),
    "chat.jsonl": ([F, S, T, F], [1, 0, 4, 0]),
}
# Of the skipped run tau2 keeps nothing.
SKIPPED = {"tau2.json": np.nan}


def read(name, *, extra=(), **asked):
    return read_runs(REAL / name, options=LogOptions(**asked), extra=extra)


def by_task(name, **asked):
    table = read(name, **asked)
    arrays = table.arrays()
    assert arrays.mask.all() and arrays.horizons is None
    return {
        task: (arrays.outcome[i].tolist(), arrays.spent[i].tolist())
        for i, task in enumerate(table.tasks)
    }


def expected(name):
    """Outcomes and spent steps of the base agent in one of its files."""
    rows = {task: (OUTCOMES[task], [*STEPS[task]]) for task in OUTCOMES}
    rows["coin"][1][3] = SKIPPED.get(name, 1)
    return {**rows, "ring": RING[name]}


@pytest.mark.parametrize("name", list(RING))
def test_steps_are_messages_that_call_a_tool(name):
    found, wanted = by_task(name), expected(name)
    assert set(found) == set(wanted)
    for task, (outcome, spent) in wanted.items():
        assert found[task][0] == outcome, task
        np.testing.assert_array_equal(found[task][1], spent, task)


@pytest.mark.parametrize("name", list(RING))
def test_turns_calls_and_tokens_are_counted_apart(name):
    """The fourth run of `key` looks into two boxes in one message."""
    assert by_task(name, unit="turns")["key"][1] == [2, 1, 3, 2]
    assert by_task(name, unit="calls")["key"][1] == [1, 0, 2, 2]
    if name != "chat.jsonl":
        # 7 a look, 3 an answer, 16 where the length ended it.
        tokens = by_task(name, unit="tokens")
        assert tokens["key"][1] == [10, 3, 17, 10]
        assert tokens["lamp"][1] == [3, 10, 17, 16]


def test_the_trained_agent_has_its_own_numbers():
    found = by_task("trained.eval")
    assert found["key"] == ([S] * 4, [1] * 4)
    assert found["coin"] == ([S, S, S, F], [2, 2, 2, 0])
    assert found["ring"] == ([S, S, F, S], [2, 1, 0, 3])
    assert found["lamp"] == ([S, F, X, S], [1, 0, 1, 2])


@pytest.mark.parametrize("name", FOUR_ITEMS)
def test_a_category_is_found_where_the_tool_keeps_it(name):
    column = "description.purpose" if name == "tau2.json" else "category"
    table = read(name, extra=[column])
    values = dict(zip(table.tasks, table.task_values(column), strict=True))
    assert values == {"key": "wood", "coin": "wood", "ring": "glass", "lamp": "glass"}


@pytest.mark.parametrize("name", ["base.eval", "tau2.json", "traces.jsonl"])
def test_seconds_are_what_the_tool_measured(name):
    spent = read(name, unit="seconds").spent
    known = spent[~np.isnan(spent)]
    assert len(known) >= 15 and ((known > 0) & (known < 10)).all()


def test_a_log_with_several_scores_asks_which():
    with pytest.raises(InputError, match=r"got 'found', 'near'; say .*--score NAME"):
        read("graded.json")
    assert by_task("graded.json", score="found")["coin"] == ([F], [0])


def test_a_score_between_0_and_1_asks_for_a_threshold():
    with pytest.raises(InputError, match=r"near.value: got 0.5, neither.*--success-at"):
        read("graded.json", score="near")
    assert by_task("graded.json", score="near", success_at=0.5)["coin"] == ([S], [0])
    assert by_task("graded.json", score="near", success_at=0.6)["coin"] == ([F], [0])


def test_samples_of_humaneval_ask_what_they_spent():
    name = "samples.jsonl_results.jsonl"
    with pytest.raises(
        InputError, match=r"do not say what they spent; .*--spent FIELD"
    ):
        read(name)
    with pytest.raises(InputError, match=r": --errors none --truncated none$"):
        read(name, spent="1")
    ends = {"errors": "none", "truncated": "none"}
    found = by_task(name, spent="tokens", unit="tokens", **ends)
    assert found == {
        "boxes/double": ([S, F, S], [9, 9, 9]),
        "boxes/last": ([F, S, F], [9, 9, 9]),
    }
    assert by_task(name, spent="1", **ends)["boxes/last"][1] == [1, 1, 1]
    notes = read(name, spent="1", **ends).notes
    assert any("tests that timed out: 1, taken as failed" in n for n in notes)


def test_prices_that_a_log_does_not_have_are_refused():
    with pytest.raises(InputError, match="every agent_cost is 0, which tau2 writes"):
        read("tau2.json", unit="dollars")
    with pytest.raises(InputError, match=r"usage.cost: expected a finite number"):
        read("traces.jsonl", unit="dollars")
    with pytest.raises(InputError, match=r"total_cost: expected a finite number"):
        read("base.eval", unit="dollars")


def test_notes_say_what_was_taken_for_what():
    notes = read("base.eval").notes
    assert notes == (
        "spent (steps) is the agent's messages that call a tool (the answer "
        "is none of them)",
        "1 run ended by an error, taken as infrastructure",
        "1 run ended by the length of an answer, taken as truncated",
        "1 run ended by the message limit, taken as truncated",
        "1 run not scored (invalid_response_format), taken as malformed",
    )
    assert "1 run ended by ProviderError, taken as infrastructure" in (
        read("traces.jsonl").notes
    )
    assert "1 run ended by max_steps, taken as truncated" in (read("tau2.json").notes)


@pytest.mark.parametrize(
    ("name", "format"),
    [
        ("base.eval", "inspect"),
        ("graded.json", "inspect"),
        ("tau2.json", "tau2"),
        ("traces.jsonl", "verifiers"),
        ("samples.jsonl_results.jsonl", "humaneval"),
        ("chat.jsonl", "chat"),
    ],
)
def test_a_file_shows_what_wrote_it(name, format):
    assert log_format(REAL / name) == format


def test_an_eval_log_says_what_it_needs_unpacked(monkeypatch):
    monkeypatch.setitem(sys.modules, "zstandard", None)
    with pytest.raises(MissingExtraError, match=r"'zstandard'.*jerp\[inspect\]"):
        read("base.eval")


@pytest.mark.parametrize("path", sorted(REAL.iterdir()), ids=lambda path: path.name)
def test_real_files_are_small_and_name_no_machine(path):
    assert path.stat().st_size < 100_000
    data = path.read_bytes()
    if zipfile.is_zipfile(path):
        with ZipMembers(path) as members:
            data = b"".join(map(members.read, members.names))
    # Tracebacks of inspect_ai name the folder in which the recipes' README has it run.
    data = data.replace(b"/tmp/study/", b"")
    for word in (b"/home/", b"/root", b"/tmp", b"/Users/", b"pypi"):
        assert word not in data
