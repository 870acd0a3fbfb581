"""A language model in the house: numbers of made-up parts; and a small one, really."""

import io
import json

import jax
import numpy as np
import pytest
from rich.console import Console

from experiments.gigpo_vs_grpo.config import READER_SMOKE, GigpoConfig
from experiments.gigpo_vs_grpo.language_model_run import LANGUAGE_MODEL, stages
from experiments.gigpo_vs_grpo.main import run
from experiments.gigpo_vs_grpo.report import SMOKE
from experiments.jobs import language_model_run
from jerp.envs.house import house_small
from jerp.envs.house_text import TASK_TEXTS, HouseText
from jerp.envs.house_things import OBJECTS, PLACES, ROOMS, HouseTask
from jerp.errors import ConfigError, StorageError, TrainingError, UnknownNameError
from jerp.models.presets import tiny_decoder
from jerp.storage.adapters import load_adapters
from jerp.storage.documents import write_json
from jerp.storage.export import export_folder
from jerp.storage.tensors import save_tree
from tests.bridge.words import word_tokenizer
from tests.envs.homes import some_tasks
from tests.models.tiny import random_params

SOLVED = {"base": 1, "trained": 3}
"""Made up: solved tasks of 4 by part."""


def quiet():
    return Console(file=io.StringIO(), width=100)


def made_up(folder):
    """Parts that are done."""
    for part, solved in SOLVED.items():
        where = folder / part
        where.mkdir()
        outcome = np.tile(np.arange(4)[:, None] < solved, (1, 2)).astype(np.int32)
        found = {"outcome": outcome, "steps": np.full((4, 2), 6, np.int32)}
        save_tree(where / "evaluation.safetensors", found, {})
        process = {"peak_memory_bytes": 2**20, "compilations": 3}
        write_json(where / "process.json", {**process, "compile_seconds": 1.5})
    save_tree(
        folder / "base" / "adapters.safetensors",
        {"a": np.zeros(2, np.float32)},
        {"loss": [0.5, 0.25]},
    )
    row = {"loss": 0.0, "entropy": 0.25, "dead_share": 0.5, "anchor_size_mean": 2.0}
    rows = [
        {"step": i, **row, "success": i / 10, "sampler_gap": 1e-5} for i in range(2)
    ]
    text = "".join(json.dumps(r) + "\n" for r in rows)
    (folder / "trained" / "metrics.jsonl").write_text(text)
    write_json(folder / "trained" / "warnings.json", {"warnings": ["it went"]})


@pytest.fixture(scope="module")
def done(tmp_path_factory):
    """A run whose process made the parts up."""
    folder = tmp_path_factory.mktemp("reader") / "run"
    config = GigpoConfig(smoke=True, policy="smollm2-135m", out=folder)
    text = io.StringIO()
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(
            language_model_run, "run_together", lambda *_, **__: made_up(folder)
        )
        results = run(config, console=Console(file=text, width=100))
    return config, results, text.getvalue()


def test_numbers_are_those_of_the_parts(done):
    _, results, _ = done
    assert results["parts"]["base"]["success"]["point"] == pytest.approx(0.25)
    assert results["parts"]["trained"]["success"]["point"] == pytest.approx(0.75)
    assert results["difference"]["point"] == pytest.approx(0.5)
    assert results["curve"] == pytest.approx([0, 0.1])
    assert results["at_the_end"]["success"] == pytest.approx(0.05)
    assert results["cloning_loss"] == [0.5, 0.25]


def test_report_figure_and_table_are_written(done):
    config, results, text = done
    report = (config.folder / "report.md").read_text()
    for said in (report, text):
        assert "trained - cloned" in said and "+.50 [" in said
        assert "differ by 1e-05 at most" in said
    assert "numbers mean nothing" in report and "by epoch: .500, .250" in report
    assert "note: it went" in text and "- it went" in report
    assert (config.folder / "figures" / "curve.png").stat().st_size > 5_000
    again = quiet()
    assert run(config, console=again) == results  # without a process


def test_a_smoke_run_says_so_above_its_table(done):
    assert SMOKE in done[2]


@pytest.mark.parametrize(("iterations", "labels"), [(2, 1), (19, 1), (20, 2)])
def test_the_curve_has_a_mean_where_there_are_enough(done, iterations, labels):
    curve = [1.0] * iterations
    axis = LANGUAGE_MODEL.report({**done[1], "curve": curve}).curve.axes[0]
    assert len(axis.get_legend().get_texts()) == labels
    assert axis.get_ylim()[0] < 0 and axis.get_ylim()[1] > 1
    assert all(tick == round(tick) for tick in axis.get_xticks())


