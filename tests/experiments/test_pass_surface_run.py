"""Jobs of the study that are stopped and go on; and its files, read as anyone's."""

import io
import json
from dataclasses import replace

import jax
import numpy as np
import pytest
from rich.console import Console

from experiments.jobs.job import Job
from experiments.pass_surface import jobs, main
from experiments.pass_surface.analysis import base_standing, verdict_rows
from experiments.pass_surface.config import (
    CATEGORIES,
    HORIZONS,
    SIZES,
    PassSurfaceConfig,
)
from experiments.pass_surface.jobs import Work, jobs_of, run_jobs
from experiments.pass_surface.surfaces import (
    EVIDENCE,
    OUTCOMES,
    VARIANT_RUNS,
    Rows,
    _document,
    _pairs,
    write_outcomes,
)
from jerp.runs.pass_surface.analysis import analyse
from jerp.runs.pass_surface.inputs import read_inputs
from jerp.runs.pass_surface.settings import PassktSettings
from jerp.storage.documents import read_json
from jerp.storage.tensors import load_tree
from jerp.typing import Outcome

SEEDS = 2


def answers(seed, skill):
    """A made-up evaluation: the more look-ups the better, up to a third one."""
    sizes, key = SIZES["smoke"], jax.random.key(seed)
    shape = (sizes.questions, sizes.samples)
    found = {}
    for i, (category, horizons) in enumerate(CATEGORIES.items()):
        found[category] = {}
        for j, budget in enumerate(("announced", "hidden")):
            found[category][budget] = {}
            for limit in horizons:
                one = jax.random.fold_in(key, 100 * i + 10 * j + limit)
                used, right = jax.random.split(one)
                lookups = np.asarray(jax.random.randint(used, shape, 0, limit + 1))
                chance = skill * (1 + np.minimum(limit, 3)) / 4
                success = np.asarray(jax.random.bernoulli(right, chance, shape))
                found[category][budget][str(limit)] = {
                    "outcome": success.astype(np.int8),
                    "lookups": lookups.astype(np.int8),
                    "supported": (lookups >= 2) | (category == "A"),
                }
    return found


@pytest.fixture(scope="module")
def config(tmp_path_factory):
    """Of two seeds, whose outcome files are written."""
    out = tmp_path_factory.mktemp("surface") / "run"
    return PassSurfaceConfig(seeds=SEEDS, arms=("grpo",), smoke=True, out=out)


@pytest.fixture(scope="module")
def evaluations(config):
    found = {
        arm: [answers(10 * i + seed, skill) for seed in range(SEEDS)]
        for i, (arm, skill) in enumerate({"base": 0.2, "grpo": 0.5}.items())
    }
    write_outcomes(config, found)
    return found


@pytest.mark.parametrize("variant", ["rerun-hidden-evidence", "nested"])
def test_jerp_passkt_makes_the_same_numbers_of_the_outcome_files(
    config, evaluations, variant
):
    document = _document(config, evaluations, variant)
    folder = config.folder / OUTCOMES / variant
    settings = PassktSettings(
        *(folder / f"{arm}.csv" for arm in evaluations),
        by="category",
        replicates="seed",
        ks=",".join(map(str, config.sizes.ks)),
        horizons=",".join(map(str, HORIZONS)),
        announced="no",
        unit="calls",
        seed=config.seed,
    )
    again = analyse(settings, read_inputs(settings))
    assert again["tasks"] == document["tasks"] and len(document["tasks"]) == 24
    text = json.dumps(document["parts"])
    for label, name in (("base", "base.csv"), ("GRPO", "grpo.csv")):
        text = text.replace(f'"{label}"', f'"{name}"')
    assert json.loads(text) == json.loads(json.dumps(again["parts"]))
    for mine, other in zip(document["agents"], again["agents"], strict=True):
        assert mine["num_correct"] == other["num_correct"]
    assert document["settings"] == again["settings"]
    assert document["files"] == [f"outcomes/{variant}/{a}.csv" for a in evaluations]
    rows = verdict_rows({variant: document})
    assert [row["category"] for row in rows] == list(CATEGORIES)
    assert all(row["with_evidence"] == variant.endswith("evidence") for row in rows)
    assert all(row["second"] == "GRPO" for row in rows)
    assert rows[1]["verdict"] == document["parts"][1]["comparisons"][0]["verdict"]


