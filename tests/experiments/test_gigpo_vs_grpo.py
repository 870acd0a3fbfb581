"""The comparison: numbers of made-up jobs, known beforehand; and a real smoke run."""

import io
import json
import re
from dataclasses import replace
from pathlib import Path

import jax
import numpy as np
import pytest
from matplotlib.figure import Figure
from rich.console import Console

from experiments.gigpo_vs_grpo.analysis import analyse, control_share
from experiments.gigpo_vs_grpo.config import ARMS, SIZES, GigpoConfig
from experiments.gigpo_vs_grpo.jobs import PHASES, jobs_of, run_jobs
from experiments.gigpo_vs_grpo.main import run
from experiments.gigpo_vs_grpo.report import SMOKE, share_sentence, write_figures
from jerp.errors import ConfigError, StorageError
from jerp.storage.documents import defined, write_json
from jerp.storage.locks import lock_folder
from jerp.storage.tensors import save_tree

SOLVED = {
    "base": 0,
    "grpo": 4,
    "one-anchor": 10,
    "gigpo": 12,
    "gigpo-none": 4,
    "rloo": 3,
}
"""Made up: solved tasks of 16 by arm."""


def made_up(folder, config):
    """Jobs that are done: every sample of the first tasks succeeds, at step 5."""
    for seed in range(config.num_seeds):
        for arm, solved in SOLVED.items():
            where = folder / "house" / f"seed-{seed}" / arm
            where.mkdir(parents=True)
            outcome = np.tile(np.arange(16)[:, None] < solved, (1, 4)).astype(np.int32)
            steps = np.where(outcome, 5, 30).astype(np.int32)
            found = {
                s: {"outcome": outcome, "steps": steps} for s in ("seen", "unseen")
            }
            save_tree(where / "evaluation.safetensors", found, {})
            process = {"peak_memory_bytes": 2**20, "compilations": 3}
            write_json(where / "process.json", {**process, "compile_seconds": 1.5})
            if arm == "base":
                kernel = {"w": np.zeros(2, np.float32)}
                save_tree(where / "params.safetensors", kernel, {"loss": 0.5})
                continue
            row = {"loss": 0.0, "entropy": 0.25, "success": 0.5, "dead_share": 0.125}
            rows = [{"step": i, **row, "sampler_gap": 1e-6} for i in range(4)]
            text = "".join(json.dumps(r) + "\n" for r in rows)
            (where / "metrics.jsonl").write_text(text)
            notes = ["it went"] if arm == "rloo" and seed else []
            write_json(where / "warnings.json", {"warnings": notes})


@pytest.fixture(scope="module")
def done(tmp_path_factory):
    folder = tmp_path_factory.mktemp("gigpo") / "run"
    config = GigpoConfig(smoke=True, seeds=2, out=folder)
    text = io.StringIO()
    run_folder = folder.with_name("made")
    made_up(run_folder, config)
    # The manifest comes first; then the finished jobs, as an earlier session left them.
    with pytest.raises(StopIteration):
        _begin_only(config)
    for path in run_folder.iterdir():
        path.rename(folder / path.name)
    return config, run(config, console=Console(file=text, width=80)), text.getvalue()


def _begin_only(config):
    """Stops right behind the manifest."""
    from experiments.gigpo_vs_grpo import main

    def stop(*_):
        raise StopIteration

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(main, "_in_processes", stop)
        run(config, console=Console(file=io.StringIO()))


def test_numbers_are_those_of_the_jobs(done):
    results = done[1]["worlds"]["house"]
    for arm, solved in SOLVED.items():
        found = results["arms"][arm]["splits"]["seen"]
        assert found["success"]["point"] == pytest.approx(solved / 16)
        assert found["by_seed"] == pytest.approx([solved / 16] * 2)
    gigpo = results["arms"]["gigpo"]["splits"]["unseen"]
    assert gigpo["difference"]["point"] == pytest.approx(0.5)
    assert (gigpo["seeds_above"], gigpo["seeds_below"]) == (2, 0)
    assert gigpo["difference"]["low"] > 0.2
    # (10 - 4) / (12 - 4)
    share = results["control_share"]["seen"]
    assert share["point"] == pytest.approx(0.75)
    assert 0 < share["low"] < 0.75 < share["high"] <= 1
    assert share["without_gain"] == 0
    surface = np.asarray(results["arms"]["grpo"]["surface"]["estimate"])
    np.testing.assert_allclose(surface, 4 / 16)
    assert results["arms"]["rloo"]["at_the_end"]["success"] == 0.5
    assert results["arms"]["rloo"]["warnings"] == ["seed 1: it went"]
    assert results["arms"]["base"]["cloning_loss"] == pytest.approx(0.5)


