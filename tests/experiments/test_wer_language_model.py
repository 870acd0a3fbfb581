"""A language model that writes skills: settings, tasks, choices; made-up parts."""

import ast
import io
import json
from dataclasses import replace
from random import Random
from types import SimpleNamespace

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from rich.console import Console

from experiments.jobs import language_model_run
from experiments.wer import language_model_evaluation
from experiments.wer.config import WerConfig
from experiments.wer.language_model import PARTS
from experiments.wer.language_model_config import (
    PAPER,
    READER_SMOKE,
    ReaderSizes,
    reader_algorithm,
    reader_policy,
    reader_rate,
    reader_settings,
)
from experiments.wer.language_model_evaluation import (
    NONE,
    WAYS,
    WER,
    evaluate_reader,
    ways_of,
)
from experiments.wer.language_model_reader import (
    reference_code,
    secrets_of,
    tasks_of_run,
    told_program,
)
from experiments.wer.language_model_run import stages
from experiments.wer.language_model_skills import STEPS, any_draft, any_revision
from experiments.wer.main import run
from jerp.bridge.scripted import ScriptedExecutor
from jerp.domains.controlled.coding import CodingDomain
from jerp.errors import ConfigError, StorageError, UnknownNameError
from jerp.harness.actions import Action
from jerp.models.decoder import DecoderConfig
from jerp.models.presets import tiny_decoder
from jerp.runs.skills.depth import Depth
from jerp.runs.skills.domain_workplace import DomainWorkplace
from jerp.runs.skills.draft_prompt import (
    DraftPrompts,
    Shown,
    answer_text,
    draft_messages,
)
from jerp.runs.skills.merge import MeasuredSkill
from jerp.runs.skills.refine import Refined
from jerp.skills.document import Skill, parse_skill, render_skill
from jerp.skills.tree import SkillTree
from jerp.storage.adapters import load_adapters
from jerp.storage.documents import write_json
from jerp.storage.export import export_folder
from jerp.storage.skill_files import read_skill
from jerp.storage.tensors import save_tree
from jerp.storage.weights import load_weights
from jerp.training.skill import make_skill_step
from jerp.typing import Outcome
from tests.bridge.fake_domain import FakeDomain
from tests.bridge.tiny_model import TinyModel
from tests.bridge.words import word_tokenizer
from tests.experiments.small_reader import TEMPLATE
from tests.models.tiny import random_params

DOMAIN = CodingDomain(None)  # generates tasks, and judges nothing here


def quiet():
    return Console(file=io.StringIO(), width=100)


def test_settings_of_a_reader(tmp_path):
    config = WerConfig(policy="smollm2-135m")
    assert config.folder.name == "wer-smollm2-135m" and config.reads
    assert config.reader_sizes == ReaderSizes()
    assert replace(config, smoke=True).reader_sizes is READER_SMOKE
    assert replace(config, full=True).reader_sizes is PAPER
    assert config.command == "jerp run wer --policy smollm2-135m"
    with pytest.raises(UnknownNameError, match="did you mean 'smollm2-135m'"):
        WerConfig(policy="smollm2")
    with pytest.raises(ConfigError, match="seeds: expected none with policy"):
        WerConfig(policy="smollm2-135m", seeds=3)
    with pytest.raises(ConfigError, match="no such file or folder"):
        WerConfig(policy=str(tmp_path / "gone"))
    with pytest.raises(ConfigError, match="microbatch: expected a divisor of 12"):
        ReaderSizes(microbatch=5)


def test_the_rate_goes_up_in_a_line_and_down_as_a_cosine():
    sizes = replace(ReaderSizes(), phases=2, batches=5, warmup=2, learning_rate=0.3)
    rates = [float(reader_rate(sizes)(i)) for i in range(sizes.total)]
    falling = [0.3 * (1 + np.cos(np.pi * i / 9)) / 2 for i in range(8)]
    np.testing.assert_allclose(rates, [0.1, 0.2, *falling], rtol=1e-5)


QWEN = DecoderConfig(
    vocab_size=151_936,
    hidden_size=2560,
    intermediate_size=9728,
    num_layers=36,
    num_heads=32,
    num_kv_heads=8,
    head_dim=128,
    context_length=40_960,
    rope_base=1e6,
    rms_epsilon=1e-6,
    qk_norm=True,
)
"""Sizes of Qwen3-4B."""


