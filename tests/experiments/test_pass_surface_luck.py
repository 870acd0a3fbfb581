"""How often runs are right that cannot know, and what is said of it."""

import jax
import numpy as np
import pytest

from experiments.pass_surface.config import ARMS, CATEGORIES, FAILURE
from experiments.pass_surface.figures import LEAD, VARIANTS
from experiments.pass_surface.luck import (
    guess_rate,
    luck_numbers,
    luck_sentence,
    luck_table,
)
from experiments.pass_surface.places import LOOKUP
from experiments.pass_surface.report import FORMS
from experiments.pass_surface.surfaces import EVIDENCE
from experiments.pass_surface.verdict_report import (
    end_table,
    evidence_tables,
    how_many,
    sentences,
)
from jerp.envs.lookup_tasks import LookupKind, lookup_tasks
from jerp.typing import Outcome
from tests.runs.pass_surface.documents import document

LABELS = ("base", "GRPO")


def test_a_guesser_is_right_as_often_as_counting_says():
    """All guesses and all pairs of values, counted."""
    number = LOOKUP.size.num_values
    values = np.arange(number)
    assert guess_rate("C", 1) == guess_rate("B", 0) == pytest.approx(1 / number)
    pairs = values[:, None] != values[None]
    known = ((values[:, None] < values[None]) & pairs).sum() / pairs.sum()
    wanted = (1 - FAILURE) * known + FAILURE / number
    assert guess_rate("B", 1) == pytest.approx(wanted)


def test_the_report_says_how_few_forms_of_a_bridge_are_kept_from_training():
    tasks = lookup_tasks(jax.random.key(0), 3 * 60, split="seen")
    groups = np.asarray(tasks.groups)[np.asarray(tasks.kind) == LookupKind.BRIDGE]
    assert f"only {len(np.unique(groups, axis=0))} such forms of C" in FORMS


def evaluation(right):
    """Of one seed with two questions of four runs, `right` at T = 0, none else."""
    found = {}
    for category, horizons in CATEGORIES.items():
        found[category] = {"hidden": {}}
        for limit in horizons:
            outcome = np.full((2, 4), Outcome.FAILURE, np.int8)
            outcome[0, : right * (limit == 0)] = Outcome.SUCCESS
            found[category]["hidden"][str(limit)] = {"outcome": outcome}
    return found


def test_luck_is_that_of_runs_with_too_few_look_ups():
    """By hand: one right run of 4 in one question of 2, in one seed of 2."""
    luck = luck_numbers((1, 2, 4), {"base": [evaluation(1), evaluation(0)]})
    assert luck["ks"] == [1, 4] and luck["values"] == 96
    by_place = {(row["category"], row["horizon"]): row for row in luck["rows"]}
    assert [*by_place] == [("B", 0), ("C", 0), ("C", 1), ("B", 1)]
    for category in "BC":
        row = by_place[category, 0]
        assert row["pass"]["base"] == pytest.approx([1 / 16, 1 / 4])
        assert row["guesser"] == pytest.approx([1 / 96, 1 - (95 / 96) ** 4])
    assert by_place["C", 1]["pass"]["base"] == [0, 0]
    once = by_place["B", 1]["guesser"][0]
    assert by_place["B", 1]["guesser"][1] == pytest.approx(1 - (1 - once) ** 4)
    table = luck_table(luck, ARMS)
    assert table.title == "Pass@1 and Pass@4 of runs that cannot know, budget hidden"
    assert table.header == ("", "T", "base", "guesser")
    assert table.rows[1] == ("C", "0", ".062 .250", ".010 .041")
    assert "solves .04 of the questions C in 4 runs" in luck_sentence(luck)


@pytest.fixture
def results():
    """Verdicts with evidence that are others than the plain ones."""
    variants = {
        v: document([1, 4], [0, 5], names=("B", "C"), labels=LABELS) for v in VARIANTS
    }
    rows = []
    for variant, found in variants.items():
        for part in found["parts"]:
            pair = part["comparisons"][0]
            evidence = variant in EVIDENCE.values()
            verdict = {**pair["verdict"], "gains": 7 if evidence else 2}
            verdict["words"] = f"{verdict['gains']} gained"
            pair["verdict"] = verdict
            rows.append(
                {
                    "variant": variant,
                    "category": part["name"],
                    "first": "base",
                    "second": "GRPO",
                    "verdict": verdict,
                    "same_runs_as": None if variant == LEAD else LEAD,
                }
            )
    return {"variants": variants, "verdicts": rows}


def test_every_verdict_stands_plain_and_with_evidence(results):
    rows = end_table(results, LEAD).rows
    assert [row[:2] for row in rows] == [
        ("B", "GRPO / base"),
        ("B", "with evidence"),
        ("C", "GRPO / base"),
        ("C", "with evidence"),
    ]
    assert [row[4] for row in rows] == ["2:0", "7:0", "2:0", "7:0"]
    # Cut runs are read once.
    assert len(end_table(results, "nested").rows) == 2
    said = sentences(results)
    assert said[0] == "B, GRPO against base: 2 gained"
    assert said[3] == "with evidence, C, GRPO against base: 7 gained"
    assert "There are 10 verdicts here, 2 without" in how_many(results)


def test_the_surface_with_evidence_is_that_of_its_own_variant(results):
    band = results["variants"][EVIDENCE[LEAD]]["parts"][1]["agents"][0]["surface"]
    band["point"][-1][-1] = 0.77
    tables = [*evidence_tables(results, "C")]
    assert [table.title for table in tables] == [
        "Pass@(k, T) with evidence, base",
        "Pass@(k, T) with evidence, GRPO",
        "Difference with evidence, GRPO - base, paired by task",
    ]
    assert tables[0].rows[-1][-1].startswith(".77 ")
