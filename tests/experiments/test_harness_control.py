"""The main job at smoke size, from the recorded responses that are shipped."""

import io
import json
from dataclasses import replace
from pathlib import Path

import jax
import numpy as np
import pytest
from rich.console import Console

from experiments.executors.endpoint import Endpoint
from experiments.harness_control import main
from experiments.harness_control.analysis import load_results, score
from experiments.harness_control.config import HarnessConfig
from experiments.harness_control.domains import DOMAINS, NUM_TASKS, make_domain
from experiments.harness_control.executors import (
    RECORDED,
    open_executor,
    recorded_reach,
)
from experiments.harness_control.main import run
from experiments.pass_surface.harness_arms import HARNESS_ARMS, play_arms
from jerp.bridge.episodes import run_episodes
from jerp.bridge.session import Session
from jerp.errors import ConfigError, StorageError, UnknownNameError
from jerp.harness.state import FEATURES, NUM_FEATURES
from jerp.models.controller import Controller, controller_policy, init_policy
from jerp.runs.harness.arms import ARM_LABELS
from jerp.runs.progress import progress_bars
from jerp.storage.controllers import load_controller
from jerp.storage.trajectories import TrajectoryFolder
from jerp.typing import Outcome

ARMS = tuple(ARM_LABELS)


def quiet() -> Console:
    return Console(file=io.StringIO(), width=160)


def test_every_arm_of_every_domain_is_measured(smoke):
    config, results, _ = smoke
    assert tuple(results["domains"]) == config.domain
    for domain in results["domains"].values():
        assert tuple(domain["arms"]) == ARMS
        for arm in domain["arms"].values():
            assert arm["invalid"] == 0
            assert arm["q"]["low"] <= arm["q"]["point"] <= arm["q"]["high"]


def test_nothing_is_asked_that_was_not_recorded(smoke):
    _, results, _ = smoke
    for kind, count in results["executor"]["store"].items():
        assert count["misses"] == 0, kind
        assert count["hits"] > 0 or kind == "verdict"


def test_results_report_figures_page_and_table_are_written(smoke):
    config, results, text = smoke
    folder = config.folder
    assert json.loads((folder / "results.json").read_text()) == results
    report = (folder / "report.md").read_text()
    for label in ARM_LABELS.values():
        assert label in report and label in text
    assert "recorded responses" in text
    assert "its numbers mean nothing" in report and "numbers mean nothing" in text
    for name in config.domain:
        for kind in ("arms", "events", "buffer"):
            assert (folder / "figures" / f"{name}-{kind}.png").stat().st_size > 1000
    assert (folder / "manifest.json").exists()


def test_the_same_command_finds_everything_done(smoke, monkeypatch):
    """Figures are of the results alone, which are compared: none is drawn again."""
    monkeypatch.setattr(main, "write_figures", lambda results, folder: [])
    config, results, _ = smoke
    before = {p: p.stat().st_mtime_ns for p in config.folder.rglob("*-*.safetensors")}
    again = run(config, console=quiet())
    after = {
        p: p.stat().st_mtime_ns
        for p in config.folder.rglob("trajectories-*.safetensors")
    }
    assert all(before[p] == when for p, when in after.items())
    assert again["domains"] == results["domains"]


def test_another_config_in_the_same_folder_is_refused_by_field(smoke):
    config, _, _ = smoke
    with pytest.raises(ConfigError, match="seeds"):
        run(replace(config, seeds=3), console=quiet())


def test_controllers_are_kept_for_every_seed(smoke):
    config, _, _ = smoke
    for name in ("bc", "awr", "awr-step"):
        for seed in range(config.seeds):
            folder = config.folder / "coding" / "controllers" / f"{name}-{seed}"
            controller = load_controller(folder, feature_names=FEATURES)
            assert controller.training["seed"] == seed
            assert controller.explain(np.zeros(NUM_FEATURES)).actions[0] == "check"


def test_learned_arms_keep_probabilities_beside_the_text(smoke):
    config, _, _ = smoke
    folder = TrajectoryFolder.open(config.folder / "research" / "awr")
    trajectory, transcripts = folder.load(), folder.transcripts()
    step = transcripts[0][0]
    action = int(trajectory.action[0, 0])
    assert sum(step["probabilities"]) == pytest.approx(1, abs=1e-3)
    assert np.log(step["probabilities"][action]) == pytest.approx(
        float(trajectory.log_prob[0, 0]), abs=1e-2
    )


def test_analysis_reads_one_row_an_arm(smoke):
    config, results, _ = smoke
    rows = score([config.folder])
    assert len(rows) == len(config.domain) * len(ARMS)
    first = rows[0]
    arm = results["domains"][first["domain"]]["arms"][first["arm"]]
    assert first["q"] == arm["q"]["point"]


def test_analysis_of_an_unfinished_run_says_so(tmp_path):
    with pytest.raises(StorageError, match="has not finished"):
        load_results(tmp_path)


