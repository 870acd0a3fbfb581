"""Plans: their numbers are the estimators', their refusals name the option."""

from dataclasses import fields
from pathlib import Path

import jax
import pytest

from jerp.errors import ConfigError
from jerp.estimators import power
from jerp.runs.pass_surface import plan_settings
from jerp.runs.pass_surface.plan import plan
from jerp.runs.pass_surface.plan_settings import PlanSettings, plan_command
from jerp.storage.documents import read_json


def test_the_published_study_had_little_power():
    found = plan(PlanSettings())
    # Five gained and one lost of 100, but for the .9^64 that are never seen.
    seen = 1 - 0.9**64
    assert found["gain"] == pytest.approx(0.05 * seen)
    assert found["loss"] == pytest.approx(0.01 * seen)
    exact = power.boundary_power(
        jax.random.key(0), 100, found["gain"], found["loss"], num_categories=3
    )
    assert found["power"] == exact == pytest.approx(0.169, abs=5e-4)
    assert found["questions_needed"] == 344 and found["samples_needed"] is None
    assert [row["questions"] for row in found["by_questions"]] == [
        50,
        100,
        200,
        400,
        800,
    ]
    assert found["by_questions"][1]["power"] == exact


@pytest.mark.parametrize(
    ("changes", "larger"),
    [
        ({"questions": 200}, True),
        ({"samples": 8}, False),
        ({"expansion": 0.1}, True),
        ({"loss": 0.03}, False),
        ({"new_rate": 0.01}, False),
        ({"rare": 0.3}, False),
        ({"categories": 1}, True),
    ],
)
def test_every_option_moves_the_power_as_it_should(changes, larger):
    base = {"expansion": 0.08}
    before = plan(PlanSettings(**base))["power"]
    after = plan(PlanSettings(**{**base, **changes}))["power"]
    assert (after > before) is larger and after != before


def test_seeds_their_spread_and_the_wanted_power(monkeypatch):
    monkeypatch.setattr("jerp.runs.pass_surface.plan.STUDIES", 2000)
    three = PlanSettings(expansion=0.1, seeds=3)
    found = plan(three)
    assert plan(PlanSettings(expansion=0.1, seeds=3, seed=1)) != found
    spread = plan(PlanSettings(expansion=0.1, seeds=3, seed_spread=0.05))
    assert spread["power"] < found["power"] - 0.05
    rare = {"expansion": 0.1, "rare": 0.3, "rare_rate": 0.01}
    often = plan(PlanSettings(**{**rare, "rare_rate": 0.5}))
    assert often["power"] > plan(PlanSettings(**rare))["power"], "luck is gone"
    assert plan(PlanSettings(power=0.9))["questions_needed"] > 344


def test_samples_are_enough_where_there_is_no_loss():
    found = plan(PlanSettings(expansion=0.1, loss=0.0, new_rate=0.05))
    at = {"expansion": 0.1, "loss": 0.0, "new_rate": 0.05}
    enough = found["samples_needed"]
    assert plan(PlanSettings(**at, samples=enough))["power"] >= 0.8
    assert plan(PlanSettings(**at, samples=enough - 1))["power"] < 0.8


def test_the_file_holds_what_was_printed_and_how_to_make_it(tmp_path):
    settings = PlanSettings(questions=50, power=0.5, json=tmp_path / "plan.json")
    found = plan(settings)
    assert read_json(tmp_path / "plan.json") == found
    assert found["command"] == "jerp passkt plan --questions 50 --power 0.5"
    assert plan_command(PlanSettings()) == "jerp passkt plan"
    page = (Path(__file__).parents[3] / "docs" / "passkt.md").read_text()
    assert [name for name in found if f"`{name}`" not in page] == []
    options = [f"--{f.name.replace('_', '-')}" for f in fields(PlanSettings)]
    assert [name for name in options if name not in page] == []


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"questions": 0}, "--questions: expected 1 to 20,000, got 0"),
        ({"samples": 70_000}, "--samples: expected 1 to 65,536, got 70000"),
        ({"categories": 0}, "--categories: expected 1 to 10,000, got 0"),
        ({"seeds": 101}, "--seeds: expected 1 to 100, got 101"),
        ({"new_rate": 1.5}, r"--new-rate: expected in \[0, 1\], got 1.5"),
        ({"seed_spread": -1.0}, r"--seed-spread: expected in \[0, 1\], got -1.0"),
        ({"loss": float("nan")}, r"--loss: expected in \[0, 1\], got nan"),
        ({"power": 1.0}, r"--power: expected in \(0, 1\), got 1.0"),
        ({"seed": -1}, r"--seed: expected in \[0, 2\^32\), got -1"),
        (
            {"expansion": 0.6, "rare": 0.5},
            "--expansion, --loss, --rare: expected shares of at most 1 together, got "
            "0.6, 0.01, 0.5",
        ),
    ],
)
def test_what_cannot_be_planned_is_refused_by_its_option(changes, message):
    with pytest.raises(ConfigError, match=message):
        plan(PlanSettings(**changes))


def test_the_limits_are_those_of_the_estimators():
    assert plan_settings.MOST_QUESTIONS == power.MOST_QUESTIONS
    assert plan_settings.MOST_SAMPLES == power.MOST_SAMPLES
