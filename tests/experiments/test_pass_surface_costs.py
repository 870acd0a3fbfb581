"""Costs and forgetting of made-up arms: by hand, and where nothing is saved."""

import json
from functools import partial

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from experiments.pass_surface import forgetting, questions
from experiments.pass_surface.config import CATEGORIES, Sizes
from experiments.pass_surface.costs import (
    Runs,
    TrainingTokens,
    arm_costs,
    cost_tables,
)
from experiments.pass_surface.forgetting import (
    forgetting_numbers,
    forgetting_table,
    play_elsewhere,
)
from experiments.pass_surface.places import Place
from experiments.pass_surface.questions import episode_key
from jerp.storage.documents import defined

KS = (1, 2, 4)
LABELS = {"base": "base", "arm": "Arm"}
TRAINING = TrainingTokens(generated=900.0, learned=2700.0)


def runs(share, tokens, key=0, number=40, samples=8):
    right = jax.random.uniform(jax.random.key(key), (number, samples)) < share
    return [Runs(np.asarray(right, np.int8), np.full((number, samples), tokens))] * 2


def costs(base, arm):
    return defined(arm_costs(jax.random.key(1), base, arm, KS, TRAINING))


def tables(found):
    training = {"arm": TRAINING._asdict()}
    return cost_tables(
        {"training": training, "ks": KS, "categories": {"B": {"arm": found}}}, LABELS
    )


def test_costs_by_hand():
    base, arm = runs(0.2, 6), runs(0.45, 9, key=1)
    found = costs(base, arm)
    assert found["num_questions"] == 80
    assert (found["tokens_base"], found["tokens_arm"]) == (6, 9)
    assert found["base_pass"][0] == pytest.approx(base[0].outcome.mean(), rel=1e-5)
    assert found["reached"]
    saving = found["samples"]["point"] * 6 - 9
    assert found["saving"]["point"] == pytest.approx(saving, rel=1e-5)
    assert found["uses"]["point"] == pytest.approx(3600 / saving, rel=1e-5)
    assert found["affordable"]["point"] == 1.5
    # A run of the arm costs one and a half of the base's.
    assert found["equal_cost"]["point"][0] is None
    json.dumps(found, allow_nan=False)


def test_where_nothing_is_saved_the_table_says_never():
    found = costs(runs(0.4, 6), runs(0.4, 9))
    assert found["uses"]["point"] is None
    row = tables(found)[1].rows[0]
    assert row[-1].startswith("never [never")


def solved(number, tokens):
    """Four runs of each of four questions, of which the first `number` are right."""
    right = np.arange(16) < number
    return [Runs(right.astype(np.int8).reshape(4, 4), np.full((4, 4), tokens))]


def test_an_arm_that_solves_less_has_no_equivalent_and_never_pays():
    # A run costs half and solves an eighth of all less: not what the base's one run
    # does for 8 - 4 tokens less, which 3600 / 4 uses would pay.
    found = costs(solved(8, 8), solved(6, 4))
    assert (found["base_pass"][0], found["arm_pass"][0]) == (0.5, 0.375)
    for name in ("samples", "saving", "uses"):
        assert found[name] == {"point": None, "low": None, "high": None}
    assert found["affordable"]["point"] == 0.5
    assert tables(found)[1].rows[0][5:] == ("- (k = 0.5)", "-", "-", "never")
    json.dumps(found, allow_nan=False)


def test_an_arm_that_solves_as_much_for_less_pays():
    found = costs(solved(8, 8), solved(8, 4))
    assert found["samples"]["point"] == 1.0
    assert (found["saving"]["point"], found["uses"]["point"]) == (4.0, 900.0)
    assert tables(found)[1].rows[0][6].startswith("1.0 [1.0, ")


def test_where_the_base_never_gets_there_the_table_says_so_and_bounds():
    found = costs(runs(0.0, 6), runs(0.5, 9))
    assert not found["reached"]
    row = tables(found)[1].rows[0]
    assert row[5] == ".00 [.00, .00] (k = 1.5)"
    assert row[6] == "never within 4"
    assert row[7].startswith(">= 15.0") and row[8].startswith("<= 240")


