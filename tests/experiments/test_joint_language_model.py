"""A language model that reads rules: made-up parts; and a small one, really."""

import io
import json
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from rich.console import Console

from experiments.jobs import language_model_run
from experiments.joint_rules.config import JerpConfig
from experiments.joint_rules.language_model import JOINT, PARTS
from experiments.joint_rules.language_model_config import (
    READER_SMOKE,
)
from experiments.joint_rules.language_model_run import stages
from experiments.joint_rules.main import run
from jerp.errors import StorageError, TrainingError
from jerp.models.presets import tiny_decoder
from jerp.rules.edits import EditOp
from jerp.storage.adapters import load_adapters
from jerp.storage.documents import write_json
from jerp.storage.rule_documents import PoolDocument, PoolRule
from jerp.storage.rule_files import read_pool, write_pool
from jerp.storage.tensors import save_tree
from tests.experiments.small_reader import small_model

SOLVED = {
    ("base", "without"): 1,
    ("base", "right"): 3,
    ("base", "wrong"): 0,
    ("jerp", "with"): 4,
    ("jerp", "without"): 2,
    ("asked", "with"): 1,
    ("similar", "with"): 2,
    ("prompted", "plain"): 0,
    ("prompted", "plain-rules"): 0,
    ("prompted", "react"): 1,
    ("prompted", "reflexion"): 2,
}
"""Made up: solved tasks of 4 by part and by what was in the prompt."""

RIGHT = np.tile(np.int32([[1, 2], [3, 4], [0, 0]]), (4, 1, 1))
"""What the right rules of each task say: in situation 1 move 2, in 3 move 4."""

ALONE = 2
"""Tasks that are prompted."""


def quiet():
    return Console(file=io.StringIO(), width=100)


def played(part, told):
    """Two episodes a task of three steps; in situation 1 with move 2, in 3 with 5."""
    number = ALONE if part == "prompted" else 4
    solved = np.tile(np.arange(number)[:, None] < SOLVED[part, told], (1, 2))
    found = {"outcome": solved.astype(np.int32), "steps": np.full((number, 2), 3)}
    if part != "prompted":
        # The last step is in a situation that no rule speaks of.
        found["situation"] = np.tile(np.int32([1, 3, 9]), (number, 2, 1))
        found["move"] = np.tile(np.int32([2, 5, 2]), (number, 2, 1))
        return found
    found["unparsed"] = np.full((number, 2), 1)
    if told == "reflexion":
        found["solved"] = solved[:, :1]
        del found["outcome"]
    return found


def made_up(folder):
    """Parts that are done."""
    for part in PARTS:
        where = folder / part
        where.mkdir()
        tree = {"played": {t: played(part, t) for p, t in SOLVED if p == part}}
        if part == "base":
            tree |= {"kind": np.zeros(4, np.int32), "right": RIGHT, "wrong": RIGHT * 0}
        if part in JOINT:
            rules = np.int32([[0, 1], [2, -1]])
            tree |= {"rules": rules, "best": np.int32([[1, 0], [1, 0]])}
            made_up_training(where)
        save_tree(where / "evaluation.safetensors", tree, {})
        process = {"peak_memory_bytes": 2**20, "compilations": 3}
        write_json(where / "process.json", {**process, "compile_seconds": 1.5})
    save_tree(
        folder / "base" / "adapters.safetensors",
        {"a": np.zeros(2, np.float32)},
        {"loss": [0.5, 0.25], "success": 0.75},
    )
    notes = {"notes": 1, "rejected": {"truncated": 2}, "said": ["Look."]}
    write_json(folder / "prompted" / "notes.json", notes)


def made_up_training(where):
    row = {
        f"{w}_{op.name.lower()}": 0.0 for w in ("applied", "dropped") for op in EditOp
    }
    row |= {"step": 0, "success": 0.25, "sampler_gap": 1e-5, "rules": 1.0}
    row |= {"references": 2.0, "rejected": 3.0, "rejected_malformed": 3.0}
    row |= {"applied_add": 2.0, "dropped_edit": 1.0}
    (where / "metrics.jsonl").write_text(json.dumps(row) + "\n")
    rule = PoolRule("Open it.", 2.0, uses=4, wins=1)
    write_pool(where / "pool.json", PoolDocument({"pick": (rule,), "look": ()}))
    write_json(where / "warnings.json", {"warnings": [f"{where.name} went"]})


@pytest.fixture(scope="module")
def done(tmp_path_factory):
    """A run whose process made the parts up."""
    folder = tmp_path_factory.mktemp("reader") / "run"
    config = JerpConfig(smoke=True, policy="smollm2-135m", out=folder)
    text = Console(file=io.StringIO(), width=100)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(
            language_model_run, "run_together", lambda *_, **__: made_up(folder)
        )
        results = run(config, console=text)
    return config, results, text.file.getvalue()


