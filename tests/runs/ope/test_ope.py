"""`jerp ope` in process: a table for a controller, and a reason wherever there is none.

The controller is uniform over the legal actions and so is the behaviour, unless said
otherwise: weights are 1 and every estimate is the log's own mean return.
"""

import json
import re
import shutil
from dataclasses import asdict

import jax
import numpy as np
import pytest

from jerp.cli.app import execute
from jerp.models.acting import HarnessController
from jerp.runs.ope.predict import predict
from jerp.runs.train_harness.buffer import read_buffer
from jerp.storage.controllers import save_controller
from jerp.storage.trajectories import TrajectoryFolder
from tests.runs.train_harness.logs import ACTIONS, FEATURES, episodes, logged, spoilt

FLOOR = ("--min-effective", "5", "--resamples", "50")


def uniform(**fields):
    """The episodes, as a uniform choice among the legal actions would log them."""
    data = episodes(**fields)
    log_prob = -np.log(np.asarray(data.legal).sum(axis=-1)).astype(np.float32)
    return data.replace(log_prob=log_prob)


def controller(path, bias=0.0, version=2, features=FEATURES, training=None):
    """Logits of 0, but for that of the first action."""
    sizes = (len(features), 2, len(ACTIONS))
    first = np.zeros(sizes[2], np.float32)
    first[0] = bias
    params = {
        "hidden": {"kernel": np.zeros(sizes[:2]), "bias": np.zeros(2)},
        "logits": {"kernel": np.zeros(sizes[1:]), "bias": first},
    }
    params = jax.tree.map(np.float32, params)
    made = HarnessController(
        params, features, ACTIONS, version, training=training or {}
    )
    return save_controller(path, made)


def jerp(tmp_path, log, *words, **changes):
    folder = controller(tmp_path / "c", **changes)
    return execute(["ope", str(log), "--controller", str(folder), *FLOOR, *words])


def test_the_behaviour_itself_is_worth_what_it_earned(tmp_path, capsys):
    data, out = uniform(), tmp_path / "out"
    log = logged(tmp_path / "log", data)
    assert jerp(tmp_path, log, "--out", str(out)) == 0
    shown = capsys.readouterr().out
    mean = np.where(data.mask, data.reward, 0)[:11].sum(axis=1).mean()
    results = json.loads((out / "results.json").read_text())
    assert (results["episodes"], results["excluded"], results["tasks"]) == (11, 1, 4)
    assert results["effective_sample_size"] == pytest.approx(11, rel=1e-5)
    assert results["overlap"]["supported_mass"] == pytest.approx(1, rel=1e-5)
    for name, found in results["methods"].items():
        if name not in ("fitted_q", "doubly_robust"):
            assert found["point"] == pytest.approx(mean, abs=2e-5), name
            assert found["low"] <= found["lower_bound"] <= found["point"]
        assert found["refused"] is None
        assert f"{found['point']:.3f}" in shown
    assert "11 episodes of 4 tasks weigh as much as 11.0" in shown
    assert "note: 1 episodes left out: infrastructure failed" in shown
    assert "| doubly robust |" in (out / "report.md").read_text()
    assert jerp(tmp_path, log, "--out", str(out)) == 0


def test_a_controller_of_its_own_ways_is_refused_with_the_reason(tmp_path, capsys):
    assert jerp(tmp_path, logged(tmp_path / "log", uniform()), bias=9.0) == 0
    shown = capsys.readouterr().out
    assert shown.count("refused\n") == 6
    assert "refused: the " in shown and "behaviour, as logged" in shown


def test_one_task_has_no_interval_and_constant_returns_have_one_of_width_0(
    tmp_path, capsys
):
    earned = np.abs(episodes().reward)
    one = uniform(task_id=np.zeros(12, np.int32), reward=earned)
    log = logged(tmp_path / "one", one)
    assert jerp(tmp_path, log, "--lower-bound", "bernstein") == 0
    shown = capsys.readouterr().out
    assert "refused: fewer than 4 tasks say too little" in shown
    row = next(line for line in shown.splitlines() if line.startswith("importance"))
    assert "none" in row and re.search(r"-?\d\.\d{3}", row)
    flat = uniform(reward=np.zeros((12, 4), np.float32) + np.eye(4, dtype="f4")[:1] / 2)
    assert jerp(tmp_path, logged(tmp_path / "flat", flat)) == 0
    shown = capsys.readouterr().out
    assert "[0.500, 0.500]" in shown and "every episode has the return 0.5" in shown


def test_a_log_without_legal_actions_says_that_all_were_taken_for_legal(
    tmp_path, capsys
):
    log, out = logged(tmp_path / "log", uniform().replace(legal=None)), tmp_path / "out"
    assert jerp(tmp_path, log, "--out", str(out)) == 0
    said = f"note: {log}: no legal actions"
    assert said in capsys.readouterr().out
    assert f"- {said}" in (out / "report.md").read_text()
    (found,) = [n for n in result_notes(out) if "legal" in n]
    assert "every action was taken for legal in every step" in found
    full = logged(tmp_path / "full", uniform())
    assert jerp(tmp_path, full) == 0
    assert "no legal actions" not in capsys.readouterr().out


