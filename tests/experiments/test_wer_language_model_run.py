"""A language model that writes skills: made-up parts; and a small one, really."""

import io
import json
from random import Random

import numpy as np
import pytest
from rich.console import Console

from experiments.jobs import language_model_run
from experiments.wer.config import WerConfig
from experiments.wer.language_model import PARTS
from experiments.wer.language_model_config import (
    READER_SMOKE,
)
from experiments.wer.language_model_evaluation import (
    NONE,
    WAYS,
    WER,
)
from experiments.wer.language_model_run import stages
from experiments.wer.language_model_skills import any_draft
from experiments.wer.main import run
from jerp.domains.controlled.coding import CodingDomain
from jerp.errors import StorageError
from jerp.models.presets import tiny_decoder
from jerp.runs.skills.draft_prompt import (
    Shown,
    answer_text,
    draft_messages,
)
from jerp.skills.document import Skill, render_skill
from jerp.storage.adapters import load_adapters
from jerp.storage.documents import write_json
from jerp.storage.export import export_folder
from jerp.storage.skill_files import read_skill
from jerp.storage.tensors import save_tree
from jerp.storage.weights import load_weights
from jerp.typing import Outcome
from tests.bridge.words import word_tokenizer
from tests.experiments.small_reader import TEMPLATE
from tests.models.tiny import random_params

DOMAIN = CodingDomain(None)
GOOD = Skill("Write", "Words.", ("Write a good word.", "Stop."))


def quiet():
    return Console(file=io.StringIO(), width=100)


def small_writer(folder):
    """A tiny model that knows the words of prompts and programs, as a folder."""
    tasks = DOMAIN.generate(0, 60)
    skills = [answer_text(*any_draft(Random(i))) for i in range(40)]
    prompt = draft_messages(Shown("tasks", "skill", "run", "run"), max_chars=99)
    tokenizer = word_tokenizer(
        *skills,
        *(message.content for message in prompt),
        *(f"# {task.payload['statement']} {task.prompt}" for task in tasks),
        "You write Python. Complete the function. ```python return Follow this",
    )
    config = tiny_decoder(tokenizer.get_vocab_size(), context_length=1024)
    return export_folder(
        folder,
        config,
        random_params(0, config),
        tokenizer,
        chat_template=TEMPLATE,
        stop_tokens=(2,),
    )


SOLVED = {NONE: 1, "seed": 2, "untrained": 0, WER: 3}
"""Made up: solved tasks of 4."""


def made_up(folder):
    """Parts that are done."""
    process = {"peak_memory_bytes": 2**20, "compilations": 3}
    for part in PARTS:
        (folder / part).mkdir()
        write_json(
            folder / part / "process.json",
            {**process, "compile_seconds": 1.5, "seconds": 90.0},
        )
    write = {name: folder / part for name, part in zip("bte", PARTS, strict=True)}
    save_tree(
        write["b"] / "adapters.safetensors", {"a": np.zeros(2)}, {"loss": [2.0, 0.5]}
    )
    save_tree(
        write["b"] / "evaluation.safetensors",
        {"parsed": np.array([1, 1, 0, 1], bool), "outcome": np.int32([[0, 1], [1, 1]])},
        {"faults": [[], [], ["empty"], []]},
    )
    row = {"phase": 1.0, "parsed": 0.5, "mixed": None, "reward": 0.5}
    row |= {"executor_calls": 4.0, "executor_tokens": 90.0, "draft_tokens": 8.0}
    row |= {"sampler_gap": 1e-5, "lost_drafts": 1.0, "success": 0.25}
    (write["t"] / "metrics.jsonl").write_text(json.dumps({"step": 0, **row}) + "\n")
    save_tree(
        write["t"] / "evaluation.safetensors",
        {"retained": np.array([True, False])},
        {"warnings": ["it went"], "seed_calls": 2, "seed_tokens": 3},
    )
    way = {"made": "vote, 2 steps", "skill": render_skill(GOOD), "merge_note": "mute"}
    way |= {"validation": {"vote, 2 steps": 0.5}, "validation_calls": 4}
    way |= {"calls": 24, "tokens": 3000, "draft_tokens": 200, "seconds": 7.0}
    way |= {"parsed_by_depth": [0.5, 1.0], "success_by_depth": [0.25, 0.5]}
    outcome = {
        name: np.tile(np.arange(4)[:, None] < solved, (1, 2)).astype(np.int32)
        for name, solved in SOLVED.items()
    }
    outcome[NONE][3] = Outcome.INFRASTRUCTURE
    save_tree(
        write["e"] / "evaluation.safetensors",
        {"test": outcome},
        {"ways": dict.fromkeys(WAYS, way)},
    )


