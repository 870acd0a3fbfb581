"""A language model that reads rules: made-up parts; and a small one, really."""

import io
import json
import re
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from rich.console import Console

from experiments.joint_rules import language_model_run
from experiments.joint_rules.base import all_rules
from experiments.joint_rules.config import JerpConfig
from experiments.joint_rules.language_model import JOINT, PARTS
from experiments.joint_rules.language_model_config import (
    PAPER,
    READER_SMOKE,
    ReaderSizes,
    reader_algorithm,
    reader_lora,
    reader_task,
)
from experiments.joint_rules.language_model_reader import (
    chosen_tasks,
    open_reader,
    told_of,
)
from experiments.joint_rules.language_model_retrieval import Lines, Similar
from experiments.joint_rules.language_model_run import run_language_model, stages
from experiments.joint_rules.main import run
from jerp.envs.house import house_large, house_small
from jerp.envs.house_rules import HouseRules
from jerp.envs.house_tasks import house_tasks
from jerp.envs.house_text import TASK_TEXTS, HouseText
from jerp.envs.house_things import OBJECTS, PLACES, ROOMS, HouseTask
from jerp.envs.rule_language import read_sentence
from jerp.errors import ConfigError, StorageError, TrainingError, UnknownNameError
from jerp.models.decoder import DecoderConfig
from jerp.models.presets import tiny_decoder
from jerp.rules.book import RuleBook
from jerp.rules.edits import EditOp
from jerp.rules.pool import init_pool
from jerp.storage.adapters import load_adapters
from jerp.storage.documents import write_json
from jerp.storage.export import export_folder
from jerp.storage.rule_documents import PoolDocument, PoolRule
from jerp.storage.rule_files import read_pool, write_pool
from jerp.storage.tensors import save_tree
from jerp.training.group import make_group_step
from tests.bridge.words import word_tokenizer
from tests.models.tiny import random_params

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
    assert run_language_model(config, quiet()) == results  # without a process


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
            run_language_model(config, quiet())
    finally:
        path.write_bytes(kept)
    assert run_language_model(config, quiet()) == results


def test_settings_of_a_reader(tmp_path):
    config = JerpConfig(policy="smollm2-135m")
    assert config.folder.name == "jerp-smollm2-135m" and config.reads
    assert config.reader_sizes == ReaderSizes()
    assert replace(config, smoke=True).reader_sizes is READER_SMOKE
    assert "--policy smollm2-135m" in config.command
    with pytest.raises(UnknownNameError, match="did you mean 'smollm2-135m'"):
        JerpConfig(policy="smollm2")
    assert replace(config, full=True).reader_sizes is PAPER
    for name, value in {"seeds": 3, "rules": tmp_path, "by": "instance"}.items():
        with pytest.raises(ConfigError, match=f"{name}: expected none with policy"):
            JerpConfig(policy="smollm2-135m", **{name: value})


def test_microbatches_divide_the_episodes_of_an_update():
    config, hyper = reader_algorithm(ReaderSizes())
    assert config.microbatches == 3 and config.num_groups == 3
    assert hyper.kl_weight == 0.001
    assert reader_algorithm(replace(READER_SMOKE, microbatch=8))[0].microbatches == 1


QWEN = DecoderConfig(
    vocab_size=151_936,
    hidden_size=1536,
    intermediate_size=8960,
    num_layers=28,
    num_heads=12,
    num_kv_heads=2,
    head_dim=128,
    context_length=32_768,
    rope_base=1e6,
    rms_epsilon=1e-6,
    qkv_bias=True,
)
"""Sizes of Qwen2.5-1.5B-Instruct."""


def test_the_papers_numbers_make_a_task_of_a_model_of_that_size():
    task, hyper = reader_task(PAPER, QWEN)
    assert (task.group_size, task.num_steps) == (8, 50)
    assert task.env.world == house_large() and task.env.world.horizon == 50
    assert task.config.num_groups * task.group_size == 256
    assert PAPER.iterations == PAPER.asked_iterations == 200
    assert (hyper.learning_rate, hyper.discount) == (3e-6, 0.95)
    assert (task.policy.lora.rank, task.policy.lora.alpha) == (64, 64.0)
    assert (task.config.advantage, task.config.scale) == ("group", "std")
    shapes = jax.eval_shape(task.policy.init, jax.random.key(0))
    sizes = {
        name: sum(leaf.size for leaf in jax.tree.leaves(tree))
        for name, tree in shapes.items()
    }
    assert sizes["decoder"] == 1_543_714_304  # as its authors count: 1.54 B
    # Of each matrix in -> out: 64 (in + out).
    kinds = [(1536, 1536), (1536, 256), (1536, 256), (1536, 1536)]
    kinds += [(1536, 8960), (1536, 8960), (8960, 1536)]
    assert sizes["adapters"] == 28 * 64 * sum(map(sum, kinds))
    init, _ = make_group_step(task.config, task.policy)
    adapters = {"adapters": shapes["adapters"]}
    state = jax.eval_shape(init, jax.random.key(0), hyper, adapters)
    assert jax.tree.structure(state.params) == jax.tree.structure(adapters)


def test_the_papers_numbers_ask_for_a_context_that_holds_an_episode():
    with pytest.raises(ConfigError, match=r"context_length: expected at least 4096"):
        reader_task(PAPER, replace(QWEN, context_length=2048))


def test_adapters_may_stand_in_the_last_layers_alone():
    lora = reader_lora(READER_SMOKE, replace(QWEN, num_layers=12))
    match = re.compile(lora.targets).fullmatch
    assert match("layer_11/q") and not match("layer_1/q") and not match("layer_10/q")
    every = re.compile(reader_lora(ReaderSizes(), QWEN).targets).fullmatch
    assert all(every(f"layer_{i}/down") for i in range(28)) and not every("layer_28/q")


