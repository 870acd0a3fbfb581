"""Checks of all benchmarks: what is at fault and what was left out is told."""

import json
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from jerp import cli
from jerp.domains import catalogue
from jerp.errors import ConfigError, MissingExtraError, UnknownNameError
from jerp.runs import conformance
from jerp.runs.conformance import check_all, document
from tests.domains.counting import Counting


@dataclass
class One(Counting):
    """Counting without its empty part; says when it is closed."""

    number: int = 3
    splits = ("all",)
    closed: list = field(default_factory=list)

    def close(self):
        self.closed.append(True)


@pytest.fixture
def made(monkeypatch):
    """What benchmarks are made by name; the catalogue's are left out."""
    made = {"minigrid": One(broken={"counting/2": "too few"}), "humaneval": One()}

    def make(name, data=None):
        if name not in made:
            raise MissingExtraError(name, "benchmarks")
        return made[name]

    monkeypatch.setattr(conformance, "make_benchmark", make)
    return made


def test_all_that_can_be_made_are_checked_and_closed(made):
    seen = []

    def watch(name, total):
        seen.append((name, total))
        return lambda done: seen.append(done)

    checks = check_all(watch=watch)
    assert [(c.checked, c.oracle, c.broken) for c in checks.found] == [
        (3, 1, 0),
        (2, 1, 1),
    ]
    assert seen == [("counting all", 3), 1, 1, 1, ("counting all", 2), 1, 1]
    assert {*checks.left_out} == {*catalogue.BENCHMARKS} - {*made}
    assert "jerp[benchmarks]" in checks.left_out["bfcl"]
    assert all(benchmark.closed == [True] for benchmark in made.values())


def test_what_is_named_must_be_there(made):
    assert [c.checked for c in check_all(["minigrid", "minigrid"], limit=1).found] == [
        1
    ]
    with pytest.raises(MissingExtraError):
        check_all(["minigrid", "bfcl"])
    with pytest.raises(UnknownNameError, match="did you mean 'bfcl'"):
        check_all(["bfl"])
    with pytest.raises(UnknownNameError, match="split"):
        check_all(["minigrid"], split="al")
    with pytest.raises(ConfigError, match="the one benchmark"):
        check_all(data=Path("here"))
    with pytest.raises(ConfigError, match="limit: expected at least 1"):
        check_all(limit=0)


def test_the_command_prints_the_table_and_writes_the_numbers(made, capsys, tmp_path):
    out = tmp_path / "found.json"
    assert cli.main(["conformance", "--out", str(out)]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert lines[0].split() == list(conformance.COLUMNS)
    assert lines[1].split()[:4] == ["counting", "1", "all", "3/3"]
    assert lines[1].split()[4:8] == ["100.0%", "0.0%", "0.0%", "0.0%"]
    assert lines[2].split()[3:6] == ["2/3", "(1", "broken)"]
    # In brackets, which are no markup here.
    told = [line for line in lines if line.startswith("bfcl was left out")]
    assert len(told) == 1 and "pip install 'jerp[benchmarks]'" in told[0]
    found = json.loads(out.read_text())
    assert [row["oracle"] for row in found["found"]] == [1, 1]
    assert found["found"][0]["steps_per_second"] > 0
    assert found == json.loads(json.dumps(found)) and "bfcl" in found["left_out"]


def test_a_fault_is_told_and_is_the_exit_status(made, capsys):
    made["minigrid"].fault = "raise"
    assert cli.main(["conformance", "minigrid"]) == 1
    assert "counting all, counting/1: malformed moves: " in capsys.readouterr().out
    assert cli.main(["conformance", "bfcl"]) == 2
    assert "this needs 'bfcl'" in capsys.readouterr().err


def test_nothing_to_check_is_a_failure_and_many_faults_are_cut(made, capsys):
    class Short(One):
        def oracle(self, task):
            return ()

    made["minigrid"] = Short(number=25)
    assert cli.main(["conformance", "minigrid"]) == 1
    assert "and 5 more faults" in capsys.readouterr().out
    assert len(document(check_all(["minigrid"]))["found"][0]["faults"]) == 25
    made.clear()
    assert cli.main(["conformance"]) == 2
    assert "left out" in capsys.readouterr().out
