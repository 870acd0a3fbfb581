"""A decoder over pooled steps: acting equals evaluating, and the past alone counts."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from jerp.envs.probes import Probe, probe_params
from jerp.errors import ConfigError, ShapeError
from jerp.models.decoder import DecoderConfig
from jerp.models.step_policy import StepPolicy, step_policy
from jerp.rollout.scan import rollout
from jerp.trajectory import Trajectory
from jerp.typing import USAGE_KINDS

FIELDS, ACTIONS, STEPS, BATCH = (3, 2), 4, 5, 3
POLICY = step_policy(
    FIELDS,
    ACTIONS,
    num_steps=STEPS,
    hidden_size=8,
    num_layers=2,
    num_heads=2,
    value=True,
)


def params(seed=0, scale=20.0):
    """Larger than at the start, so that every input matters."""
    tree = jax.jit(POLICY.init)(jax.random.key(seed))
    tree = jax.tree.map(lambda x: x * scale, tree)
    tree["value"]["kernel"] = jnp.arange(8.0)
    return tree


def episodes():
    rng = np.random.default_rng(0)
    fields = rng.integers(0, FIELDS, (BATCH, STEPS, 2)).astype(np.int32)
    legal = rng.random((BATCH, STEPS, ACTIONS)) < 0.7
    legal[..., 1] = True
    mask = np.arange(STEPS)[None] < np.array([5, 3, 4])[:, None]
    return fields, legal, mask


def trajectory(fields, legal, mask, action):
    flags = np.zeros(mask.shape, bool)
    row = np.zeros(BATCH, np.int32)
    return Trajectory(
        observation=fields,
        action=action,
        reward=np.zeros(mask.shape, np.float32),
        terminated=flags,
        truncated=flags,
        mask=mask,
        anchor=np.zeros(mask.shape, np.int32),
        usage=np.zeros((*mask.shape, len(USAGE_KINDS)), np.float32),
        final_observation=fields[:, 0],
        task_id=row,
        group_id=row,
        seed=row,
        outcome=row,
        score=np.zeros(BATCH, np.float32),
        version=row,
        legal=legal,
    )


def played(tree):
    """Actions drawn step by step, and their log-probabilities."""
    fields, legal, _ = episodes()
    memory, actions, log_probs = POLICY.start(tree, BATCH), [], []
    act = jax.jit(POLICY.act)
    for t in range(STEPS):
        keys = jax.random.split(jax.random.key(t), BATCH)
        memory, acted = act(tree, memory, keys, fields[:, t], legal[:, t])
        actions.append(acted.action)
        log_probs.append(acted.log_prob)
    return np.stack(actions, 1), np.stack(log_probs, 1)


def test_acting_equals_evaluating_and_is_legal():
    tree = params()
    fields, legal, mask = episodes()
    action, log_prob = played(tree)
    assert np.take_along_axis(legal, action[..., None], -1)[mask[..., None]].all()
    found = jax.jit(POLICY.evaluate)(tree, trajectory(fields, legal, mask, action))
    np.testing.assert_allclose(found.log_prob[mask], log_prob[mask], atol=1e-5)
    assert np.isfinite(found.entropy).all() and (found.entropy >= 0).all()
    assert found.value.shape == mask.shape


def test_by_hand_with_one_layer_that_does_nothing():
    """Without layers a state is its normalised input, a logit its product."""
    policy = step_policy(
        FIELDS, 2, num_steps=1, hidden_size=2, num_layers=0, num_heads=1
    )
    tree = {"decoder": {"embedding": jnp.zeros((8, 2)), "final_norm": jnp.ones(2)}}
    table = (
        tree["decoder"]["embedding"].at[1].set(jnp.array([3.0, 0.0]))
    )  # field 0 is 1
    table = table.at[4].set(jnp.array([0.0, 3.0]))  # field 1 is 1
    table = table.at[7].set(jnp.array([0.0, 1.0]))  # no action yet
    tree["decoder"]["embedding"] = table.at[5].set(jnp.array([1.0, 0.0]))
    _, acted = policy.act(
        tree,
        policy.start(tree, 1),
        jax.random.split(jax.random.key(0), 1),
        jnp.array([[1, 1]]),
        jnp.ones((1, 2), bool),
    )
    first = 3 / np.sqrt((9 + 16) / 2)
    expected = first * (acted.action[0] == 0) - np.log(1 + np.exp(first))
    assert float(acted.log_prob[0]) == pytest.approx(float(expected), rel=1e-4)


def test_a_step_sees_what_was_before_and_nothing_after():
    tree = params()
    fields, legal, mask = episodes()
    mask[:] = True
    action, _ = played(tree)
    before = POLICY.evaluate(tree, trajectory(fields, legal, mask, action)).log_prob
    changed = fields.copy()
    changed[:, 3] = (changed[:, 3] + 1) % 2
    after = POLICY.evaluate(tree, trajectory(changed, legal, mask, action)).log_prob
    np.testing.assert_array_equal(after[:, :3], before[:, :3])
    assert (np.abs(after - before)[:, 3:] > 1e-6).any(axis=1).all()
    other = action.copy()
    other[:, 1] = (other[:, 1] + 1) % ACTIONS
    after = POLICY.evaluate(tree, trajectory(fields, legal, mask, other)).log_prob
    np.testing.assert_array_equal(after[:, 0], before[:, 0])
    assert (np.abs(after - before)[:, 2:] > 1e-6).any()


def test_padding_may_hold_anything():
    tree = params()
    fields, legal, mask = episodes()
    action, _ = played(tree)
    clean = POLICY.evaluate(tree, trajectory(fields, legal, mask, action))
    fields[~mask], action[~mask], legal[~mask] = 10**6, -5, False
    dirty = POLICY.evaluate(tree, trajectory(fields, legal, mask, action))
    for name in ("log_prob", "entropy", "value"):
        x, y = getattr(clean, name), getattr(dirty, name)
        np.testing.assert_array_equal(np.asarray(x)[mask], np.asarray(y)[mask])
        assert np.isfinite(y).all()


def test_gradients_reach_every_parameter_and_are_finite():
    fields, legal, mask = episodes()
    action, _ = played(params())

    def loss(tree):
        found = POLICY.evaluate(tree, trajectory(fields, legal, mask, action))
        return jnp.sum(jnp.where(mask, found.log_prob + found.value, 0.0))

    gradient = jax.jit(jax.grad(loss))(params())
    for path, leaf in jax.tree_util.tree_leaves_with_path(gradient):
        assert np.isfinite(leaf).all() and np.any(leaf), path


def test_in_a_rollout_starts_may_be_shared():
    policy = step_policy((2,), 2, num_steps=2, hidden_size=8, num_layers=1, num_heads=1)
    world = _CueAsField(Probe())
    tree = jax.jit(policy.init)(jax.random.key(1))
    play = jax.jit(
        rollout,
        static_argnames=("env", "policy", "num_steps", "batch_size", "shared_start"),
    )
    tasks = probe_params("matching", "action", "delayed")

    def cues(shared_start):
        data = play(
            jax.random.key(0),
            world,
            tasks,
            policy,
            tree,
            num_steps=2,
            batch_size=24,
            shared_start=shared_start,
        )
        again = policy.evaluate(tree, data)
        np.testing.assert_allclose(again.log_prob, data.log_prob, atol=1e-5)
        return np.asarray(data.observation)[:, 0, 0].reshape(8, 3)

    assert (cues(True) == cues(True)[:1]).all()
    assert (cues(False) != cues(False)[:1]).any()


def test_steps_beyond_the_memory_are_refused_or_have_no_numbers():
    """By a rollout before it begins; by the policy where a loop is the host's."""
    policy = step_policy((2,), 2, num_steps=1, hidden_size=8, num_layers=1, num_heads=1)
    tree, tasks = jax.jit(policy.init)(jax.random.key(1)), probe_params("matching")
    world = _CueAsField(Probe())
    with pytest.raises(ConfigError, match="num_steps: expected at most 1, the steps"):
        rollout(
            jax.random.key(0), world, tasks, policy, tree, num_steps=2, batch_size=2
        )
    memory, act = policy.start(tree, 2), jax.jit(policy.act)
    seen, legal, found = jnp.zeros((2, 1), jnp.int32), jnp.ones((2, 2), bool), []
    for t in range(3):
        keys = jax.random.split(jax.random.key(t), 2)
        memory, acted = act(tree, memory, keys, seen, legal)
        found.append(np.isnan(acted.log_prob).tolist())
    assert found == [[False, False], [True, True], [True, True]]


