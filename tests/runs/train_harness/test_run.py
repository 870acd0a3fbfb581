"""Training from folders: two compilations, one for each kind of advantage."""

import re
from dataclasses import fields, replace

import jax
import numpy as np
import pytest

from jerp import cli
from jerp.errors import ConfigError
from jerp.models.controller import log_probs
from jerp.runs.train_harness import run
from jerp.runs.train_harness.buffer import read_buffer
from jerp.runs.train_harness.run import train_harness
from jerp.runs.train_harness.settings import TrainSettings
from jerp.storage.controllers import load_controller
from jerp.storage.episode_log import EpisodeLog
from jerp.training.awr import AwrConfig, AwrHyper
from tests.runs.train_harness.logs import ACTIONS, FEATURES, episodes, logged

TINY = {"epochs": 2, "batch_size": 16, "hidden_size": 4, "value_epochs": 2}
WORDS = [f"--{k.replace('_', '-')}={v}" for k, v in TINY.items()]


@pytest.fixture
def settings(tmp_path):
    return TrainSettings((logged(tmp_path / "log"),), tmp_path / "out", **TINY)


def trained(settings, **changes):
    """The controller of the settings, each change in a folder of its own."""
    changes = {"out": settings.out.with_name("-".join(["c", *changes])), **changes}
    return train_harness(replace(settings, **changes)).controller


def same(one, other):
    pairs = zip(jax.tree.leaves(one.params), jax.tree.leaves(other.params), strict=True)
    return all(np.array_equal(a, b) for a, b in pairs)


def test_a_controller_of_the_logs_own_layout_is_saved(settings):
    made = train_harness(settings)
    controller = load_controller(settings.out, feature_names=FEATURES)
    assert made.is_new and same(made.controller, controller)
    assert controller.action_names == ACTIONS and controller.feature_version == 2
    data, valid = episodes(), np.arange(12) < 11
    returns = np.where(data.mask, data.reward, 0).sum(axis=1)
    means = [returns[valid & (data.task_id == i)].mean() for i in range(4)]
    support = controller.support
    assert (support.num_episodes, support.num_tasks) == (11, 4)
    assert support.num_steps == data.mask[valid].sum() == sum(support.action_counts)
    np.testing.assert_allclose(support.mean_return, np.mean(means), rtol=1e-6)
    advantage = (returns - np.take(means, data.task_id))[valid]
    weight = np.clip(np.exp(advantage / 0.2), 0.1, 10)
    size = weight.sum() ** 2 / (weight**2).sum()
    np.testing.assert_allclose(support.effective_sample_size, size, rtol=1e-4)
    assert controller.training["command"].startswith("jerp train harness ")
    assert controller.training["data"][0]["episodes"] == 12


def test_every_setting_arrives_where_it_is_used():
    """That each changes what is trained there, the tests of AWR show."""
    base = TrainSettings((), None)  # type: ignore[arg-type]
    values = {**dict.fromkeys(("standardize", "leave_one_out"), True)}
    values |= {"advantage": "step", "epochs": 3, "batch_size": 5, "hidden_size": 6}
    values |= {"value_epochs": 7, "temperature": 8.0, "min_weight": 0.5}
    values |= {"max_weight": 9.0, "entropy_weight": 0.25, "learning_rate": 0.125}
    values |= {"discount": 0.75, "lambda_": 0.375, "value_learning_rate": 0.0625}
    known = {f.name for kind in (AwrConfig, AwrHyper) for f in fields(kind)}
    assert set(values) == known
    for name, value in values.items():
        config, hyper = run._awr(replace(base, **{name: value}))
        expected = AwrConfig(), AwrHyper()
        part = 0 if hasattr(config, name) else 1
        expected = [
            replace(e, **{name: value}) if i == part else e
            for i, e in enumerate(expected)
        ]
        assert [config, hyper] == expected


