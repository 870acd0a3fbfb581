"""`jerp run jerp --env` in a benchmark that was made up; the endpoint is scripted."""

import io
from dataclasses import replace

import pytest
from rich.console import Console

from experiments.benchmark_rules import place
from experiments.benchmark_rules.place import in_turns
from experiments.benchmark_rules.sizes import ENVS, benchmark_sizes
from experiments.executors.endpoint import Endpoint
from experiments.joint_rules.config import JerpConfig
from experiments.joint_rules.main import run
from jerp.bridge.budget import BudgetExceededError
from jerp.errors import ConfigError, UnknownNameError
from jerp.storage.rule_files import read_pool
from tests.domains.doors import Doors
from tests.experiments.endpoint_server import MODEL, scripted_endpoint

RULE = "When a door is shut, take the key before you open it."


def quiet():
    return Console(file=io.StringIO(), width=110)


def follows(messages):
    """Writes the rule when it reflects; opens doors with a key once it reads that."""
    said = messages[1]["content"] if len(messages) > 1 else messages[0]["content"]
    if "What can be done now" not in said:
        return f"ADD: {RULE}"
    colour = said.split(" door.")[0].split()[-1]
    has_key = "You have a key" in said
    take = "take key" if RULE in said and not has_key else f"open {colour}"
    react = messages[-1]["content"].startswith("Thought")
    return f" So.\nAction: {take}" if react else f" {take}"


def test_rules_are_learned_and_help_and_a_run_resumes(tmp_path, monkeypatch):
    monkeypatch.setattr(place, "make_benchmark", lambda *_: Doors())
    text = io.StringIO()
    with scripted_endpoint(follows) as (url, asked):
        config = JerpConfig(
            env="webshop", executor=url, smoke=True, out=tmp_path / "run"
        )
        planned = run(replace(config, plan=True), console=quiet())
        assert not asked and not config.folder.exists()
        capped = replace(config, endpoint=Endpoint(max_requests=5, concurrency=1))
        with pytest.raises(BudgetExceededError, match="cap of 5"):
            run(capped, console=quiet())
        assert len(asked) == 5
        results = run(config, console=Console(file=text, width=110))
        assert 5 < len(asked) <= planned["calls"]
        number = len(asked)
        again = run(config, console=quiet())
        assert len(asked) == number and again["rows"] == results["rows"]
        with pytest.raises(ConfigError, match=r"config\.seed: 0 there, 1 here"):
            run(replace(config, seed=1), console=quiet())
    rows = results["rows"]
    assert rows["plain"]["success"]["point"] == rows["react"]["success"]["point"] == 0
    pool = read_pool(tmp_path / "run" / "learning" / "pool.json")
    # Held out are a blue and a green door; rules help where their kind has some.
    ruled = sum(bool(pool.pools.get(kind)) for kind in ("blue", "green")) / 2
    assert rows["rules"]["success"]["point"] == ruled > 0
    assert rows["rules"]["above_react"]["point"] == ruled
    assert {rule.text for rules in pool.pools.values() for rule in rules} == {RULE}
    report = (tmp_path / "run" / "report.md").read_text()
    assert RULE in report and "weights are not trained" in report
    assert MODEL in report and "numbers mean nothing" in text.getvalue()
    assert (tmp_path / "run" / "figures" / "curve.png").exists()


def test_tasks_come_in_turns_of_kinds():
    tasks = Doors().tasks("train")
    some = in_turns(tasks, 4, 0)
    assert [t.payload["kind"] for t in some] == ["blue", "green", "red", "blue"]
    assert in_turns(tasks, 4, 0) == some == in_turns(tasks, 6, 0)[:4]
    assert sorted(t.key for t in in_turns(tasks, 99, 1)) == sorted(t.key for t in tasks)


@pytest.mark.parametrize("env", ENVS)
def test_the_papers_numbers(env):
    paper = benchmark_sizes(env, "full")
    assert (paper.group_size, paper.num_rules) == (8, 10)
    assert paper.num_steps == (15 if env == "webshop" else 50)
    assert benchmark_sizes(env, "default").num_steps == paper.num_steps


@pytest.mark.parametrize(
    ("settings", "error", "word"),
    [
        ({"env": "webshp", "executor": "smollm2"}, UnknownNameError, "webshop"),
        ({"env": "webshop"}, ConfigError, "executor: expected who plays"),
        ({"executor": "smollm2"}, ConfigError, "executor: expected with a benchmark"),
        ({"plan": True}, ConfigError, "plan: expected with a benchmark"),
        (
            {"env": "webshop", "executor": "smollm2", "policy": "smollm2-135m"},
            ConfigError,
            "policy: expected none with --env",
        ),
        (
            {"env": "webshop", "executor": "smollm2", "endpoint": Endpoint("m")},
            ConfigError,
            "model: expected with an address",
        ),
    ],
)
def test_bad_settings_name_themselves(settings, error, word):
    with pytest.raises(error, match=word):
        JerpConfig(**settings)


def test_the_command_and_the_folder_name_the_benchmark():
    config = JerpConfig(env="webshop", executor="http://h/v1", endpoint=Endpoint("m"))
    assert config.command == (
        "jerp run jerp --env webshop --executor http://h/v1 --model m"
    )
    assert config.folder.name == "jerp-webshop"