def test_shards_that_lost_a_file_are_pointed_out_with_their_numbers(tmp_path, capsys):
    log, out = logged(tmp_path / "log", uniform()), tmp_path / "out"
    TrajectoryFolder.open(log).write_shard("0001", uniform())
    (log / "transcripts-0000.jsonl").unlink()
    (log / "trajectories-0001.safetensors").unlink()
    assert jerp(tmp_path, log, "--out", str(out)) == 0
    arrays, text = (
        f"note: {log}: 1 shard (0001) without arrays: the episodes are not among "
        "these 12;",
        f"note: {log}: 1 shard (0000) without text",
    )
    shown, report = capsys.readouterr().out, (out / "report.md").read_text()
    for said in (arrays, text):
        assert said in shown and f"- {said}" in report
        assert any(f"note: {n}".startswith(said) for n in result_notes(out))


def learned_from(folder, **changes):
    """What `jerp train harness` keeps of its episodes, if it learned from `folder`."""
    (source,) = read_buffer([folder]).sources
    return {"data": [{**asdict(source), **changes}]}


def test_the_episodes_that_a_controller_learned_from_are_pointed_out(tmp_path, capsys):
    log, out = logged(tmp_path / "log", uniform()), tmp_path / "out"
    copy = shutil.copytree(log, tmp_path / "copy")
    said = f"note: {copy}: these are the episodes that the controller learned from"
    assert jerp(tmp_path, copy, "--out", str(out), training=learned_from(log)) == 0
    assert said in capsys.readouterr().out
    assert f"- {said}" in (out / "report.md").read_text()
    (found,) = [n for n in result_notes(out) if "learned" in n]
    assert found.endswith("luck there looks like a gain here: use others")


def test_a_folder_that_grew_since_is_suspected(tmp_path, capsys):
    log = logged(tmp_path / "log", uniform())
    training = learned_from(log, fingerprint="of fewer", episodes=5)
    assert jerp(tmp_path, log, training=training) == 0
    said = f"note: {log}: the controller learned from 5 episodes that were in a folder"
    assert said in capsys.readouterr().out


@pytest.mark.parametrize("training", [{}, {"data": "mine"}, {"data": [{"mine": 1}]}])
def test_a_controller_that_does_not_say_what_it_learned_from_is_suspected(
    tmp_path, capsys, training
):
    log = logged(tmp_path / "log", uniform())
    assert jerp(tmp_path, log, training=training) == 0
    assert "note: the controller does not say which episodes" in capsys.readouterr().out


def test_other_episodes_are_as_they_should_be(tmp_path, capsys):
    other = logged(tmp_path / "other", episodes(1))
    log = logged(tmp_path / "log", uniform())
    assert jerp(tmp_path, log, training=learned_from(other)) == 0
    assert "learned" not in capsys.readouterr().out


def result_notes(out):
    return json.loads((out / "results.json").read_text())["notes"]


@pytest.mark.parametrize(
    ("spoil", "message"),
    [
        (dict(log_prob=None), "expected the behaviour's probabilities"),
        (("legal", (3, 0), False), "action: expected legal where mask, got illegal at"),
        (("observation", (1, 0, 2), np.nan), "'drafts'"),
    ],
)
def test_a_log_that_cannot_answer_is_one_line(tmp_path, capsys, spoil, message):
    if isinstance(spoil, dict):
        log = logged(tmp_path / "log", uniform().replace(**spoil))
    else:
        log = spoilt(logged(tmp_path / "log", uniform()), *spoil)
    assert jerp(tmp_path, log) == 2
    assert message in capsys.readouterr().err


def test_a_controller_or_setting_that_does_not_fit_is_one_line(tmp_path, capsys):
    log = logged(tmp_path / "log", uniform())
    assert jerp(tmp_path, log, version=3) == 2
    assert "feature_version: 3 there, 2 here" in capsys.readouterr().err
    assert jerp(tmp_path, log, features=("haste", *FEATURES[1:])) == 2
    assert "feature_names[0]" in capsys.readouterr().err
    document = controller(tmp_path / "c") / "controller.json"
    document.write_text(
        document.read_text().replace('"schema_version": 1', '"schema_version": 9')
    )
    words = ["ope", str(log), "--controller", str(tmp_path / "c")]
    assert execute(words) == 2
    assert "of a newer jerp" in capsys.readouterr().err
    controller(tmp_path / "d")
    words = ["ope", str(log), "--controller", str(tmp_path / "d")]
    assert execute([*words, "--level", "95"]) == 2
    assert "--level: expected in (0.5, 1), got 95.0" in capsys.readouterr().err
    assert execute([*words, "--out", str(log)]) == 2
    assert "which jerp ope did not write" in capsys.readouterr().err


def test_predictions_of_several_are_those_of_each():
    data, shape = uniform(), (2, 12, 4, len(ACTIONS))
    target = np.where(data.legal, np.arange(4.0), -np.inf) * np.ones(shape)
    target[1] = np.where(data.legal, 0.0, -np.inf)
    target -= np.log(np.exp(target).sum(axis=-1, keepdims=True))
    settings = {"min_effective": 1.0, "min_support": 0.01, "num_resamples": 50}
    settings["methods"] = ("ordinary", "weighted")
    key = jax.random.key(0)
    both = predict(key, data, target.astype(np.float32), **settings)
    again = predict(key, data, target[::-1].astype(np.float32), **settings)
    assert json.loads(json.dumps(both)) == both
    for one, other in zip(both, again[::-1], strict=True):
        for name in ("ordinary", "weighted"):
            expected = pytest.approx(other["methods"][name]["point"], rel=1e-4)
            assert one["methods"][name]["point"] == expected
    points = [one["methods"]["ordinary"]["point"] for one in both]
    assert abs(points[0] - points[1]) > 1e-3