def test_numbers_change_what_is_learned(settings):
    base = trained(settings)
    changes = {"temperature": 1.0, "seed": 1, "min_weight": 0.9, "max_weight": 1.5}
    changes |= {"entropy_weight": 0.5, "learning_rate": 0.01, "discount": 0.5}
    changes |= {"normalize": True}
    for name, value in changes.items():
        other = trained(settings, **{name: value})
        assert not same(base, other), name
        assert other.training["settings"][name] == value


def test_per_step_advantages_weigh_steps(settings):
    controller = trained(settings, advantage="step")
    assert "value_hidden" in controller.params
    assert 1 <= controller.support.effective_sample_size <= controller.support.num_steps
    assert controller.training["results"]["value_loss"] > 0


def test_normalised_features_make_their_units_irrelevant(settings, tmp_path):
    data = episodes()
    moved = data.replace(
        observation=(data.observation * 10 + 3).astype(np.float32),
        final_observation=(data.final_observation * 10 + 3).astype(np.float32),
    )
    other = (logged(tmp_path / "moved", moved),)
    one = trained(settings, normalize=True)
    two = trained(settings, normalize=True, trajectories=other)
    for controller, seen in ((one, data), (two, moved)):
        mask = data.mask & (np.arange(12) < 11)[:, None]
        legal, steps = np.asarray(data.legal), np.asarray(seen.observation)[mask]
        np.testing.assert_allclose(controller.mean, steps.mean(axis=0), atol=1e-6)
        np.testing.assert_allclose(controller.scale, steps.std(axis=0), rtol=1e-5)
        there = log_probs(
            controller.params, (steps - controller.mean) / controller.scale, legal[mask]
        )
        here = controller.log_probs(steps, legal[mask])
        np.testing.assert_allclose(here, np.asarray(there), atol=1e-5)
    np.testing.assert_allclose(
        one.log_probs(data.observation, data.legal | ~data.mask[..., None])[mask],
        two.log_probs(moved.observation, data.legal | ~data.mask[..., None])[mask],
        atol=1e-4,
    )


def test_a_feature_that_never_varies_is_centred_alone(settings, tmp_path):
    observation = np.asarray(episodes().observation).copy()
    observation[..., 1] = 7
    log = logged(tmp_path / "flat", episodes(observation=observation))
    controller = trained(settings, trajectories=(log,), normalize=True)
    assert (controller.mean[1], controller.scale[1]) == (7, 1)


def test_the_same_command_trains_nothing_again(settings, monkeypatch):
    train_harness(settings)
    monkeypatch.setattr(run, "_fit", None)
    assert not train_harness(settings).is_new


def test_a_controller_is_never_overwritten_by_another(settings, tmp_path):
    train_harness(settings)
    with pytest.raises(ConfigError, match=r"settings\.seed: 0 there, 1 here"):
        train_harness(replace(settings, seed=1))
    other = (logged(tmp_path / "other", episodes(1)),)
    with pytest.raises(ConfigError, match=r"another controller: episodes\[0\]"):
        train_harness(replace(settings, trajectories=other))
    with pytest.raises(ConfigError, match="expected a new folder, or this command's"):
        train_harness(replace(settings, out=tmp_path))


def returns_of(values):
    """Episodes with those returns, all at the first step."""
    reward = np.zeros((12, 4), np.float32)
    reward[:, 0] = values
    return reward