def test_report_figures_and_table_are_written(done):
    config, results, text = done
    report = (config.folder / "report.md").read_text()
    for name in ARMS.values():
        assert name in report and name in text
    assert "its numbers mean nothing" in report and SMOKE in text
    assert share_sentence(results["worlds"]["house"]) in report
    assert "has .75 [" in report and "adds the rest, +.25." in report
    assert "note: rloo, seed 1: it went" in text
    assert "log-probabilities differ by 1e-06 at most" in text
    assert (config.folder / "report.html").stat().st_size > 10_000
    figures = {path.name for path in (config.folder / "figures").iterdir()}
    assert figures == {"house-curves.png", "house-surface.png"}
    table = [line for line in text.splitlines() if "GiGPO" in line and "[" in line]
    assert table and all(len(line) <= 80 for line in table)


@pytest.mark.parametrize(
    ("job", "name", "left", "word"),
    [
        ("rloo", "metrics.jsonl", None, "a row for each of 4 iterations, .+ no file"),
        ("rloo", "metrics.jsonl", b'{"step": 0}\n', "4 iterations, .+ got 1 rows"),
        ("grpo", "evaluation.safetensors", b"\0" * 40, "truncated"),
        ("base", "params.safetensors", None, "no such file"),
        ("base", "process.json", b"{}", "expected peak_memory_bytes, .+ in it"),
        ("gigpo", "warnings.json", b"[", "truncated or altered"),
    ],
)
def test_a_damaged_file_of_a_job_says_what_to_delete(done, job, name, left, word):
    config, _, _ = done
    folder = config.folder / "house" / "seed-0" / job
    kept = (folder / name).read_bytes()
    (folder / name).unlink()
    if left is not None:
        (folder / name).write_bytes(left)
    told = f"{folder / name}: .*{word}.*; delete {folder}; the same command makes"
    try:
        with pytest.raises(StorageError, match=told):
            analyse(jax.random.key(0), config)
    finally:
        (folder / name).write_bytes(kept)


@pytest.mark.parametrize(
    ("iterations", "first", "marker"), [(1, 0, "o"), (4, 0, "o"), (40, 9, "None")]
)
def test_curves_of_few_points_are_seen(iterations, first, marker, monkeypatch):
    """Dots where a line would not be seen; of many, means of ten as a line."""
    drawn = []
    monkeypatch.setattr(Figure, "savefig", lambda self, *_, **__: drawn.append(self))
    curve = np.tile(np.arange(iterations) / 2.0, (2, 1))
    surface = {"surface": {"ks": [1], "horizons": [5, 9], "estimate": [[0.5, 0.5]]}}
    results = {"worlds": {"house": {"arms": {"base": surface}}}}
    write_figures(results, "house", {"grpo": curve}, Path())
    axis = drawn[0].axes[0]
    (line,) = axis.lines
    assert line.get_marker() == marker
    shown = np.arange(first, iterations)
    np.testing.assert_array_equal(line.get_xdata(), shown)
    np.testing.assert_allclose(line.get_ydata(), (shown - first / 2) / 2)
    low, high = axis.get_xlim()
    assert -1 < low < 0 and iterations - 1 < high < iterations
    assert all(tick == round(tick) for tick in axis.get_xticks())


def test_without_a_gain_there_is_no_share():
    none = {"point": None, "low": None, "high": None, "without_gain": 0.9}
    assert "no gain" in share_sentence({"control_share": {"seen": none}})


@pytest.mark.parametrize(
    ("solved", "sentence"),
    [
        (1, "has .50; .+ There is no interval: in 3[3-8].[0-9]% of resamples GiGPO"),
        (4, "has .50 .+, .+ [01].[0-9]% of resamples, in which .+ are left out."),
    ],
)
def test_resamples_without_a_gain_are_counted(solved, sentence):
    """GiGPO solves some tasks of 16, which a resample misses (1 - solved / 16)^16."""
    gigpo = (np.arange(16) < solved).astype(np.float32)
    success = np.stack([0 * gigpo, gigpo / 2, gigpo], axis=1)
    found = defined({k: float(v) for k, v in _shared(success).items()})
    assert found["point"] == 0.5
    expected = (1 - solved / 16) ** 16
    assert found["without_gain"] == pytest.approx(
        expected, abs=4 * np.sqrt(expected / 2000)
    )
    if expected > 0.025:
        assert found["low"] is found["high"] is None
    else:
        assert found["low"] == found["high"] == 0.5
    assert re.search(sentence, share_sentence({"control_share": {"seen": found}}))


