"""The programs of docs/worlds.md run, and its table names what there is."""

import importlib
import re
from pathlib import Path
from types import SimpleNamespace

import jax
import pytest

from jerp.envs.checks import check_environment
from jerp.envs.house import house_large, house_small
from jerp.envs.lookup_tasks import LookupSize
from jerp.envs.probes import Probe
from jerp.envs.shop import Shop
from jerp.envs.tools import Tools
from jerp.errors import EnvironmentCheckError
from jerp.storage import weights
from jerp.storage.metrics import read_metrics
from tests.bridge.words import word_tokenizer
from tests.pages import run_program

PAGE = (Path(__file__).parents[3] / "docs" / "worlds.md").read_text(encoding="utf-8")
WORLD, TRAINING, WORDS = re.findall(r"```python\n(.+?)```", PAGE, re.DOTALL)
POLICY = "num_steps=env.horizon)"
SMALLER = "num_steps=env.horizon, hidden_size=32, num_layers=1)"
SAID = "Go to the barn ford mill inn gate . , : In a row You are at go left right"


@pytest.fixture(scope="module")
def names():
    """What the world's program defines, as a reader would paste it."""
    defined = {"__name__": "worlds"}
    run_program(WORLD, "worlds.md", defined)
    return defined


def test_the_world_passes_the_check_and_a_policy_learns_in_it(
    names, tmp_path, monkeypatch
):
    monkeypatch.chdir(tmp_path)
    # The first of two; the other is of the task.
    smaller = TRAINING.replace(POLICY, SMALLER, 1)
    assert smaller.count(SMALLER) == 1
    run_program(smaller, "worlds.md", dict(names))
    success = [row["success"] for row in read_metrics("run/metrics.jsonl")]
    assert len(success) == 20
    assert success[0] < 0.9 < min(success[-3:])


def test_the_world_in_words(names, monkeypatch):
    tokenizer = word_tokenizer(SAID)
    monkeypatch.setattr(
        weights, "load_weights", lambda name: SimpleNamespace(tokenizer=tokenizer)
    )
    defined = dict(names)
    run_program(WORDS, "worlds.md", defined)
    tasks = jax.numpy.array([2])
    states, _ = jax.vmap(names["Chain"]().reset)(jax.random.key(0)[None], tasks)
    (read,) = defined["view"].observations(states, tasks, first=True)
    said = " ".join(tokenizer.id_to_token(i) for i in read if i)
    at = names["PLACES"][states.at[0]]
    assert said.startswith("Go to the mill . In a row : barn , ford ,")
    assert said.endswith(f"gate . \n You are at the {at} . \n >")
    assert defined["view"].actions(tasks).shape == (1, 2, 4)


def test_the_check_finds_an_anchor_that_forgets(names):
    class Forgets(names["Chain"]):
        def anchor(self, state, params):
            return state.at // 2

    with pytest.raises(EnvironmentCheckError, match="anchor"):
        check_environment(
            Forgets(), jax.numpy.arange(5), jax.random.key(0), num_steps=8
        )


def test_the_table_names_what_there_is():
    table = PAGE.partition("| world of `jerp.envs` |")[2]
    named = [
        (module, name)
        for module, name in re.findall(r"`(\w+)\.(\w+)", table)
        if module != "env"
    ]
    assert len(named) == 10
    for module, name in named:
        assert hasattr(importlib.import_module(f"jerp.envs.{module}"), name)


def test_the_steps_and_splits_of_the_table():
    rows = [line.split("|") for line in PAGE.splitlines() if line.startswith("| `")]
    numbers = [[int(x) for x in re.findall(r"\d+", row[4])][-2:] for row in rows]
    assert numbers == [
        [house_small().horizon, house_large().horizon],
        [Shop().horizon],
        [1, LookupSize().max_lookups + 1],
        [Tools().horizon],
        [Probe().num_steps],
    ]
