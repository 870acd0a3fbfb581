"""HMS under moved thresholds, on episodes whose events are known."""

import numpy as np
import pytest

from jerp.records import ProcessStep, ProcessTrace
from jerp.runs.harness.episodes import EpisodeTable
from jerp.runs.harness.sensitivity import MOVED, threshold_rows


def trace(*, coverage):
    steps = (
        ProcessStep("draft"),
        ProcessStep("check", coverage=coverage, missing=()),
        ProcessStep("submit"),
    )
    return ProcessTrace(
        steps=steps,
        max_steps=10,
        cost_budget=4.0,
        tools=("draft", "check", "submit"),
        score=1.0,
        missing_share=0.0,
        runs_code=False,
        needs_evidence=False,
        chose_submit=True,
    )


def table(*coverages, valid=True):
    count = len(coverages)
    zeros = np.zeros(count)
    return EpisodeTable(
        task_id=np.arange(count),
        version=zeros.astype(int),
        valid=np.full(count, valid),
        outcome=zeros.astype(int),
        score=zeros,
        hms=zeros,
        steps=zeros,
        calls=zeros,
        tokens=zeros,
        events={},
        traces=tuple(trace(coverage=c) for c in coverages),
    )


@pytest.fixture(scope="module")
def rows():
    tables = {"base": table(0.9, 0.9), "awr": table(0.9, 0.7)}
    return {(r["threshold"], r["value"]): r for r in threshold_rows(tables)}


def test_only_the_threshold_that_decides_changes_the_difference(rows):
    # Two events apply, one of them StopWhenSufficient: at coverage .65 both arms have
    # it in both tasks, at .85 the second task of awr has not, at 1 nobody has it.
    change = {value: rows["coverage", value]["change"]["awr"] for value in (0.65, 1.0)}
    assert change == {0.65: 0.0, 1.0: 0.0}
    assert rows["coverage", 0.85]["change"]["awr"] == pytest.approx(-0.25)
    assert rows["early_score", 0.3]["change"]["awr"] == pytest.approx(-0.25)


def test_every_threshold_is_moved_and_its_default_among_them(rows):
    assert {name for name, _ in rows} == set(MOVED)
    for name in MOVED:
        defaults = [r for (n, v), r in rows.items() if n == name and v == r["default"]]
        assert len(defaults) == 1
    assert all(set(row["change"]) == {"awr"} for row in rows.values())