def test_a_variant_is_of_its_own_runs_and_the_control_of_those_at_no_look_up(
    config, evaluations
):
    """Counted by hand, of one question each."""
    first = evaluations["grpo"][1]
    luck = 0
    for variant, (protocol, budget, evidence) in VARIANT_RUNS.items():
        document = _counts(config, evaluations, variant)
        for category, row in (("A", 12), ("C", 12 + 8 + 3)):
            found = first[category][budget]
            question = 0 if category == "A" else 3
            for j, limit in enumerate(HORIZONS):
                runs = found[str(max(CATEGORIES[category]))]
                if protocol == "rerun" and category == "C":
                    runs = found[str(limit)]
                right = runs["outcome"][question] == Outcome.SUCCESS
                if protocol == "nested":
                    right = right & (runs["lookups"][question] <= limit)
                if evidence:
                    luck += int((right & ~runs["supported"][question]).sum())
                    right = right & runs["supported"][question]
                assert document[row][j] == right.sum()
    assert luck > 0


def test_evidence_is_asked_of_the_same_runs_under_a_rule_of_its_own():
    for plain, beside in EVIDENCE.items():
        assert VARIANT_RUNS[beside] == VARIANT_RUNS[plain]._replace(evidence=True)
    assert sum(runs.evidence for runs in VARIANT_RUNS.values()) == len(EVIDENCE)


def _counts(config, evaluations, variant):
    """`[N][H]` successes of the second agent, from its file alone."""
    path = config.folder / OUTCOMES / variant / "grpo.csv"
    header, *lines = (line.split(",") for line in path.read_text().splitlines())
    rows = Rows.of(SEEDS, config.sizes.questions)
    counts = np.zeros((len(rows.task), len(HORIZONS)), int)
    for line in lines:
        row = dict(zip(header, line, strict=True))
        number = rows.task.index(row["task"])
        assert row["seed"] == row["task"][1] and row["category"] == row["task"][3]
        for j, limit in enumerate(HORIZONS):
            here = row.get("horizon", str(limit)) == str(limit)
            within = "horizon" in row or int(row["spent"]) <= limit
            counts[number, j] += here and within and row["outcome"] == "success"
    return counts


def test_rows_are_seed_after_seed_and_pairs_hold_arms_against_the_base():
    rows = Rows.of(2, 2)
    assert rows.task[:3] == ("s0-A-000", "s0-A-001", "s0-B-000")
    assert rows.category[6:9] == ("A", "A", "B")
    assert rows.seed.tolist() == [0] * 6 + [1] * 6
    assert _pairs(["base", "sft", "grpo", "ppo"]) == (
        *((0, 1), (0, 2), (0, 3), (1, 2), (1, 3)),
    )
    assert _pairs(["base", "grpo"]) == ((0, 1),)


def test_where_the_base_stands_is_said_and_warned_of():
    found = answers(0, 0.0)
    found["A"]["hidden"]["0"]["outcome"][:] = Outcome.SUCCESS
    found["B"]["hidden"]["5"]["outcome"][0, :2] = Outcome.SUCCESS
    standing = base_standing([found])
    assert standing["A"]["pass_1"] == 1.0 and standing["A"]["never"] == 0.0
    # Two of 8 samples of one question in four.
    assert standing["B"]["pass_1"] == pytest.approx(1 / 16)
    assert standing["B"]["pass_64"] == pytest.approx(1 / 4)
    assert standing["B"]["never"] == 0.75 and standing["B"]["k"] == 8
    first, second = standing["warnings"]
    assert "category A is 1.000" in first and "little left to gain" in first
    assert "category C is 0.000" in second and "cannot reinforce" in second


