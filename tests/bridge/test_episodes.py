import chex
import jax
import jax.numpy as jnp
import numpy as np
import pytest

from jerp.bridge.episodes import act, run_episodes
from jerp.bridge.scripted import ScriptedExecutor
from jerp.bridge.session import Session
from jerp.bridge.store import ResponseStore, StoredExecutor
from jerp.errors import ConfigError, StorageError
from jerp.trajectory import check_trajectory
from jerp.typing import Outcome
from tests.bridge.fake_domain import FakeDomain, answer
from tests.bridge.policies import keys, labels, scripted, uniform

BATCH = 6


def episodes(
    *, policy=uniform, domain=None, executor=None, tasks=None, samples=None, **kwargs
):
    domain = domain or FakeDomain()
    tasks = tasks or domain.generate(0, BATCH)
    batch = len(tasks)
    session = Session(domain, executor or ScriptedExecutor(answer))
    samples = np.arange(batch) % 3 if samples is None else samples
    arguments = labels(batch) | {"keys": keys(batch)} | kwargs
    key = arguments.pop("keys")
    result = run_episodes(
        session, policy, jnp.zeros(()), key, tasks, samples, **arguments
    )
    assert not session._episodes
    return result


def test_a_scripted_episode_is_recorded_step_by_step():
    draft_check_submit = scripted(3, 4, 6)
    result = episodes(policy=draft_check_submit)
    t = check_trajectory(result.trajectory)
    assert t.mask.tolist() == [[True] * 3 + [False] * 5] * BATCH
    assert t.action[:, :3].tolist() == [[3, 4, 6]] * BATCH
    assert t.terminated[:, 2].all() and t.terminated.sum() == BATCH
    assert not t.truncated.any()
    np.testing.assert_array_equal(t.score, np.float32([1, 0.5, 0.5] * 2))
    np.testing.assert_array_equal(t.reward[:, 2], t.score)
    assert t.reward.sum() == t.score.sum()
    assert t.outcome.tolist() == [1, 0, 0] * 2
    assert t.usage[:, 0, 0].tolist() == [1] * BATCH and t.usage[:, 1:].sum() == 0
    assert t.task_id.tolist() == [0, 1, 2, 3, 4, 5]
    assert t.group_id.tolist() == [0, 0, 1, 1, 2, 2]
    assert t.seed.tolist() == [10, 11, 12, 13, 14, 15]
    assert t.version.tolist() == [0] * BATCH


def test_observations_are_of_before_and_the_last_of_after():
    result = episodes(policy=scripted(3, 4, 6))
    progress = result.trajectory.observation[:, :, 0]
    np.testing.assert_allclose(progress[:, :3], [[0, 1 / 8, 2 / 8]] * BATCH)
    np.testing.assert_allclose(result.trajectory.final_observation[:, 0], 3 / 8)
    assert not result.trajectory.observation[:, 3:].any()
    assert not result.trajectory.legal[:, 3:].any()
    assert not result.trajectory.log_prob[:, 3:].any()


def test_workspaces_hold_the_text():
    result = episodes(policy=scripted(3, 6))
    assert [w.task.key[-1] for w in result.workspaces] == list("012345")
    assert [s["action"] for s in result.workspaces[4].transcript] == ["draft", "submit"]


def test_too_few_steps_truncate_where_the_episode_stood():
    result = episodes(policy=scripted(3, 4, 6), num_steps=2)
    t = check_trajectory(result.trajectory)
    assert t.mask.all() and t.mask.shape == (BATCH, 2)
    assert t.truncated.tolist() == [[False, True]] * BATCH
    assert t.outcome.tolist() == [Outcome.TRUNCATED] * BATCH
    assert not t.score.any()


def test_the_domains_budget_truncates_once():
    domain = FakeDomain()
    domain.max_steps = 3
    # `scripted` reads its step from the progress in eighths: 0, 3 and 5 of 8 here.
    t = episodes(domain=domain, policy=scripted(0, 0, 0, 3, 0, 4)).trajectory
    assert t.mask.sum(axis=1).tolist() == [3] * BATCH
    assert t.truncated.sum(axis=1).tolist() == [1] * BATCH
    assert t.outcome.tolist() == [Outcome.TRUNCATED] * BATCH


def test_infrastructure_episodes_stay_in_the_batch(caplog):
    executor = ScriptedExecutor(answer, failures={2: "timeout"})
    domain = FakeDomain(raises=[4])
    result = episodes(policy=scripted(3, 4, 6), domain=domain, executor=executor)
    t = check_trajectory(result.trajectory)
    assert t.outcome.tolist() == [1, 0, 4, 1, 4, 0]
    assert t.score.tolist() == [1, 0.5, 0, 1, 0, 0.5]
    assert t.mask.sum(axis=1).tolist() == [3, 3, 1, 3, 3, 3]
    assert t.truncated[2, 0] and t.truncated[4, 2]
    assert not t.terminated[[2, 4]].any()


