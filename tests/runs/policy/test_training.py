"""Training runs: k + resume = n to the bit; files, refusals, a loss that is NaN."""

from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from jerp.bridge.world_episodes import play_worlds
from jerp.envs.probes import probe_params
from jerp.errors import ConfigError, StorageError, TrainingError
from jerp.runs.policy import groups, iterations, training
from jerp.runs.policy.groups import PolicyTask, play_groups
from jerp.runs.policy.training import train_policy
from jerp.storage.checkpoints import Checkpoints
from jerp.storage.metrics import read_metrics
from jerp.storage.tensors import load_tree
from jerp.training.group import make_group_step
from jerp.training.group_settings import GroupConfig, GroupHyper
from jerp.typing import Outcome
from tests.training.cue_world import POLICY, STEPS, CueWorld

TASK = PolicyTask(CueWorld(STEPS), POLICY, GroupConfig(4), 4, STEPS)
HYPER = GroupHyper(learning_rate=0.02)
TASKS = jax.tree.map(
    lambda x: jnp.tile(x, 2), probe_params("matching", "action", "delayed")
)
KEY = jax.random.key(0)
INIT = jax.jit(POLICY.init)


def trained(folder, number, *, task=TASK, hyper=HYPER, tasks=TASKS, **settings):
    params = INIT(jax.random.key(1))
    settings = {"chunk": 2, **settings}
    return train_policy(
        folder, KEY, task, hyper, tasks, params, iterations=number, **settings
    )


@jax.jit
def played(params):
    return play_groups(jax.random.key(2), TASK, TASKS, params)


def same(one, two):
    for x, y in zip(jax.tree.leaves(one), jax.tree.leaves(two), strict=True):
        np.testing.assert_array_equal(x, y)


def test_k_and_resume_is_n_to_the_bit(tmp_path):
    whole, _ = trained(tmp_path / "whole", 6)
    trained(tmp_path / "parts", 2)
    rest, _ = trained(tmp_path / "parts", 6)
    same(whole.params, rest.params)
    same(whole.opt_state, rest.opt_state)
    rows = read_metrics(tmp_path / "whole" / "metrics.jsonl")
    assert rows == read_metrics(tmp_path / "parts" / "metrics.jsonl")
    assert [row["step"] for row in rows] == [*range(6)]
    assert {"success", "entropy", "sampler_gap", "dead_share", "steps"} <= rows[
        0
    ].keys()
    assert max(row["sampler_gap"] for row in rows) < 1e-4
    seen = []
    trained(tmp_path / "parts", 6, on_progress=seen.append)
    assert seen == [6]
    with pytest.raises(ConfigError, match=r"iterations: expected at least 6, .* got 2"):
        trained(tmp_path / "parts", 2)


def test_one_run_at_a_time_is_in_a_folder(tmp_path):
    def again(done):
        with pytest.raises(StorageError, match=r"in use by process .*; wait for"):
            trained(tmp_path, 2)

    trained(tmp_path, 2, on_progress=again)


def test_what_callers_hold_stays_and_what_a_run_holds_is_consumed(
    tmp_path, monkeypatch
):
    params = INIT(jax.random.key(1))
    held = (params, TASKS, jax.random.key_data(KEY))
    before = jax.tree.map(np.array, held)
    consumed = []

    def watched(*arguments, **settings):
        found = iterations.compiled_iterations(*arguments, **settings)
        consumed.extend(jax.tree.leaves(arguments[6].params))
        return found

    monkeypatch.setattr(training, "compiled_iterations", watched)
    train_policy(tmp_path, KEY, TASK, HYPER, TASKS, params, iterations=4, chunk=2)
    assert consumed and all(x.is_deleted() for x in consumed)
    assert not any(x.is_deleted() for x in (KEY, *jax.tree.leaves(held)))
    same(before, (params, TASKS, jax.random.key_data(KEY)))


def test_rows_after_the_last_checkpoint_are_taken_back(tmp_path):
    trained(tmp_path / "run", 2)
    path = tmp_path / "run" / "metrics.jsonl"
    kept = path.read_bytes()
    path.write_bytes(kept + b'{"step": 2, "loss": 1.0}\n{"step": 3, "lo')
    with pytest.warns(UserWarning, match="1 steps after the last checkpoint"):
        trained(tmp_path / "run", 2)
    assert path.read_bytes() == kept
    path.write_bytes(kept.split(b"\n")[0] + b"\n")
    with pytest.raises(
        StorageError, match="expected the 2 steps before the checkpoint"
    ):
        trained(tmp_path / "run", 4)
    path.write_bytes(b"what\n" + kept)
    with pytest.raises(StorageError, match="line 1 is no row of metrics"):
        trained(tmp_path / "run", 4)