def test_the_papers_numbers_make_an_optimizer_of_a_model_of_that_size():
    policy, settings = reader_policy(PAPER, QWEN, (151_645,)), reader_settings(PAPER)
    assert (settings.num_drafts, settings.num_runs, settings.phases) == (4, 2, 3)
    assert (policy.temperature, policy.top_k, policy.num_positions) == (0.95, 50, 23096)
    config, hyper = reader_algorithm(PAPER)
    assert (config.num_groups, config.microbatches) == (6, 24)
    assert (hyper.learning_rate, hyper.kl_weight, PAPER.rounds) == (1e-6, 0.0, 2)
    assert max(float(reader_rate(PAPER)(i)) for i in range(PAPER.total)) <= 1e-6
    shapes = jax.eval_shape(policy.init, jax.random.key(0))
    count = {k: sum(x.size for x in jax.tree.leaves(v)) for k, v in shapes.items()}
    assert count["decoder"] == 4_022_468_096  # as its authors count: 4.0 B
    # Of each matrix in -> out: 64 (in + out).
    kinds = [(2560, 4096), (2560, 1024), (2560, 1024), (4096, 2560)]
    kinds += [(2560, 9728), (2560, 9728), (9728, 2560)]
    assert count["adapters"] == 36 * 64 * sum(map(sum, kinds))
    step = make_skill_step(config, policy, num_drafts=PAPER.num_drafts)
    adapters = {"adapters": shapes["adapters"]}
    state = jax.eval_shape(step.init, jax.random.key(0), hyper, adapters)
    assert jax.tree.structure(state.params) == jax.tree.structure(adapters)


def test_what_the_papers_numbers_draft_has_their_shapes():
    """Of four layers, which are traced in a tenth of the time."""
    policy = reader_policy(PAPER, replace(QWEN, num_layers=4), (151_645,))
    step = make_skill_step(reader_algorithm(PAPER)[0], policy, num_drafts=4)
    params = jax.eval_shape(policy.init, jax.random.key(0))
    prompts = jax.ShapeDtypeStruct((6, 19_000), jnp.int32)
    drafts = jax.eval_shape(step.draft, params, jax.random.key(0), prompts)
    assert drafts.tokens.shape == drafts.token_log_prob.shape == (24, 4096)
    with pytest.raises(ConfigError, match="context_length: expected at least 23096"):
        reader_policy(PAPER, replace(QWEN, context_length=8192), (2,))


def test_adapters_stand_in_the_last_layers():
    lora = reader_policy(replace(ReaderSizes(), layers=2), QWEN, (2,)).lora
    assert lora.targets == r"layer_(34|35)/.*"
    assert "layer_(0|1|" in reader_policy(PAPER, QWEN, (2,)).lora.targets


def test_drafts_that_know_nothing_are_well_formed_and_differ():
    drafts = [any_draft(Random(i)) for i in range(60)]
    assert len({draft.skill.workflow for draft in drafts}) > 50
    assert {len(draft.skill.notes) for draft in drafts} == {0, 1}
    for i, draft in enumerate(drafts):
        assert parse_skill(render_skill(draft.skill)) == draft.skill
        after = any_revision(Random(i), draft.skill).skill.workflow
        assert 1 <= len(after) <= 3 and len({*after}) == len(after)
        assert {*after} - {*draft.skill.workflow} and {*after} <= {*STEPS}
    assert any_draft(Random(3)) == any_draft(Random(3))


def test_no_task_is_in_two_parts_of_a_run():
    tasks = tasks_of_run(DOMAIN, ReaderSizes(), 0)
    parts = (tasks.train, tasks.validation, tasks.test, tasks.cloning)
    assert [len(part) for part in parts] == [6, 9, 24, 36]
    said = [task.payload["statement"] for part in parts for task in part]
    assert len({*said}) == len(said)


def test_the_reference_of_a_task_passes_its_tests():
    for task in DOMAIN.generate(1, 30):
        names = {}
        exec(reference_code(task), names)
        for call, expected in task.payload["hidden"]:
            assert eval(call, names) == ast.literal_eval(expected)
        assert task.payload["name"] in secrets_of(task)


