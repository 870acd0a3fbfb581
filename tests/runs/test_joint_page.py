"""The programs of docs/joint.md run, and its tables name what there is."""

import inspect
import re
from dataclasses import fields
from pathlib import Path

import jerp
from jerp.envs.rule_language import sentence
from jerp.runs.jerp.loop import train_jerp
from jerp.runs.jerp.settings import RuleSettings
from jerp.storage.metrics import read_metrics
from jerp.storage.rule_documents import PoolDocument, PoolRule
from jerp.storage.rule_files import read_pool
from jerp.training.joint import RuleConfig
from tests.pages import run_program

PAGE = (Path(__file__).parents[2] / "docs" / "joint.md").read_text(encoding="utf-8")
PROGRAMS = re.findall(r"```python\n(.+?)```", PAGE, re.DOTALL)
[TRAIN, EVALUATE] = PROGRAMS
SIZES = "    num_rules=8,\n"
SMALLER = f"{SIZES}    hidden_size=32,\n    num_layers=1,\n"
"""Of the policy: three programs of it are compiled, and none is trained to be good."""


def test_the_programs_run_and_leave_a_run(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    names = {}
    smaller = TRAIN.replace(SIZES, SMALLER)
    assert smaller.count(SMALLER) == 1
    run_program(smaller, "joint.md", names)
    assert capsys.readouterr().out.startswith("0 texts so far, pool ('pick', 'look'")
    assert len(read_metrics(Path("run/metrics.jsonl"))) == 2
    assert not any(read_pool("run/pool.json").pools.values())

    # What comes after is shown of a run that has a rule, which the page's has not yet.
    Path("run").rename("without")
    text = sentence(names["language"], 12, 2)
    start = PoolDocument({"heat": (PoolRule(text, 9),)})
    ruled = smaller.replace("iterations=2", "iterations=1, start_pool=start")
    run_program(ruled, "joint.md", names | {"start": start})
    run_program(EVALUATE, "joint.md", names)
    said = capsys.readouterr().out.splitlines()[1:]
    assert said[0] == "0 rules know of these tasks"
    assert said[1].startswith("success with rules 0.")
    assert re.fullmatch(re.escape(text) + r" -?\d\.\d\d \[.+, .+\]", said[2])
    assert len(said) == 3


def test_every_setting_of_the_page_exists():
    known = set(inspect.signature(train_jerp).parameters)
    known |= {field.name for field in fields(RuleConfig)} | {"share", "merge"}
    known |= {field.name for field in fields(RuleSettings)}
    words = PAGE.replace(TRAIN, "").replace(EVALUATE, "")
    named = set(re.findall(r"`[^`\n]*?(\w+)=", words)) - {"view"}
    assert named and named <= known


def test_every_equation_of_the_page_exists():
    names = re.findall(r"`jerp\.([a-z_]+)`", PAGE)
    assert len(names) >= 5
    assert all(callable(getattr(jerp, name)) for name in names)


def test_the_capacity_of_the_page_is_the_default():
    capacity = RuleConfig(num_rules=1).capacity
    assert f"`capacity`, {capacity} rules stay, and with so many a pool is full" in PAGE