def test_an_episode_does_not_depend_on_what_shares_its_batch():
    domain = FakeDomain()
    tasks = domain.generate(0, BATCH)
    whole = episodes(domain=domain, tasks=tasks).trajectory
    rows = np.array([4, 1])
    few = episodes(
        domain=domain,
        tasks=[tasks[i] for i in rows],
        samples=rows % 3,
        keys=keys(BATCH)[rows],
    ).trajectory
    for name in ("action", "log_prob", "observation", "score", "mask", "usage"):
        np.testing.assert_array_equal(
            getattr(few, name), getattr(whole, name)[rows], err_msg=name
        )


def test_the_key_of_a_step_is_the_episodes_folded_with_its_number():
    seen = []

    def policy(params, key, observation, legal):
        return jnp.int32(3), jax.random.uniform(key) - 1

    log_prob = act(
        policy, (), keys(3), jnp.int32(5), jnp.zeros((3, 2)), jnp.ones((3, 7), bool)
    )[1]
    for key in keys(3):
        seen.append(float(jax.random.uniform(jax.random.fold_in(key, 5)) - 1))
    np.testing.assert_allclose(log_prob, seen)


def test_no_policy_meets_an_empty_set_of_actions():
    def policy(params, key, observation, legal):
        return jnp.int32(0), legal.sum().astype(jnp.float32)

    legal = jnp.array([[False] * 7, [True] + [False] * 6])
    counts = act(policy, (), keys(2), jnp.int32(0), jnp.zeros((2, 2)), legal)[1]
    assert counts.tolist() == [7, 1]


def test_recorded_log_probabilities_are_those_of_the_policy():
    t = episodes().trajectory
    expected = np.where(t.mask, -np.log(np.maximum(t.legal.sum(-1), 1)), 0)
    np.testing.assert_allclose(t.log_prob, expected, rtol=1e-6)


def test_anchors_are_equal_iff_task_and_state_are():
    domain = FakeDomain()
    task, other = domain.generate(0, 2)
    result = episodes(
        domain=domain,
        tasks=[task, task, other],
        samples=np.zeros(3, int),
        policy=scripted(0, 3, 6),
    )
    anchor, mask = result.trajectory.anchor, result.trajectory.mask
    np.testing.assert_array_equal(anchor[0], anchor[1])
    assert not set(anchor[0][mask[0]]) & set(anchor[2][mask[2]])
    assert anchor[0][mask[0]].tolist() == [0, 1, 2]


def test_one_trace_for_all_batches_of_a_size():
    policy = chex.assert_max_traces(scripted(3, 6), n=1)
    for _ in range(2):
        episodes(policy=policy)
    with pytest.raises(AssertionError):
        episodes(policy=policy, tasks=FakeDomain().generate(0, 2))


def test_the_version_may_differ_by_episode():
    t = episodes(version=np.arange(BATCH)).trajectory
    assert t.version.tolist() == list(range(BATCH))


def test_the_store_is_on_disk_before_episodes_are_returned(tmp_path):
    store = ResponseStore(tmp_path)
    executor = StoredExecutor(ScriptedExecutor(answer), store)
    store.put("verdict", "k", {"passed": True})
    episodes(executor=executor, policy=scripted(3, 6))
    entries = ResponseStore(tmp_path, mode="replay").entries()
    assert {e.kind for e in entries} == {"completion", "verdict"}
    assert len(entries) == BATCH + 1


def test_errors_of_the_session_propagate_and_close_the_episodes():
    domain = FakeDomain(raises=[2], error=StorageError)
    session = Session(domain, ScriptedExecutor(answer))
    with pytest.raises(StorageError, match="broke on 2"):
        run_episodes(
            session,
            scripted(3, 6),
            (),
            keys(BATCH),
            domain.generate(0, BATCH),
            np.zeros(BATCH, int),
            **labels(BATCH),
        )
    assert not session._episodes


@pytest.mark.parametrize(
    ("change", "match"),
    [
        ({"keys": keys(2)}, "keys: expected one for each of the 6"),
        ({"keys": np.zeros((BATCH, 2), np.uint32)}, "keys: expected typed keys"),
        ({"num_steps": 0}, "num_steps"),
    ],
)
def test_wrong_arguments_are_refused_by_name(change, match):
    with pytest.raises(ConfigError, match=match):
        episodes(**change)