def test_a_run_is_told_by_its_program_and_what_the_tests_said():
    run = [
        {"action": "observe", "observation": "Return n."},
        {"action": "draft", "observation": "def f(n):\n    return 1"},
        {"action": "call-tool", "observation": "", "error": "SandboxError"},
    ]
    assert told_program(run) == "def f(n):\n    return 1\nSandboxError"


GOOD = Skill("Write", "Words.", ("Write a good word.", "Stop."))
POOR = Skill("Write", "Words.", ("Write slowly.",))


def follower(request):
    said = "".join(m.content for m in request.messages)
    if "Merge them" in said:
        return "I cannot."
    return "good" if "good" in said else "poor"


def made_up_refinement(skills):
    shares = {m.task: m.success for m in skills}
    depth = Depth({}, shares or {"a": 0.0}, 10, 100, 7, 0.5, seconds=2.0)
    return Refined(tuple(skills), (depth, depth), SkillTree())


def small_reader(executor):
    tasks = FakeDomain().generate(0, 5)
    prompts = DraftPrompts(TinyModel(None, None), num_prompt_tokens=900)
    order = (Action.OBSERVE, Action.DRAFT, Action.SUBMIT)
    parts = SimpleNamespace(train=(), validation=tasks[:2], test=tasks[2:])
    return SimpleNamespace(
        sizes=replace(READER_SMOKE, lengths=(1, 2), validation_runs=2, test_runs=2),
        executor=executor,
        tasks=parts,
        workplace=lambda t: DomainWorkplace(
            FakeDomain(), executor, t, prompts, order=order
        ),
    )


def test_validation_chooses_and_the_test_sees_one_skill_a_way(tmp_path, monkeypatch):
    skills = {
        "seed": [],
        "untrained": [MeasuredSkill("a", POOR, 0.5)],
        WER: [MeasuredSkill("a", POOR, 0.0), MeasuredSkill("b", GOOD, 1.0)],
    }
    monkeypatch.setattr(
        language_model_evaluation,
        "_refined",
        lambda *args: made_up_refinement(skills[args[-1].name]),
    )
    executor = ScriptedExecutor(follower)
    reader, adapters = small_reader(executor), dict.fromkeys(("base", "trained"))
    key = jax.random.key(0)
    found, document = evaluate_reader(tmp_path, key, reader, adapters)
    won = {k: (v == Outcome.SUCCESS).mean() for k, v in found["test"].items()}
    assert won == {NONE: 0, "seed": 0, "untrained": 0, WER: 1}
    assert found["test"][WER].shape == (3, 2)
    ways = document["ways"]
    assert (
        ways["seed"]["skill"] is None
        and "nothing to merge" in (ways["seed"]["merge_note"])
    )
    assert ways[WER]["validation"] == {"vote, 1 steps": 1.0, "vote, 2 steps": 1.0}
    assert ways[WER]["made"] == "vote, 1 steps"
    assert "no_delimiters" in ways[WER]["merge_note"]
    assert ways[WER]["calls"] == 21 and ways["seed"]["calls"] == 20
    asked = len(executor.requests)
    again = evaluate_reader(tmp_path, key, reader, adapters)
    assert again[1] == document
    # Only merges are asked again, which a store would answer.
    assert len(executor.requests) == asked + 2


def test_a_merge_by_the_model_is_a_candidate(tmp_path, monkeypatch):
    def merges(request):
        asked = "Merge them" in request.messages[-1].content
        return answer_text("Good.", GOOD) if asked else follower(request)

    monkeypatch.setattr(
        language_model_evaluation,
        "_refined",
        lambda *_: made_up_refinement([MeasuredSkill("a", POOR, 0.5)]),
    )
    reader = small_reader(ScriptedExecutor(merges))
    adapters = dict.fromkeys(("base", "trained"))
    _, document = evaluate_reader(tmp_path, jax.random.key(0), reader, adapters)
    assert all(way["made"] == "the model" for way in document["ways"].values())
    assert parse_skill(document["ways"][WER]["skill"]) == GOOD


def test_ways_have_as_many_runs_of_a_task():
    ways = ways_of(ReaderSizes())
    assert tuple(way.name for way in ways) == WAYS
    assert {(way.rounds + 1) * way.num_runs for way in ways} == {6}


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