@pytest.mark.parametrize("name", DOMAINS)
def test_perturbed_controllers_reach_nothing_unrecorded(name, tmp_path):
    """Random controllers of growing confidence, on tasks of every difficulty."""
    with open_executor("recorded", tmp_path, quiet(), domains=[name]) as opened:
        domain = make_domain(name, opened.store)
        tasks = domain.generate(0, 60)[::2]
        sample = np.arange(len(tasks), dtype=np.int32) % 3
        index = np.arange(len(tasks), dtype=np.int32)
        with Session(domain, opened.executor) as session:
            for number in range(0, 6, 2):
                params = init_policy(jax.random.key(number), Controller(), NUM_FEATURES)
                params = jax.tree.map(lambda x, n=number: x * 2.0**n, params)
                run_episodes(
                    session,
                    controller_policy,
                    params,
                    jax.random.split(jax.random.key(number), len(tasks)),
                    tasks,
                    sample,
                    num_steps=domain.max_steps,
                    task_id=index,
                    group_id=index,
                    seed=sample,
                )
        description = opened.description()["store"]
    assert all(count["misses"] == 0 for count in description.values())
    assert description["completion"]["hits"] > 50


@pytest.mark.parametrize("name", DOMAINS)
def test_recorded_store_is_small_and_its_reach_is_known(name):
    assert (RECORDED / f"{name}.jsonl.xz").stat().st_size < 5e6
    reach = recorded_reach(name)
    assert reach["tasks"] == NUM_TASKS
    assert reach["requests_per_task"] < 60


def test_unknown_domain_is_answered_with_the_nearest():
    with pytest.raises(UnknownNameError, match="did you mean 'coding'"):
        HarnessConfig(domain=("codding",))


@pytest.mark.parametrize(
    ("settings", "word"),
    [
        ({"seeds": 0}, "seeds"),
        ({"seed": -1}, r"--seed: expected in \[0, 2\^32\), got -1"),
        ({"seed": 2**32}, r"--seed: expected in \[0, 2\^32\), got 4294967296"),
        ({"smoke": True, "full": True}, "smoke"),
        ({"full": True}, "smollm2"),
        ({"domain": ("coding", "coding")}, "distinct"),
        ({"domain": ("dbbench",)}, "nothing of dbbench is recorded"),
        ({"data": Path("x")}, "data: expected with one benchmark of dbbench, bfcl"),
        ({"tasks": 0}, "tasks: expected at least 1, got 0"),
        ({"plan": True}, "plan: .* costs nothing; add --executor"),
        ({"executor": "no/model"}, "executor: no/model: no such file or folder"),
        ({"endpoint": Endpoint("m")}, "model: expected with an address"),
        (
            {"executor": "smollm2", "endpoint": Endpoint(concurrency=2)},
            "concurrency: expected with an address",
        ),
        (
            {"executor": "http://h/v1", "endpoint": Endpoint(max_dollars=1.0)},
            "max_dollars: expected --prices FILE",
        ),
    ],
)
def test_bad_settings_name_themselves(settings, word):
    with pytest.raises(ConfigError, match=word):
        HarnessConfig(**settings)


@pytest.fixture(scope="module")
def arms(smoke):
    """Those of the study of PASS@(k, T), which finds all of them played."""
    config, _, _ = smoke
    files = {path: path.stat().st_mtime_ns for path in config.folder.rglob("*-*.*")}
    with (
        open_executor(
            "recorded", config.folder, quiet(), domains=config.domain
        ) as opened,
        progress_bars(quiet()) as progress,
    ):
        found = play_arms(config, opened, progress)
        assert opened.description()["store"]["completion"] == {
            "hits": 0,
            "misses": 0,
            "distinct": 0,
        }
    again = {path: path.stat().st_mtime_ns for path in config.folder.rglob("*-*.*")}
    assert again == files
    return found


def test_the_study_of_pass_surfaces_has_the_same_outcomes(arms, smoke):
    config, results, _ = smoke
    for name, runs in arms.items():
        for domain in config.domain:
            rows = np.array(runs.category) == domain
            # Runs of the base sequence stand beside those of every seed.
            repeated = config.seeds if name == "base" else 1
            counted = {
                outcome.name.lower(): (runs.outcome[rows] == outcome).sum() / repeated
                for outcome in Outcome
                if (runs.outcome[rows] == outcome).any()
            }
            expected = results["domains"][domain]["arms"][name]
            assert counted == expected["outcomes"]
            steps = runs.spent["steps"][rows].mean()
            assert steps == pytest.approx(expected["steps"]["point"], rel=1e-5)
            tokens = runs.spent["tokens"][rows].mean()
            assert tokens == pytest.approx(expected["tokens"]["point"], rel=1e-5)


def test_the_study_has_the_same_tasks_and_seeds_in_every_arm(arms, smoke):
    _, results, _ = smoke
    base = arms["base"]
    for runs in arms.values():
        assert (runs.task, runs.category) == (base.task, base.category)
        np.testing.assert_array_equal(runs.replicate, base.replicate)
    keys = results["domains"]["coding"]["tasks"]["held_out_keys"]
    assert base.task[: len(keys)] == base.task[len(keys) : 2 * len(keys)] == (*keys,)
    assert base.replicate[: 2 * len(keys)].tolist() == [0] * len(keys) + [1] * len(keys)
    number = len(keys)
    assert (base.outcome[:number] == base.outcome[number : 2 * number]).all()
    assert [*arms] == [*HARNESS_ARMS]


@pytest.mark.slow
def test_the_default_run(tmp_path):
    """The full default run: sizes as documented, no miss, and a complete report."""
    results = run(HarnessConfig(out=tmp_path / "run"), console=quiet())
    for domain in results["domains"].values():
        assert domain["tasks"]["held_out"] >= 60
        assert 0.2 <= domain["mix"]["base_mean"] <= 0.8
        assert domain["mix"]["spread_share"] >= 0.5
    assert results["executor"]["store"]["completion"]["misses"] == 0