@pytest.mark.parametrize(
    ("fields", "changes", "note"),
    [
        (
            {"log_prob": None},
            {},
            "no behaviour probabilities .* `jerp ope` will refuse",
        ),
        (
            {"legal": None},
            {},
            "odd: no legal actions .*: every action was taken for legal in every step",
        ),
        ({"task_id": np.zeros(12, np.int32)}, {}, "one task: the baseline is the mean"),
        ({"task_id": np.arange(12, dtype=np.int32)}, {}, "one episode a task: .* clon"),
        ({"reward": returns_of(0.5)}, {}, "all returns are equal: .* is behaviour clo"),
        (
            {"reward": returns_of(0.5)},
            {"advantage": "step"},
            "all returns are equal: .* errors of the value alone",
        ),
        ({"reward": returns_of(np.arange(12) % 4)}, {}, "differ between tasks alone"),
        ({}, {"temperature": float("inf")}, "temperature inf: behaviour cloning"),
    ],
)
def test_what_teaches_little_is_said(settings, tmp_path, fields, changes, note):
    log = logged(tmp_path / "odd", episodes(**fields))
    controller = trained(settings, trajectories=(log,), **changes)
    (found,) = controller.training["notes"]
    assert re.search(note, found)
    if "cloning" in note:
        weights = controller.support.effective_sample_size
        assert weights == pytest.approx(11)
    assert trained(settings).training["notes"] == []


def test_shards_that_lost_their_arrays_are_said(settings, tmp_path):
    log = logged(tmp_path / "lossy")
    for number in range(5):
        (log / f"transcripts-1{number}.jsonl").touch()
    (found,) = trained(settings, trajectories=(log,)).training["notes"]
    assert found.startswith(f"{log}: 5 shards (10, 11, 12, ...) without arrays: ")


def test_training_that_diverges_saves_nothing(settings):
    with pytest.raises(ConfigError, match=r"diverged: .* --learning-rate"):
        trained(settings, learning_rate=3e38)
    assert not settings.out.with_name("c-learning_rate").exists()


def test_an_interrupt_leaves_nothing_and_says_so(settings, monkeypatch, capsys):
    def interrupted(config):
        raise KeyboardInterrupt

    monkeypatch.setattr(run, "_trainer", interrupted)
    log, out = str(settings.trajectories[0]), str(settings.out)
    assert cli.main(["train", "harness", log, "--out", out]) == 130
    assert "interrupted; nothing was written" in capsys.readouterr().err
    assert not settings.out.exists()


def test_the_command_prints_what_there_was_and_what_is_next(settings, capsys):
    log, out = str(settings.trajectories[0]), str(settings.out)
    words = ["train", "harness", log, "--out", out, *WORDS]
    assert cli.main(words) == 0
    lines = capsys.readouterr().out.splitlines()
    assert lines[0].split() == ["episodes", "11"]
    assert lines[1].split()[-1] == "1" and "infrastructure" in lines[1]
    assert [line for line in lines if line.startswith("effective sample size")]
    assert lines[-2:] == [
        f"trained: {out}",
        "will it be better, on episodes that it did not learn from? "
        f"jerp ope OTHER_LOGS --controller {out}",
    ]
    assert cli.main(words) == 0
    assert "trained before, with the same settings" in capsys.readouterr().out
    assert cli.main([*words, "--seed", "1"]) == 2
    foreign = logged(settings.out.with_name("foreign"), episodes(log_prob=None))
    words = ["train", "harness", str(foreign), "--out", f"{out}-2", *WORDS]
    assert cli.main(words) == 0
    lines = capsys.readouterr().out.splitlines()
    assert lines[-2].startswith("note: no behaviour prob") and "trained:" in lines[-1]


def test_what_a_controller_did_trains_the_next_one(settings, tmp_path):
    controller = train_harness(settings).controller
    data = episodes()
    with EpisodeLog(
        tmp_path / "deployed", features=FEATURES, actions=ACTIONS, feature_version=2
    ) as log:
        for row in range(12):
            episode = log.begin(f"task-{row % 4}")
            for step in range(4):
                x, legal = data.observation[row, step], data.legal[row, step]
                episode.step(x, legal, controller.act(x, legal, seed=episode.seed))
            episode.end(row / 11)
    after = trained(settings, trajectories=(tmp_path / "deployed",))
    assert after.support.num_episodes == 12 and after.training["notes"] == []
    both = read_buffer((*settings.trajectories, tmp_path / "deployed"))
    assert [source.episodes for source in both.sources] == [12, 12]
    assert np.unique(both.data.task_id).tolist() == [0, 1, 2, 3]