def test_bars_name_the_stage_by_the_files_that_are_there(tmp_path):
    seen, base, trained = [], tmp_path / "base", tmp_path / "trained"

    def look():
        found = stages(tmp_path, READER_SMOKE)
        assert [stage.steps for stage in found] == [2, READER_SMOKE.iterations + 1]
        seen.append(tuple((stage.label, stage.behind) for stage in found))

    look()
    base.mkdir()
    look()
    for name in ("adapters.safetensors", "evaluation.safetensors"):
        (base / name).touch()
        look()
    trained.mkdir()
    for rows in (1, 2):
        (trained / "metrics.jsonl").write_bytes(b"{}\n" * rows)
        look()
    (trained / "evaluation.safetensors").touch()
    look()
    assert seen == [
        (("load model", 0), ("train: waits", 0)),
        (("demonstrate, clone", 0), ("train: waits", 0)),
        (("clone: evaluate", 1), ("train: waits", 0)),
        (("clone: done", 2), ("train", 0)),
        (("clone: done", 2), ("train", 1)),
        (("clone: done", 2), ("train: evaluate", 2)),
        (("clone: done", 2), ("train: done", 3)),
    ]


@pytest.mark.parametrize(
    ("part", "name"),
    [
        ("base", "adapters.safetensors"),
        ("base", "process.json"),
        ("trained", "evaluation.safetensors"),
        ("trained", "metrics.jsonl"),
        ("trained", "warnings.json"),
    ],
)
def test_a_damaged_file_of_a_part_says_what_to_delete(done, part, name):
    config, results, _ = done
    folder = config.folder / part
    kept = (folder / name).read_bytes()
    (folder / name).write_bytes(kept[: len(kept) // 3])
    told = f"{folder / name}: .*; delete {folder}; the same command makes it again"
    try:
        with pytest.raises(StorageError, match=told):
            run(config, console=quiet())
    finally:
        (folder / name).write_bytes(kept)
    assert run(config, console=quiet()) == results


def test_another_model_in_the_same_folder_is_refused(done, tmp_path):
    config, _, _ = done
    other = GigpoConfig(smoke=True, policy=str(tmp_path), out=config.out)
    with pytest.raises(ConfigError, match="policy"):
        run(other, console=quiet())


def test_settings(tmp_path):
    path = tmp_path / "a.gguf"
    path.touch()
    assert GigpoConfig(policy=str(path)).folder.name == "gigpo-vs-grpo-a"
    with pytest.raises(UnknownNameError, match=r"did you mean 'tiny'"):
        GigpoConfig(policy="Tiny")
    with pytest.raises(ConfigError, match="seeds: expected none with policy"):
        GigpoConfig(policy="smollm2-135m", seeds=3)
    assert "--policy smollm2-135m" in GigpoConfig(policy="smollm2-135m").command
    with pytest.raises(ConfigError, match="full: expected policy 'tiny'"):
        GigpoConfig(policy="smollm2-135m", full=True)


def house_words():
    """A tokenizer of all that the house can say."""
    house = house_small()
    text = HouseText(house.size)
    row = jax.tree.map(lambda x: x[0], some_tasks(1))
    names = [thing.name for thing in (*OBJECTS, *PLACES)]
    asked = [TASK_TEXTS[t].format(kind=n, place="x") for t in HouseTask for n in names]
    return word_tokenizer(
        *asked,
        *(f"{name} In the {room}: 1 2 3 4," for name in names for room in ROOMS),
        *(text.action(a, row) for a in range(house.num_actions)),
        "You stand in the hall at. Your hand is empty. It is closed open. You see:",
        "nothing hold hot cold clean and (2) (3)",
    )


@pytest.mark.slow
def test_a_small_model_is_cloned_and_trained(tmp_path):
    tokenizer = house_words()
    config = tiny_decoder(tokenizer.get_vocab_size(), context_length=256)
    folder = export_folder(
        tmp_path / "model", config, random_params(0, config), tokenizer
    )
    settings = GigpoConfig(policy=str(folder), smoke=True, out=tmp_path / "run")
    results = run(settings, console=quiet())
    assert len(results["curve"]) == 2 and results["sampler_gap"] < 1e-4
    assert results["parts"]["trained"]["compilations"] > 0
    lora, adapters = load_adapters(tmp_path / "run" / "trained" / "adapter", config)
    assert lora.rank == 2 and len(adapters) == config.num_layers
    assert run(settings, console=quiet()) == results


@pytest.mark.slow
def test_a_file_that_is_no_model_ends_with_what_to_do(tmp_path):
    path = tmp_path / "note.txt"
    path.write_text("no model")
    settings = GigpoConfig(policy=str(path), smoke=True, out=tmp_path / "run")
    with pytest.raises(TrainingError, match=r"note.txt: not a complete GGUF file"):
        run(settings, console=quiet())