@pytest.fixture(scope="module")
def done(tmp_path_factory):
    """A run whose process made the parts up."""
    folder = tmp_path_factory.mktemp("reader") / "run"
    config = WerConfig(smoke=True, policy="smollm2-135m", out=folder)
    text = io.StringIO()
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(
            language_model_run, "run_together", lambda *_, **__: made_up(folder)
        )
        results = run(config, console=Console(file=text, width=120))
    return config, results, text.getvalue()


def test_numbers_are_those_of_the_parts(done):
    _, results, _ = done
    points = {k: row["success"]["point"] for k, row in results["rows"].items()}
    assert points == pytest.approx(
        {NONE: 1 / 3, "seed": 0.5, "untrained": 0, WER: 0.75}
    )
    assert results["rows"][NONE]["lost_runs"] == 2
    assert results["rows"]["untrained"]["wer_above"]["point"] == pytest.approx(0.75)
    assert results["base"]["parsed"] == 0.75 and results["base"]["mixed"] == 0.5
    assert results["base"]["faults"] == {"empty": 1}
    assert results["training"]["calls"] == 6 and results["training"]["kept"] == 1


def test_report_figure_and_table_are_written(done):
    config, results, text = done
    report = (config.folder / "report.md").read_text()
    for said in (report, text):
        assert "Cloned: 75% of 4 first drafts parse" in said
        assert "differ by 1e-05" in said and "numbers mean nothing" in said
        assert "Stand-ins: one small language model" in said
        assert "no merge by the model: mute" in said and "Note: it went." in said
        assert "Best in validation: first skills, untrained" in said
    assert "> 1. Write a good word." in report and "| 24 | 3000 | 200 | 7 |" in report
    assert (config.folder / "figures" / "curve.png").stat().st_size > 5_000
    skill = read_skill(config.folder / "skills" / "coding.md")
    assert skill.skill == GOOD and skill.run.endswith("first skills, untrained")
    # Of the three tasks that were answered without a skill 1 was solved, with it 2.
    assert skill.effect == pytest.approx(1 / 3) and skill.tasks == 4
    assert run(config, console=quiet()) == results  # without a process


def test_a_damaged_file_of_a_part_says_what_to_delete(done):
    config, results, _ = done
    for part, name in (("trained", "metrics.jsonl"), ("base", "process.json")):
        path = config.folder / part / name
        kept = path.read_bytes()
        path.write_bytes(kept[: len(kept) // 3])
        with pytest.raises(StorageError, match=f"delete {path.parent}"):
            run(config, console=quiet())
        path.write_bytes(kept)
    assert run(config, console=quiet()) == results


def test_bars_follow_the_files(tmp_path):
    def behind():
        return [stage.behind for stage in stages(tmp_path, READER_SMOKE)]

    assert behind() == [0, 0, 0]
    steps = [stage.steps for stage in stages(tmp_path, READER_SMOKE)]
    assert steps == [2, 2, 1 + 1 + 2 + 2]
    for part in PARTS:
        (tmp_path / part).mkdir()
    for name in ("adapters.safetensors", "evaluation.safetensors"):
        (tmp_path / "base" / name).touch()
    (tmp_path / "trained" / "metrics.jsonl").write_bytes(b"{}\n")
    (tmp_path / "evaluation" / "seed").mkdir()
    (tmp_path / "evaluation" / "seed" / "metrics.jsonl").write_bytes(b"{}\n")
    assert behind() == [2, 1, 1]
    labels = [stage.label for stage in stages(tmp_path, READER_SMOKE)]
    assert labels == ["base: done", "trained: under way", "evaluation: waits"]


@pytest.mark.slow
def test_a_small_model_goes_all_the_way_and_resumes(tmp_path):
    """Of random words: nothing it writes is a skill, and every part says so."""
    model = small_writer(tmp_path / "model")
    config = WerConfig(policy=str(model), smoke=True, out=tmp_path / "run")
    results = run(config, console=quiet())
    assert set(results["rows"]) == {NONE, *WAYS}
    assert results["base"]["parsed"] == 0 and results["training"]["kept"] == 0
    assert results["training"]["sampler_gap"] < 1e-4
    decoder = load_weights(str(model)).config
    for part in ("base", "trained"):
        lora, adapters = load_adapters(tmp_path / "run" / part / "adapter", decoder)
        assert lora.rank == 2 and len(adapters) == READER_SMOKE.layers
    answers = sorted((tmp_path / "run" / "store").iterdir())
    sizes = [path.stat().st_size for path in answers]
    (tmp_path / "run" / "evaluation" / "evaluation.safetensors").unlink()
    again = run(config, console=quiet())
    assert again["rows"] == results["rows"]
    assert [path.stat().st_size for path in answers] == sizes  # no answer is asked for
