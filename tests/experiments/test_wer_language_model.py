"""A language model that writes skills: its settings, its tasks, and what it chooses."""

from dataclasses import replace
from random import Random
from types import SimpleNamespace

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from experiments.wer import language_model_evaluation
from experiments.wer.coding_place import reference_code, secrets_of, told_program
from experiments.wer.config import WerConfig
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
from experiments.wer.language_model_skills import (
    PROGRAM_WORDS,
    TOOL_WORDS,
    any_draft,
    any_revision,
)
from experiments.wer.text_place import tasks_of_run
from jerp.bridge.sandbox import Sandbox
from jerp.bridge.scripted import ScriptedExecutor
from jerp.domains.controlled.coding import CodingDomain
from jerp.errors import ConfigError, UnknownNameError
from jerp.harness.actions import Action
from jerp.models.decoder import DecoderConfig
from jerp.runs.skills.depth import Depth
from jerp.runs.skills.domain_workplace import DomainWorkplace
from jerp.runs.skills.draft_prompt import (
    DraftPrompts,
    answer_text,
)
from jerp.runs.skills.merge import MeasuredSkill
from jerp.runs.skills.refine import Refined
from jerp.skills.document import Skill, parse_skill, render_skill
from jerp.skills.tree import SkillTree
from jerp.training.skill import make_skill_step
from jerp.typing import Outcome
from tests.bridge.fake_domain import FakeDomain
from tests.bridge.tiny_model import TinyModel

DOMAIN = CodingDomain(None)  # generates tasks, and judges nothing here


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
    with pytest.raises(ConfigError, match=r"policy: .*without config.json"):
        WerConfig(policy=str(tmp_path))
    (tmp_path / "note.txt").write_text("no model")
    with pytest.raises(ConfigError, match=r"policy: expected a GGUF file.*note.txt"):
        WerConfig(policy=str(tmp_path / "note.txt"))
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


@pytest.mark.parametrize("words", [PROGRAM_WORDS, TOOL_WORDS])
def test_drafts_that_know_nothing_are_well_formed_and_differ(words):
    drafts = [any_draft(Random(i), words) for i in range(60)]
    assert len({draft.skill.workflow for draft in drafts}) > 50
    assert {len(draft.skill.notes) for draft in drafts} == {0, 1}
    for i, draft in enumerate(drafts):
        assert parse_skill(render_skill(draft.skill)) == draft.skill
        after = any_revision(Random(i), draft.skill, words).skill.workflow
        assert 1 <= len(after) <= 3 and len({*after}) == len(after)
        assert {*after} - {*draft.skill.workflow} and {*after} <= {*words.steps}
    assert any_draft(Random(3), words) == any_draft(Random(3), words)


def test_no_task_is_in_two_parts_of_a_run():
    tasks = tasks_of_run(DOMAIN, ReaderSizes(), 0)
    parts = (tasks.train, tasks.validation, tasks.test, tasks.cloning)
    assert [len(part) for part in parts] == [6, 9, 24, 36]
    said = [task.payload["statement"] for part in parts for task in part]
    assert len({*said}) == len(said)


def test_the_reference_of_a_task_passes_its_tests():
    with Sandbox() as sandbox:
        domain = CodingDomain(sandbox)
        for task in domain.generate(1, 30):
            workspace = domain.begin(task, 0)
            assert domain.verify(task, reference_code(task), workspace).success
            assert not domain.verify(task, task.prompt, workspace).success
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
        place=SimpleNamespace(secrets=lambda task: []),
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
