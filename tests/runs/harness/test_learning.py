"""What the controllers of a run keep, with parameters that nobody trained."""

from types import SimpleNamespace
from typing import Any

import numpy as np

from jerp.harness.actions import ACTIONS
from jerp.harness.state import FEATURE_VERSION, FEATURES
from jerp.models.acting import Decision
from jerp.runs.harness import learning
from jerp.runs.harness.arms import LEARNED, LEARNED_ARMS
from jerp.runs.train_harness.buffer import read_buffer
from jerp.storage.controllers import load_controller
from jerp.storage.episode_log import EpisodeLog
from jerp.storage.trajectories import TrajectoryFolder


def untrained(config):
    """As many parameters and weights as training has: temperatures, then seeds."""
    size = max(map(len, LEARNED.values()))

    def train(keys, hyper, data):
        axes = (size, len(keys))
        params = {
            "hidden": {
                "kernel": np.zeros((*axes, len(FEATURES), 2), np.float32),
                "bias": np.zeros((*axes, 2), np.float32),
            },
            "logits": {
                "kernel": np.zeros((*axes, 2, len(ACTIONS)), np.float32),
                "bias": np.zeros((*axes, len(ACTIONS)), np.float32),
            },
        }
        weight = np.ones((*axes, len(data.mask)), np.float32)
        return SimpleNamespace(params=params), {"weight": weight}

    return train


def test_controllers_say_which_episodes_they_learned_from(tmp_path, monkeypatch):
    folder = tmp_path / "buffer"
    layout: Any = {"features": FEATURES, "feature_version": FEATURE_VERSION}
    with EpisodeLog(folder, **layout, actions=ACTIONS) as log:
        episode = log.begin("a")
        decision = Decision(0, ACTIONS[0], 0.0)
        episode.step(np.zeros(len(FEATURES)), [True] * len(ACTIONS), decision)
        episode.end(1)
    run: Any = SimpleNamespace(
        folder=tmp_path,
        domain=SimpleNamespace(name="coding"),
        progress=SimpleNamespace(add_task=lambda *_, **__: 0, advance=lambda _: None),
        sizes=SimpleNamespace(epochs=1),
        seed=0,
        seeds=1,
        log=lambda _: None,
    )
    monkeypatch.setattr(learning, "_trainer", untrained)
    learning.train_controllers(run, TrajectoryFolder.open(folder))
    (source,) = read_buffer([folder]).sources
    for name in LEARNED_ARMS:
        training = load_controller(tmp_path / "controllers" / f"{name}-0").training
        (kept,) = training["data"]
        assert kept["folder"] == str(folder)
        assert kept["fingerprint"] == source.fingerprint
        assert kept["episodes"] == 1