@pytest.mark.parametrize("sizes", [(2,), (3, 2, 2)])
def test_a_world_of_another_number_of_fields_is_refused(sizes):
    """A single field would be read as each of the two that there are."""
    policy = step_policy(sizes, ACTIONS, num_steps=STEPS, hidden_size=8, num_layers=0)
    fields, legal, mask = episodes()
    tree = jax.eval_shape(policy.init, jax.random.key(0))
    memory = policy.start(tree, BATCH)
    keys = jax.random.split(jax.random.key(0), BATCH)
    data = trajectory(fields, legal, mask, np.zeros(mask.shape, np.int32))
    message = f"observation: expected {len(sizes)} fields a step.*got \\[2\\]"
    with pytest.raises(ShapeError, match=message):
        jax.eval_shape(policy.act, tree, memory, keys, fields[:, 0], legal[:, 0])
    with pytest.raises(ShapeError, match=message):
        jax.eval_shape(policy.evaluate, tree, data)


class _CueAsField:
    """The probe world with its cue as a field."""

    def __init__(self, env):
        self.env = env

    def reset(self, key, params):
        return self._shown(*self.env.reset(key, params))

    def step(self, key, state, action, params):
        return self._shown(*self.env.step(key, state, action, params))

    def _shown(self, state, now):
        return state, now.replace(observation=state.cue[None])


def test_another_vocabulary_is_refused():
    config = DecoderConfig(
        vocab_size=9,
        hidden_size=8,
        intermediate_size=8,
        num_layers=1,
        num_heads=1,
        num_kv_heads=1,
        head_dim=8,
        context_length=5,
    )
    with pytest.raises(ConfigError, match="vocab_size: expected 10"):
        StepPolicy(config, FIELDS, ACTIONS)
