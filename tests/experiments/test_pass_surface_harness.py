"""Controllers around a frozen model as arms: surfaces, verdicts and files of runs."""

import csv
import io
import json
from dataclasses import replace

import jax
import numpy as np
import pytest
from rich.console import Console

from experiments.pass_surface import harness_run
from experiments.pass_surface.config import PassSurfaceConfig
from experiments.pass_surface.harness_arms import HARNESS_ARMS, UNITS, ArmRuns
from experiments.pass_surface.harness_report import arm_table, horizon_table
from experiments.pass_surface.harness_run import run_harness_arms
from jerp.errors import ConfigError, StorageError, UnknownNameError
from jerp.runs.pass_surface.analysis import analyse
from jerp.runs.pass_surface.inputs import read_inputs
from jerp.runs.pass_surface.settings import PassktSettings
from jerp.runs.pass_surface.tables import caption, counted_tasks


def quiet():
    return Console(file=io.StringIO(), width=160)


@pytest.fixture(scope="module")
def arms():
    """Two domains of five tasks, two seeds, two samples: drawn, not played."""
    domains = ("coding", "research")
    task = tuple(f"{name}-{i}" for name in domains for _ in range(2) for i in range(5))
    category = tuple(name for name in domains for _ in range(10))

    def drawn(stream):
        keys = jax.random.split(jax.random.fold_in(jax.random.key(0), stream), 3)
        spent = {
            unit: np.asarray(jax.random.randint(key, (20, 2), 2, most))
            for unit, key, most in zip(UNITS, keys, (11, 200), strict=False)
        }
        right = jax.random.bernoulli(keys[2], 0.5, (20, 2))
        return ArmRuns(
            task=task,
            category=category,
            replicate=np.tile(np.repeat(np.arange(2, dtype=np.int32), 5), 2),
            spent=spent,
            outcome=np.asarray(right, np.int32),
        )

    return {name: drawn(stream) for stream, name in enumerate(HARNESS_ARMS)}


@pytest.fixture(scope="module")
def study(arms, tmp_path_factory):
    """The whole of it but for playing, and for figures, which `jerp passkt` tests."""
    config = PassSurfaceConfig(
        executor="smollm2", smoke=True, seeds=2, out=tmp_path_factory.mktemp("study")
    )
    text = io.StringIO()
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(harness_run, "play_arms", lambda *given: arms)
        patched.setattr(harness_run, "write_figures", lambda *given: [])
        patched.setattr(harness_run, "write_report", lambda *given: None)
        results = run_harness_arms(config, Console(file=text, width=120))
    return config, results, text.getvalue()


def test_every_pair_has_a_verdict_in_every_unit(study):
    _, results, text = study
    assert [*results["variants"]] == [*UNITS]
    for document in results["variants"].values():
        assert document["ks"] == [1, 2], "as many responses are recorded of a request"
        for part in document["parts"]:
            pairs = [(c["first"], c["second"]) for c in part["comparisons"]]
            assert pairs == [(0, 1), (0, 2), (0, 3), (0, 4), (1, 2), (1, 3), (1, 4)]
            for comparison in part["comparisons"]:
                assert comparison["verdict"]["verdict"].split(",")[0] in text
    assert "numbers mean nothing" in text and "random legal action" in text


def test_results_and_report_are_written(study):
    config, results, _ = study
    assert json.loads((config.folder / "results.json").read_text()) == results
    report = (config.folder / "report.md").read_text()
    assert config.command in report and "numbers mean nothing" in report
    for document in results["variants"].values():
        for part in document["parts"]:
            for comparison in part["comparisons"]:
                assert comparison["verdict"]["words"] in report


def test_tables_have_a_cell_a_column_and_fit_a_terminal(study):
    _, results, text = study
    for document in results["variants"].values():
        for table in (
            arm_table(document, words=True),
            arm_table(document, words=False),
            horizon_table(document),
        ):
            assert all(len(row) == len(table.header) for row in table.rows)
        steps = horizon_table(document).rows[0][2:]
        assert [*steps] == sorted(steps), "what is cut later is solved no less often"
    lines = text[text.index("domain") : text.index("note:")].splitlines()
    assert max(len(line.rstrip()) for line in lines) <= 80


def test_a_task_is_counted_once_for_all_its_seeds(study):
    """5 tasks in each of 2 domains, under 2 training seeds."""
    config, results, _ = study
    for document in results["variants"].values():
        for part in document["parts"]:
            assert (part["num_kept"], part["num_distinct"]) == (10, 5)
            said = caption(document, part)
            assert said.startswith(
                "5 tasks under 2 training seeds (10 of 10 pairs) x 2"
            )
            assert counted_tasks(part) == "5 tasks (10 with their training seeds)"
    assert "10 held-out tasks in 2 domains" in (config.folder / "report.md").read_text()


def test_curves_are_those_of_the_outcome_files(study, arms):
    config, results, _ = study
    for unit, document in results["variants"].items():
        for place, name in enumerate(HARNESS_ARMS):
            path = config.folder / "outcomes" / unit / f"{name}.csv"
            assert document["files"][place] == str(path.relative_to(config.folder))
            with path.open() as lines:
                rows = [*csv.DictReader(lines)]
            for number, part in enumerate(document["parts"]):
                right = [
                    row["outcome"] == "success"
                    for row in rows
                    if row["category"] == part["name"]
                ]
                surface = document["parts"][number]["agents"][place]["surface"]
                assert surface["point"][0][-1] == pytest.approx(np.mean(right))
            assert len(rows) == arms[name].outcome.size
            assert {row["seed"] for row in rows} == {"0", "1"}


def test_the_command_makes_the_same_numbers_of_the_files(study):
    config, results, _ = study
    document = results["variants"]["steps"]
    paths = [config.folder / document["files"][place] for place in (0, 3)]
    horizons = ",".join(f"{t:g}" for t in document["horizons"])
    settings = PassktSettings(
        *paths, by="category", replicates="seed", horizons=horizons
    )
    found = analyse(settings, read_inputs(settings))
    for mine, other in zip(document["parts"], found["parts"], strict=True):
        one = next(
            c for c in mine["comparisons"] if (c["first"], c["second"]) == (0, 3)
        )
        two = other["comparisons"][0]
        np.testing.assert_allclose(
            one["difference"]["point"], two["difference"]["point"]
        )
        for name in ("gains", "losses", "p_up", "p_down", "seeds"):
            assert one["verdict"][name] == two["verdict"][name]


def test_a_run_that_was_not_recorded_is_refused():
    executor = {"store": {"completion": {"misses": 3}}}
    with pytest.raises(StorageError, match="3 requests are not among the recorded"):
        harness_run._check_recorded(executor)


def test_another_seed_in_the_same_folder_is_refused(study):
    config, _, _ = study
    with pytest.raises(ConfigError, match="seed"):
        run_harness_arms(replace(config, seed=1), quiet())


@pytest.mark.parametrize(
    ("settings", "error", "words"),
    [
        ({"full": True}, ConfigError, "full: expected none with an executor"),
        ({"arms": ("grpo",)}, ConfigError, "arms: expected none with an executor"),
        ({"executor": "smollm"}, UnknownNameError, "did you mean 'smollm2'"),
    ],
)
def test_settings_that_cannot_be_meant_are_refused(settings, error, words):
    with pytest.raises(error, match=words):
        PassSurfaceConfig(**({"executor": "smollm2"} | settings))