def test_numbers_are_those_of_the_parts(done):
    _, results, _ = done
    rows = {(row["part"], row["told"]): row for row in results["rows"]}
    assert rows.keys() == SOLVED.keys()
    for name, row in rows.items():
        assert row["success"]["point"] == pytest.approx(SOLVED[name] / row["instances"])
        assert row["episodes"] == 2 * row["instances"] and row["steps"] == 3
        assert (name[0] == "prompted") == ("unparsed" in row) == ("right" not in row)
    assert rows["prompted", "react"]["unparsed"] == pytest.approx(1 / 3)
    found = {name: d["point"] for name, d in results["differences"].items()}
    assert [*found.values()] == pytest.approx([0.5, -0.25, 0.25, 0.5, -0.25])
    assert results["retrieved_otherwise"] == pytest.approx(1 / 3)
    run = results["runs"]["asked"]
    assert run["rejected"] == {"malformed": 3} and run["references"] == 2
    assert run["operations"]["ADD"] == [2, 0] and run["operations"]["EDIT"] == [0, 1]
    assert run["pool"] == {"pick": [["Open it.", 2.0, 4, 1]]}


def test_only_steps_that_a_rule_speaks_of_count_as_followed(done):
    row = done[1]["rows"][0]
    # Of each episode two steps, one of which does as it says.
    assert row["right"] == {"point": 0.5, "low": 0.5, "high": 0.5, "num_steps": 16}
    # A rule that says nothing speaks of no step.
    assert row["wrong"]["num_steps"] == 0 and row["wrong"]["point"] is None


def test_report_figure_and_table_are_written(done):
    config, results, text = done
    report = (config.folder / "report.md").read_text()
    for said in (report, " ".join(text.split())):
        assert "numbers mean nothing" in said and "right: plain" in said
        assert "JERP, rules by itself, 1 iterations: operations applied ADD 2;" in said
        assert "not used malformed 3; 1 rules in the end" in said
        assert "1 notes that could be used; not used: truncated 2" in said
    assert (
        "by epoch: .500, .250" in report and "| pick | Open it. | 2 | 4 | 1 |" in report
    )
    assert "note: asked, asked went" in text
    assert ".50 [.50, .50] of 16" in report and "- [-, -] of 0" in report
    assert (config.folder / "figures" / "curve.png").stat().st_size > 5_000
    assert run(config, console=quiet()) == results  # without a process


def test_bars_name_the_stage_by_the_files_that_are_there(tmp_path):
    seen, sizes = [], replace(READER_SMOKE, iterations=2)

    def look():
        seen.append([(what, behind) for what, behind, _ in stages(tmp_path, sizes)[:2]])

    look()
    for part in PARTS[:2]:
        (tmp_path / part).mkdir()
    for name in ("adapters.safetensors", "evaluation.safetensors"):
        (tmp_path / "base" / name).touch()
        look()
    for rows in (1, 2):
        (tmp_path / "jerp" / "metrics.jsonl").write_bytes(b"{}\n" * rows)
        look()
    (tmp_path / "jerp" / "evaluation.safetensors").touch()
    look()
    assert seen == [
        [("base: begins", 0), ("jerp: waits", 0)],
        [("base: evaluates", 1), ("jerp: waits", 0)],
        [("base: done", 2), ("jerp: begins", 0)],
        [("base: done", 2), ("jerp: trains", 1)],
        [("base: done", 2), ("jerp: evaluates", 2)],
        [("base: done", 2), ("jerp: done", 3)],
    ]
    assert [total for _, _, total in stages(tmp_path, sizes)] == [2, 3, 1, 2, 2]


@pytest.mark.parametrize(
    ("part", "name"),
    [
        ("base", "adapters.safetensors"),
        ("jerp", "metrics.jsonl"),
        ("asked", "warnings.json"),
        ("prompted", "notes.json"),
        ("similar", "evaluation.safetensors"),
    ],
)
def test_a_damaged_file_of_a_part_is_named(done, part, name):
    config, results, _ = done
    path = config.folder / part / name
    kept = path.read_bytes()
    path.write_bytes(kept[: len(kept) // 3])
    told = f"{path}: .*; delete {path.parent}; the same command makes it again"
    try:
        with pytest.raises(StorageError, match=told):
            run(config, console=quiet())
    finally:
        path.write_bytes(kept)
    assert run(config, console=quiet()) == results


@pytest.mark.slow
def test_a_small_model_goes_through_every_part_and_resumes(tmp_path):
    folder = small_model(tmp_path / "model")
    config = JerpConfig(policy=str(folder), smoke=True, out=tmp_path / "run")
    results = run(config, console=quiet())
    assert {(row["part"], row["told"]) for row in results["rows"]} == SOLVED.keys()
    assert all(run["sampler_gap"] < 1e-4 for run in results["runs"].values())
    lora, adapters = load_adapters(
        config.folder / "jerp" / "adapter", tiny_decoder(1, context_length=2048)
    )
    assert lora.rank == 2 and [*adapters] == ["layer_1"]
    # What is retrieved from: all that is right of each type.
    assert len(read_pool(config.folder / "similar" / "pool.json").task_keys) == 6
    for part in ("asked", "prompted"):
        (config.folder / part / "evaluation.safetensors").unlink()
    again = run(config, console=quiet())
    for name in ("rows", "runs", "notes"):
        assert again[name] == results[name]


@pytest.mark.slow
def test_a_file_that_is_no_model_ends_with_what_to_do(tmp_path):
    path = Path(tmp_path / "note.txt")
    path.write_text("no model")
    config = JerpConfig(policy=str(path), smoke=True, out=tmp_path / "run")
    with pytest.raises(TrainingError, match=r"note.txt: not a complete GGUF file"):
        run(config, console=quiet())