def test_a_cheaper_arm_leaves_the_base_less_than_a_run():
    found = costs(runs(0.4, 6), runs(0.4, 3))
    assert found["base_value"]["point"] is None
    assert tables(found)[1].rows[0][5] == "- (k = 0.5)"


def test_every_row_has_a_cell_a_column():
    for table in tables(costs(runs(0.2, 6), runs(0.5, 9, key=1))):
        assert all(len(row) == len(table.header) for row in table.rows)
        assert table.rows
    training = tables(costs(runs(0.2, 6), runs(0.5, 9, key=1)))[0]
    assert training.rows == [("Arm", "900", "2,700")]


def worlds(base, arm):
    return {"base": {"house": np.array(base)}, "arm": {"house": np.array(arm)}}


def test_forgetting_by_hand():
    seeds = [worlds([1, 1, 1, 0] * 8, [1, 0, 0, 0] * 8)] * 2
    seeds.append(worlds([1, 1, 0, 0] * 8, [1, 1, 0, 0] * 8))
    found = defined(forgetting_numbers(jax.random.key(0), seeds))["house"]
    assert "difference" not in found["base"]
    assert found["base"]["success"]["by_seed"] == [0.75, 0.75, 0.5]
    difference = found["arm"]["difference"]
    assert difference["by_seed"] == [-0.5, -0.5, 0]
    assert difference["point"] == pytest.approx(-1 / 3)
    assert difference["high"] < 0
    # Three seeds of which one shows nothing say little: t is 4.3.
    assert found["arm"]["seeds"]["low"] < -0.33 < 0 < found["arm"]["seeds"]["high"]
    table = forgetting_table({"house": found}, LABELS)
    assert all(len(row) == len(table.header) for row in table.rows)
    assert table.rows[1][4] == "-.50 -.50 +.00"


def test_a_single_seed_has_no_interval_between_seeds():
    seeds = [worlds([1, 0] * 8, [0, 0] * 8)]
    found = defined(forgetting_numbers(jax.random.key(0), seeds))
    assert found["house"]["arm"]["seeds"]["low"] is None
    assert forgetting_table(found, LABELS).rows[1][-1] == "-"


def test_other_worlds_share_no_key_with_test_questions(monkeypatch):
    used = []

    def drawn(key, number, split):
        used.append(key)
        return jnp.arange(number)

    def won(key, tasks, params, *, place, policy):
        used.append(key)
        return tasks > 0

    place = Place("made up", None, drawn, 1)  # pyright: ignore
    monkeypatch.setattr(Place, "policy", lambda self: None)
    monkeypatch.setattr(forgetting, "place_named", lambda name: place)
    monkeypatch.setattr(forgetting, "_won", won)
    seed = jax.random.key(0)
    play_elsewhere(seed, 0, Sizes(other_tasks=100))
    # Questions draw from halves of theirs, episodes of blocks from folds of theirs.
    for category in CATEGORIES:
        episode = episode_key(seed, category)
        used += [questions._stream(seed, category, questions.ASK), episode]
        used += [jax.random.fold_in(episode, block) for block in range(4)]
    data = [tuple(jax.random.key_data(key).tolist()) for key in used]
    assert len({*data}) == len(data) == 2 * 3 + 3 * 6


def test_all_arms_play_the_same_tasks_with_the_same_keys(monkeypatch):
    asked = []

    def won(key, tasks, params, *, place, policy):
        asked.append((jax.random.key_data(key).tolist(), tasks.tolist()))
        return tasks % 2 == params

    place = Place("made up", None, lambda key, n, split: jnp.arange(n), 1)  # pyright: ignore
    monkeypatch.setattr(Place, "policy", lambda self: None)
    monkeypatch.setattr(forgetting, "place_named", lambda name: place)
    monkeypatch.setattr(forgetting, "_won", won)
    play = partial(play_elsewhere, sizes=Sizes(other_tasks=100))
    even, odd = play(jax.random.key(0), 0), play(jax.random.key(0), 1)
    assert [*even] == ["tools", "house"]
    for name in even:
        np.testing.assert_array_equal(even[name], np.arange(100) % 2 == 0)
        np.testing.assert_array_equal(odd[name], ~even[name])
    assert asked[: len(asked) // 2] == asked[len(asked) // 2 :]