@pytest.fixture
def stubs(monkeypatch):
    """Jobs that do nothing but note what was made; the first evaluation is stopped."""
    made = []

    def cloned(key, sizes):
        made.append("base")
        return {"w": jax.random.normal(key, (3,))}, {"loss": 1.0}

    def train(where, key, place, asked, base, sizes):
        made.append("sft")
        return {"w": base["w"] + 1}

    def evaluate(key, place, params, sizes):
        made.append("evaluation")
        if made.count("evaluation") == 1:
            raise KeyboardInterrupt
        return {"key": jax.random.key_data(key), "w": params["w"]}

    monkeypatch.setattr(jobs, "cloned_base", cloned)
    monkeypatch.setattr(jobs, "train_by_cloning", train)
    monkeypatch.setattr(jobs, "training_questions", lambda *_: None)
    monkeypatch.setattr(jobs, "evaluate", evaluate)
    monkeypatch.setattr(jobs, "play_elsewhere", lambda *_: {"tools": np.ones(2, bool)})
    return made


def test_a_job_that_was_stopped_goes_on_with_what_it_had_made(tmp_path, stubs):
    work = Work(replace(SIZES["smoke"]), ("sft",), 0, 2)
    assert jobs_of("arms", work) == [Job("lookup", "sft", s) for s in (0, 1)]
    with pytest.raises(KeyboardInterrupt):
        run_jobs(tmp_path, "base", (0, 1), work)
    run_jobs(tmp_path, "base", (0, 1), work)
    # The first base was not cloned again, and the second one is another.
    assert stubs == ["base", "evaluation", "evaluation", "base", "evaluation"]
    run_jobs(tmp_path, "arms", (0, 1), work)
    run_jobs(tmp_path, "arms", (0, 1), work)
    assert stubs[5:] == ["sft", "evaluation"] * 2

    def found(arm, seed):
        folder = Job("lookup", arm, seed).folder(tmp_path)
        return load_tree(folder / "evaluation.safetensors")[0]

    for seed in (0, 1):
        # All policies of a seed are asked with one key, those of another with another.
        np.testing.assert_array_equal(
            found("base", seed)["key"], found("sft", seed)["key"]
        )
        np.testing.assert_allclose(
            found("sft", seed)["w"], found("base", seed)["w"] + 1
        )
    assert (found("base", 0)["key"] != found("base", 1)["key"]).any()


@pytest.mark.slow
def test_a_smoke_run_reports_all_parts_and_resumes_without_doing_anything(tmp_path):
    config = PassSurfaceConfig(smoke=True, out=tmp_path / "run")
    text = io.StringIO()
    results = main.run(config, console=Console(file=text, width=80))
    assert "Where the base stands" in text.getvalue()
    assert "SFT / base" in text.getvalue() and "with evidence" in text.getvalue()
    lines = text.getvalue().splitlines()
    # The path of the report alone is as long as it is.
    assert all(len(line) <= 80 for line in lines if not line.startswith("report: "))
    assert {*results["variants"]} == {*VARIANT_RUNS}
    assert len(results["verdicts"]) == len(VARIANT_RUNS) * len(CATEGORIES) * 3
    parts = ("mechanism", "cost", "forgetting", "training", "base_standing", "luck")
    for part in parts:
        assert results[part]
    for name in ("report.md", "report.html", "results.json"):
        assert (config.folder / name).stat().st_size > 1000
    figures = {path.name for path in (config.folder / "figures").iterdir()}
    assert {"verdicts.png", "mechanism.svg", "cost.png", "forgetting.svg"} <= figures
    page = (config.folder / "report.md").read_text()
    assert results["command"] in page and "Stand-ins" in page
    assert read_json(config.folder / "results.json") == results
    # The base is weak on purpose, and its numbers are those of the files.
    found = load_tree(
        Job("lookup", "base", 0).folder(config.folder) / "evaluation.safetensors"
    )[0]
    assert base_standing([found]) == results["base_standing"]
    before = sorted(p.stat().st_mtime for p in config.folder.glob("lookup/**/*"))
    assert main.run(config, console=Console(file=io.StringIO())) == results
    after = sorted(p.stat().st_mtime for p in config.folder.glob("lookup/**/*"))
    assert before == after