def _shared(success):
    return control_share(jax.random.key(0), success)


def test_the_interval_is_that_of_the_ratio_of_means():
    """The quantiles of what loops over resamples draw, up to their own spread."""
    rng = np.random.default_rng(0)
    grpo, control, gigpo = rng.random((3, 16)) * 0.5 + [[0.0], [0.2], [0.4]]
    success = np.stack([grpo, control, gigpo], axis=1).astype(np.float32)
    found = _shared(success)
    shares = []
    for _ in range(4000):
        means = success[rng.integers(0, 16, 16)].mean(axis=0)
        shares.append((means[1] - means[0]) / (means[2] - means[0]))
    assert float(found["without_gain"]) == 0
    low, high = np.quantile(shares, [0.025, 0.975])
    assert float(found["low"]) == pytest.approx(low, abs=0.04)
    assert float(found["high"]) == pytest.approx(high, abs=0.04)


def test_another_config_in_the_same_folder_is_refused_by_field(done):
    config, _, _ = done
    with pytest.raises(ConfigError, match="seed"):
        run(GigpoConfig(smoke=True, seeds=2, seed=3, out=config.out))


def test_jobs_of_an_arm_are_neighbours():
    sizes = SIZES["full"]
    jobs = jobs_of("base", sizes, 2)
    assert [job.world for job in jobs] == ["house"] * 2 + ["shop"] * 2
    first = jobs_of("arms", sizes, 2)[:3]
    assert [(job.arm, job.seed) for job in first] == [
        ("grpo", 0),
        ("grpo", 1),
        ("one-anchor", 0),
    ]
    assert {job.arm for job in jobs_of("arms", sizes, 1)} == {*ARMS, "ppo"}


def test_a_job_that_another_process_does_is_left_to_it(tmp_path):
    job = jobs_of("base", SIZES["smoke"], 1)[0]
    job.folder(tmp_path).mkdir(parents=True)
    with (
        lock_folder(job.folder(tmp_path)),
        pytest.raises(StorageError, match="in use by process"),
    ):
        run_jobs(*(tmp_path, "base", (0, 1)), sizes=SIZES["smoke"], seed=0, num_seeds=1)


def test_a_smoke_run_has_two_seeds_at_most():
    assert GigpoConfig(smoke=True).num_seeds == 2
    assert GigpoConfig(smoke=True, seeds=1).num_seeds == 1
    assert GigpoConfig().num_seeds == 5 and GigpoConfig(full=True).num_seeds == 10


@pytest.mark.parametrize(
    ("settings", "word"),
    [
        ({"seeds": 0}, "seeds: expected at least 1"),
        ({"workers": 0}, "workers: expected at least 1"),
        ({"seed": -1}, "seed"),
        ({"smoke": True, "full": True}, "exclude each other"),
    ],
)
def test_bad_settings_name_themselves(settings, word):
    with pytest.raises(ConfigError, match=word):
        GigpoConfig(**settings)


@pytest.mark.slow
def test_a_smoke_run_trains_every_arm_everywhere_and_is_found_done(
    tmp_path, monkeypatch
):
    """With all arms and worlds of `--full`, for which processes are told the sizes."""
    full = SIZES["full"]
    smoke = replace(SIZES["smoke"], arms=full.arms, worlds=full.worlds)
    monkeypatch.setitem(SIZES, "smoke", smoke)
    folder = tmp_path / "run"
    for phase in PHASES:
        run_jobs(folder, phase, (0, 1), sizes=smoke, seed=0, num_seeds=1)
    config = GigpoConfig(smoke=True, seeds=1, out=tmp_path / "found")
    with pytest.raises(StopIteration):
        _begin_only(config)
    for path in folder.iterdir():
        path.rename(config.out / path.name)
    results = run(config, console=Console(file=io.StringIO()))
    for found in results["worlds"].values():
        # Sampler and trainer compute the same policy, in all iterations of all arms.
        assert all(found["arms"][name]["sampler_gap"] < 1e-4 for name in full.arms)
        for arm in found["arms"].values():
            assert arm["compilations"] > 0 and arm["peak_memory_bytes"] > 1e8
            assert (
                np.diff(np.asarray(arm["surface"]["estimate"]), axis=0).min() >= -1e-6
            )


@pytest.mark.slow
def test_a_smoke_run_of_the_command_is_found_done(tmp_path):
    config = GigpoConfig(smoke=True, seeds=1, out=tmp_path / "run")
    results = run(config, console=Console(file=io.StringIO()))
    assert set(results["worlds"]["house"]["arms"]) == {"base", *ARMS}
    assert run(config, console=Console(file=io.StringIO())) == results