def house_words():
    """A tokenizer of all that the house and its rules can say."""
    house = house_small()
    text, language = HouseText(house.size), HouseRules(house.size)
    tasks = house_tasks(jax.random.key(0), 1, size=house.size)
    row = jax.tree.map(lambda x: np.asarray(x)[0], tasks)
    names = [thing.name for thing in (*OBJECTS, *PLACES)]
    asked = [TASK_TEXTS[t].format(kind=n, place="x") for t in HouseTask for n in names]
    return word_tokenizer(
        *asked,
        *(f"{name} In the {room}: 1 2 3 4," for name in names for room in ROOMS),
        *(text.action(a, row) for a in range(house.num_actions)),
        *language.situations,
        *language.moves,
        "You stand in the hall at. Your hand is empty. It is closed open. You see:",
        "nothing hold hot cold clean and (2) (3) Rules: - When, .",
    )


TEMPLATE = "{% for m in messages %}{{ m['content'] }}\n{% endfor %}"


def small_model(folder, *, chat_template=TEMPLATE):
    tokenizer = house_words()
    config = tiny_decoder(tokenizer.get_vocab_size(), context_length=2048)
    return export_folder(
        folder,
        config,
        random_params(0, config),
        tokenizer,
        chat_template=chat_template,
        stop_tokens=(2,),
    )


@pytest.fixture(scope="module")
def reader():
    """Who reads, of a model without weights: nothing here is computed by it."""
    tokenizer = house_words()
    config = tiny_decoder(tokenizer.get_vocab_size(), context_length=2048)
    weights = SimpleNamespace(
        name="made up", config=config, tokenizer=tokenizer, chat_template=TEMPLATE
    )
    return open_reader(weights, replace(READER_SMOKE, num_rules=3))


def test_tasks_are_as_many_of_each_type_in_turn(reader):
    found = chosen_tasks(jax.random.key(1), reader, 3, "train")
    assert found.kinds.tolist() == [0, 1, 0, 1, 0, 1]
    np.testing.assert_array_equal(found.tasks.task, found.kinds)
    assert [words.split()[0] for words in reader.words(found.tasks)] == [
        "Put",
        "Look",
    ] * 3


def test_right_and_wrong_rules_speak_of_the_same_situations(reader):
    held = chosen_tasks(jax.random.key(1), reader, 1, "seen")
    right, wrong = told_of(jax.random.key(2), reader, held)
    assert right.shape == wrong.shape == (2, 3)
    rules, language = all_rules(reader.place.rule_sizes), HouseRules(house_small().size)
    both = (right >= 0) & (wrong >= 0)
    assert both.any()
    np.testing.assert_array_equal(rules[right[both], 0], rules[wrong[both], 0])
    assert (rules[right[both], 1] != rules[wrong[both], 1]).all()
    for rule in right[right >= 0]:
        assert read_sentence(language, reader.texts[rule]) == tuple(rules[rule])


class Letters:
    """Embeds a text by how often it has each letter."""

    fingerprint = "letters"

    def embed(self, texts):
        rows = [[text.count(c) for c in "abc"] for text in texts]
        return np.asarray(rows, np.float32)


def test_rules_are_retrieved_by_what_they_are_about_in_the_pool_of_their_type():
    book = RuleBook(["Do aaa.", "Do bbb.", "Do ccc."])
    pool = init_pool(2, 3).replace(
        active=jnp.array([[True, True, False], [False, False, True]]),
        rule_id=jnp.array([[0, 1, -1], [-1, -1, 2]]),
        score=jnp.array([[9.0, 1.0, 0.0], [0.0, 0.0, 1.0]]),
        tokens=jnp.array([[4, 4, 0], [0, 0, 9]]),
    )
    similar = Similar(Letters(), ("bb", "aa", "bb"), np.int32([0, 0, 1]), 1, 9)
    assert similar(pool, book).tolist() == [[1], [0], [2]]
    assert replace(similar, tokens=8)(pool, book).tolist() == [[1], [0], [-1]]
    assert similar(init_pool(2, 3), RuleBook()).tolist() == [[-1]] * 3


def test_a_rule_is_as_long_as_its_line_in_a_prompt():
    lines = Lines(house_words())
    # Rules : \n - When it is hot , \n and the full stop.
    assert lines("When it is hot, open it.") == 13


def test_a_model_that_cannot_be_asked_is_refused_before_anything_is_done():
    config = tiny_decoder(9)
    weights = SimpleNamespace(name="base", config=config, chat_template="")
    with pytest.raises(ConfigError, match="policy: expected an instruction-tuned"):
        open_reader(weights, READER_SMOKE)


@pytest.mark.slow
def test_a_small_model_goes_through_every_part_and_resumes(tmp_path):
    folder = small_model(tmp_path / "model")
    config = JerpConfig(policy=str(folder), smoke=True, out=tmp_path / "run")
    results = run_language_model(config, quiet())
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
    again = run_language_model(config, quiet())
    for name in ("rows", "runs", "notes"):
        assert again[name] == results[name]


@pytest.mark.slow
def test_a_file_that_is_no_model_ends_with_what_to_do(tmp_path):
    path = Path(tmp_path / "note.txt")
    path.write_text("no model")
    config = JerpConfig(policy=str(path), smoke=True, out=tmp_path / "run")
    with pytest.raises(TrainingError, match=r"note.txt: not a complete GGUF file"):
        run_language_model(config, quiet())