def test_groups_are_of_distinct_tasks_and_start_alike():
    data = played(INIT(jax.random.key(1)))
    by_group = np.asarray(data.task_id).reshape(4, 4)  # episode b is of group b % 4
    assert (by_group == by_group[:1]).all() and len(set(by_group[0])) == 4
    cues = np.asarray(data.observation)[:, 0, 0].reshape(4, 4)
    assert (cues == cues[:1]).all()


def test_a_loss_that_is_no_number_stops_and_keeps_its_batch(tmp_path, monkeypatch):
    def broken(key, task, env_params, params, play):
        data = play_groups(key, task, env_params, params, play=play)
        return data.replace(reward=jnp.where(data.mask, jnp.nan, data.reward))

    monkeypatch.setattr(groups, "play_groups", broken)
    task = replace(TASK, config=replace(TASK.config, advantage="return"))
    with pytest.raises(TrainingError, match="iteration 0: the loss is nan"):
        trained(tmp_path / "run", 2, task=task)
    tree, document = load_tree(tmp_path / "run" / "nan-batch.safetensors")
    assert document == {"iteration": 0} and tree["action"].shape == (16, STEPS)
    assert not read_metrics(tmp_path / "run" / "metrics.jsonl")


@pytest.mark.parametrize(
    ("settings", "word"),
    [
        ({"chunk": 0}, "chunk: expected at least 1, got 0"),
        ({"number": -1}, "iterations: expected at least 0, got -1"),
        ({"hyper": HYPER.replace(learning_rate=-1.0)}, "learning_rate: .*-1"),
        ({"hyper": HYPER.replace(learning_rate=jnp.nan)}, "learning_rate: .*nan"),
        ({"tasks": jnp.int32(3)}, r"env_params: expected leaves \[N, ...\]"),
    ],
)
def test_numbers_that_cannot_be_meant(tmp_path, settings, word):
    with pytest.raises(ConfigError, match=word):
        trained(tmp_path / "run", **{"number": 2, **settings})
    assert not (tmp_path / "run").exists()


def test_refusals(tmp_path):
    params = INIT(jax.random.key(1))
    with pytest.raises(ConfigError, match="kl_weight: expected 0 without a reference"):
        trained(tmp_path / "kl", 2, hyper=HYPER.replace(kl_weight=0.5))
    with pytest.raises(ConfigError, match=r"frozen: .*'decoder' in both"):
        trained(tmp_path / "both", 2, frozen={"decoder": params["decoder"]})
    few = jax.tree.map(lambda x: x[:3], TASKS)
    with pytest.raises(ConfigError, match="at least num_groups=4 tasks, got 3"):
        trained(tmp_path / "few", 2, tasks=few)
    with pytest.raises(ConfigError, match="num_steps: expected at least 1, got 0"):
        replace(TASK, num_steps=0)
    with pytest.raises(ConfigError, match=r"key: expected a typed key .*, got int"):
        train_policy(tmp_path, 3, TASK, HYPER, TASKS, params, iterations=1)
    with pytest.raises(ConfigError, match="group_size: expected at least 2"):
        replace(TASK, group_size=1)


@pytest.mark.slow
@pytest.mark.parametrize("chunk", [1, 2])
def test_a_later_loss_that_is_no_number_is_made_again(tmp_path, chunk):
    """From the checkpoint before, or from the parameters that the caller still has."""
    with pytest.raises(TrainingError, match="iteration 1: the loss is nan"):
        trained(tmp_path, 2, hyper=GroupHyper(learning_rate=3e38), chunk=chunk)
    tree, document = load_tree(tmp_path / "nan-batch.safetensors")
    assert document == {"iteration": 1} and tree["action"].shape == (16, STEPS)
    assert len(read_metrics(tmp_path / "metrics.jsonl")) == 2 - chunk


@dataclass(frozen=True)
class Steep:
    """A policy whose numbers are sound, and their gradient is not."""

    policy: Any = POLICY

    def start(self, params, batch_size):
        return self.policy.start(params, batch_size)

    def act(self, params, *arguments):
        return self.policy.act(params, *arguments)

    def evaluate(self, params, trajectory, *, key=None):
        found = self.policy.evaluate(params, trajectory)
        nothing = jnp.sqrt(0 * params["decoder"]["final_norm"][0])
        return found.replace(log_prob=found.log_prob + nothing)


