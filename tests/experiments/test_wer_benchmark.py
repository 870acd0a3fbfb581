"""Skills for a benchmark: whose tasks, what they may hold, what it would cost."""

import io
import json
from random import Random

import pytest
from rich.console import Console

from experiments.executors.endpoint import Endpoint
from experiments.wer.benchmark_place import (
    open_benchmark,
    reference_outcome,
    secrets_of,
)
from experiments.wer.benchmark_sizes import SMOKE, benchmark_sizes
from experiments.wer.config import WerConfig
from experiments.wer.language_model_skills import TOOL_WORDS, any_draft
from experiments.wer.main import run
from experiments.wer.plan import skill_plan
from experiments.wer.setting import CODING, ENVS, TextSetting
from jerp.errors import ConfigError, UnknownNameError
from jerp.models.presets import tiny_decoder
from jerp.runs.skills.draft_prompt import Shown, answer_text, draft_messages
from jerp.storage.export import export_folder
from jerp.typing import Outcome
from tests.bridge.words import word_tokenizer
from tests.domains.installed import needs
from tests.experiments.endpoint_server import MODEL, scripted_endpoint
from tests.experiments.small_reader import TEMPLATE
from tests.models.tiny import random_params


def quiet():
    return Console(file=io.StringIO(), width=100)


def test_settings_name_themselves_and_survive_the_way_to_another_process(tmp_path):
    endpoint = Endpoint("m", prices=tmp_path / "p.json", max_requests=3)
    (tmp_path / "p.json").write_text('{"m": {"in": 1, "out": 2}}')
    config = WerConfig(
        policy="smollm2-135m", env="bfcl", executor="http://h/v1", endpoint=endpoint
    )
    assert config.command == (
        "jerp run wer --policy smollm2-135m --env bfcl --executor http://h/v1 "
        f"--model m --prices {tmp_path / 'p.json'} --max-requests 3"
    )
    assert config.folder.name == "wer-smollm2-135m-bfcl"
    assert TextSetting.from_json(config.setting.to_json()) == config.setting
    # Caps may change between two sittings.
    assert config.setting.identity == {
        "env": "bfcl",
        "executor": "http://h/v1",
        "model": "m",
    }
    assert CODING.identity == {}


@pytest.mark.parametrize(
    ("settings", "error", "word"),
    [
        ({"env": "bfcl"}, ConfigError, "env: expected with a language model"),
        ({"plan": True}, ConfigError, "plan: expected with a language model"),
        ({"policy": "smollm2-135m", "env": "bfc"}, UnknownNameError, "'bfcl'"),
        (
            {"policy": "smollm2-135m", "calling": "native"},
            ConfigError,
            "calling: expected with --env",
        ),
        (
            {"policy": "smollm2-135m", "endpoint": Endpoint("m")},
            ConfigError,
            "model: expected with an address",
        ),
    ],
)
def test_bad_settings_name_themselves(settings, error, word):
    with pytest.raises(error, match=word):
        WerConfig(**settings)


@pytest.mark.parametrize("env", ENVS)
@pytest.mark.parametrize("scale", ["smoke", "default", "full"])
def test_sizes_are_of_batches_and_not_of_more_tasks_than_there_are(env, scale):
    sizes = benchmark_sizes(env, scale)
    parts = (sizes.train_tasks, sizes.validation, sizes.demonstrations, sizes.test)
    assert sum(parts) <= {"bfcl": 200, "tau2-airline": 50}.get(env, 114)
    assert sizes.train_tasks % sizes.states == 0


@pytest.fixture(scope="module")
def bfcl():
    needs("bfcl_eval", "pip install --no-deps bfcl-eval==2026.3.23")
    benchmark, domain = open_benchmark(TextSetting("bfcl"))
    yield benchmark
    domain.close()


def test_references_win_and_their_values_are_secret(bfcl):
    task = bfcl.tasks("base")[0]
    assert reference_outcome(bfcl, task) == Outcome.SUCCESS
    said = [str(secret) for secret in secrets_of(bfcl, task)]
    assert "final_report.pdf" in said and len({*said}) == len(said)
    assert all(len(text) >= 4 for text in said)


def test_a_plan_counts_every_run(bfcl):
    parts = {part.part: part for part in skill_plan(TextSetting("bfcl"), SMOKE, 0)}
    # 2 tasks x 2 drafts x 2 runs; three ways x 2 tasks x 2 rounds x 2 runs; ...
    assert [part.episodes for part in parts.values()] == [2, 8, 8, 24, 12, 16]
    first = parts["first drafts"]
    assert first.calls == 8 * 30 and first.tokens_out == first.calls * 512
    assert first.tokens_in > first.calls * 1000  # each prompt has all tools


def small_writer(folder):
    """A tiny model that knows the words of prompts and drafts, as a folder."""
    skills = [answer_text(*any_draft(Random(i), TOOL_WORDS)) for i in range(40)]
    prompt = draft_messages(Shown("tasks", "skill", "run", "run"), max_chars=99)
    tokenizer = word_tokenizer(*skills, *(message.content for message in prompt))
    config = tiny_decoder(tokenizer.get_vocab_size(), context_length=1024)
    return export_folder(
        folder,
        config,
        random_params(0, config),
        tokenizer,
        chat_template=TEMPLATE,
        stop_tokens=(2,),
    )


@pytest.mark.slow
def test_an_endpoint_follows_skills_in_a_benchmark_and_a_run_resumes(bfcl, tmp_path):
    """The writer is of random words: what is shown is that every part is reached."""

    def answer(messages):
        asked = sum(m["role"] == "assistant" for m in messages)
        return '[{"tool": "pwd", "arguments": {}}]' if asked == 0 else "Done."

    model = small_writer(tmp_path / "model")
    with scripted_endpoint(answer) as (url, asked):
        config = WerConfig(
            policy=str(model), env="bfcl", executor=url, smoke=True, out=tmp_path / "r"
        )
        results = run(config, console=quiet())
        number = len(asked)
        (tmp_path / "r" / "evaluation" / "evaluation.safetensors").unlink()
        again = run(config, console=quiet())
        assert len(asked) == number and again["rows"] == results["rows"]
    assert results["setting"] == {"env": "bfcl", "executor": url, "model": MODEL}
    assert results["rows"]["none"]["success"]["point"] == 0
    system = json.dumps([body["messages"][0] for body in asked])
    assert "Follow this procedure" in system  # those that it is cloned from
    assert "evaluator of bfcl" in (tmp_path / "r" / "report.md").read_text()