@pytest.mark.parametrize("play", [None, play_worlds])
def test_a_gradient_that_is_no_number_stops_before_a_checkpoint(tmp_path, play):
    task = replace(TASK, policy=Steep())
    with pytest.raises(TrainingError, match=r"iteration 0: .* its gradient nan"):
        trained(tmp_path / "run", 2, task=task, play=play)
    assert (tmp_path / "run" / "nan-batch.safetensors").exists()
    with Checkpoints(tmp_path / "run" / "checkpoints") as checkpoints:
        assert checkpoints.latest is None


def test_warnings_are_of_the_whole_run(tmp_path, monkeypatch):
    given = []
    monkeypatch.setattr(
        training, "collapse_warnings", lambda rows, **_: given.append(len(rows)) or []
    )
    trained(tmp_path / "run", 2)
    trained(tmp_path / "run", 4)
    trained(tmp_path / "run", 4)
    assert given == [2, 4, 4]


def test_lost_episodes_enter_no_mean():
    params = INIT(jax.random.key(1))
    data = played(params)
    lost = jnp.arange(16) < 4
    broken = data.replace(
        outcome=jnp.where(lost, Outcome.INFRASTRUCTURE, Outcome.SUCCESS),
        score=jnp.where(lost, jnp.nan, 1.0),
        log_prob=jnp.where(lost[:, None], jnp.nan, data.log_prob),
    )
    learned = partial(iterations._learned, TASK, HYPER, None, None)
    _, metrics = jax.jit(learned)(_state(params), broken)
    assert metrics["success"] == metrics["score"] == 1
    assert metrics["lost_episodes"] == 4 and metrics["sampler_gap"] < 1e-4


def _state(params):
    init, _ = make_group_step(TASK.config, TASK.policy)
    return init(jax.random.key(3), HYPER, params)


def test_a_mirror_may_fail(tmp_path):
    shown = []

    def mirror(step, numbers):
        shown.append(step)
        if step == 1:
            raise OSError("no route")

    with pytest.warns(UserWarning, match="left out from step 1 on: OSError: no route"):
        trained(tmp_path / "run", 4, mirrors=[mirror])
    assert shown == [0, 1]


def test_another_policy_in_the_same_folder_is_refused(tmp_path):
    trained(tmp_path / "run", 2)
    other = partial(train_policy, tmp_path / "run", KEY, TASK, HYPER, TASKS)
    params = INIT(jax.random.key(1))
    del params["decoder"]["final_norm"]
    with pytest.raises(ConfigError, match=r"decoder/final_norm to be .* got absent"):
        other(params, iterations=4)


def test_another_algorithm_in_the_same_folder_is_refused(tmp_path):
    """Its parameters fit, and its curve would look like one run."""
    trained(tmp_path / "run", 2)
    task = replace(TASK, config=replace(TASK.config, baseline="leave_one_out"))
    with pytest.raises(StorageError, match="config/task/config/baseline is 'mean'"):
        trained(tmp_path / "run", 4, task=task)


def test_playing_from_the_host_is_the_same_training(tmp_path):
    """Also when it is resumed; and what made a loss NaN is kept."""
    compiled, _ = trained(tmp_path / "compiled", 4)
    trained(tmp_path / "host", 1, play=play_worlds)
    stepped, _ = trained(tmp_path / "host", 4, play=play_worlds)
    for x, y in zip(
        jax.tree.leaves(compiled.params), jax.tree.leaves(stepped.params), strict=True
    ):
        np.testing.assert_allclose(x, y, atol=1e-5)
    whole, _ = trained(tmp_path / "host-whole", 4, play=play_worlds)
    same(whole.params, stepped.params)
    rows = [read_metrics(tmp_path / n / "metrics.jsonl") for n in ("compiled", "host")]
    assert [r["success"] for r in rows[0]] == [r["success"] for r in rows[1]]
    assert rows[0][0].keys() == rows[1][0].keys()
    with pytest.raises(TrainingError, match="iteration 0: the loss is"):
        trained(
            tmp_path / "nan",
            2,
            play=play_worlds,
            hyper=HYPER.replace(entropy_weight=jnp.nan),
        )
    tree, note = load_tree(tmp_path / "nan" / "nan-batch.safetensors")
    assert note["iteration"] == 0 and tree["mask"].shape == (16, STEPS)
