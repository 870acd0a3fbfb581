"""Rules before an episode: acting and evaluating read the same, and what they say."""

from functools import partial

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from jerp.envs.probes import Probe, probe_params
from jerp.errors import ConfigError, ShapeError
from jerp.models.rule_prefix import rule_inputs
from jerp.models.step_policy import step_policy
from jerp.rollout.scan import rollout

SIZES, RULES = (3, 4), np.array([[1, 2], [2, 3], [2, 1]], np.int32)
PROBE = Probe(observation="fields")
TASKS = probe_params("delayed", "observed")
POLICY = step_policy(
    PROBE.field_sizes,
    PROBE.num_actions,
    num_steps=4,
    hidden_size=8,
    num_layers=2,
    num_heads=2,
    rule_sizes=SIZES,
    num_rules=2,
)


# One program each, however many tests play and evaluate.
_play = jax.jit(partial(rollout, num_steps=3, batch_size=4), static_argnums=(1, 3))
_evaluate = jax.jit(POLICY.evaluate)


def params(rules=RULES):
    """Larger than at the start, so that every input matters."""
    tree = jax.jit(POLICY.init)(jax.random.key(0))
    tree = jax.tree.map(lambda x: 8 * x, tree)
    return {**tree, "rules": jnp.asarray(rules)}


def played(working_set, tree=None, policy=POLICY):
    return _play(
        jax.random.key(1),
        PROBE,
        TASKS,
        policy,
        params() if tree is None else tree,
        working_set=None if working_set is None else jnp.asarray(working_set),
    )


def evaluated(data, tree=None):
    return _evaluate(params() if tree is None else tree, data).log_prob


@pytest.mark.parametrize("rules", [[[0, 1], [2, -1]], [[-1, -1], [1, 0]], None])
def test_acting_equals_evaluating(rules):
    data = played(rules)
    gap = np.where(data.mask, evaluated(data) - data.log_prob, 0)
    assert np.abs(gap).max() < 1e-5
    assert data.working_set is None or np.array_equal(
        data.working_set, np.asarray(rules)[[0, 1, 0, 1]]
    )


def test_none_is_an_empty_working_set():
    empty = played(np.full((2, 2), -1, np.int32))
    np.testing.assert_array_equal(played(None).log_prob, empty.log_prob)


def test_what_a_rule_says_and_its_place_are_read():
    data = played([[0, 1], [0, 1]])
    first = evaluated(data)
    for other in ([[0, 2]], [[1, 0]], [[0, -1]]):
        rules = jnp.asarray(other * 4, jnp.int32)
        change = evaluated(data.replace(working_set=rules)) - first
        assert np.abs(np.where(data.mask, change, 0)).max() > 1e-3


def test_a_rule_is_what_its_fields_say_and_not_its_number():
    data = played([[0, 1], [2, -1]])
    moved = data.replace(working_set=jnp.array([[2, 0], [1, -1]] * 2, jnp.int32))
    tree = params(RULES[[1, 2, 0]])
    np.testing.assert_array_equal(evaluated(moved, tree), evaluated(data))


def test_rules_that_are_not_read_change_nothing():
    data = played([[0, 1], [0, 1]])
    tree = params(np.concatenate([RULES[:2], [[0, 0]]]))
    np.testing.assert_array_equal(evaluated(data, tree), evaluated(data))


def test_padding_is_not_read():
    data = played([[0, 1], [2, -1]])
    mask = data.mask.at[0, 1].set(False)
    shown = jnp.where(mask[..., None], data.observation, 10**6)
    masked = data.replace(observation=shown, mask=mask)
    kept = np.asarray(mask)
    np.testing.assert_array_equal(
        np.asarray(evaluated(masked))[kept], np.asarray(evaluated(data))[kept]
    )


def test_inputs_are_sums_of_embeddings():
    rng = np.random.default_rng(0)
    rows = rng.normal(size=(7, 5)).astype(np.float32)
    working = np.array([[0, -1], [2, 1]], np.int32)
    expected = np.zeros((2, 2, 5), np.float32)
    for b in range(2):
        for r in range(2):
            one, two = RULES[working[b, r]] if working[b, r] >= 0 else (0, 0)
            expected[b, r] = rows[one] + rows[3 + two]
    for function in (rule_inputs, jax.jit(rule_inputs, static_argnames="sizes")):
        found = function(rows, RULES, jnp.asarray(working), sizes=SIZES)
        np.testing.assert_allclose(found, expected, rtol=1e-6)


def test_the_table_of_rules_gets_no_gradient():
    data, tree = played([[0, 1], [2, -1]]), params()
    rules = tree.pop("rules")

    def loss(tree):
        return POLICY.evaluate({**tree, "rules": rules}, data).log_prob.sum()

    gradient = jax.jit(jax.grad(loss))(tree)["decoder"]["embedding"]
    assert np.isfinite(gradient).all()
    first = sum(POLICY.field_sizes) + POLICY.num_actions + 1
    assert np.abs(gradient[first + 1 : first + 3]).max() > 0


def test_rules_for_a_policy_that_reads_none_are_refused():
    plain = step_policy(
        PROBE.field_sizes, PROBE.num_actions, num_steps=3, hidden_size=8, num_heads=2
    )
    tree = jax.jit(plain.init)(jax.random.key(0))
    with pytest.raises(ConfigError, match="working_set: expected None"):
        played([[0, 1], [0, 1]], tree, plain)
    data = played([[0, 1], [0, 1]])
    with pytest.raises(ConfigError, match="working_set: expected None"):
        plain.evaluate(tree, data)


def test_mistakes_are_named():
    with pytest.raises(ShapeError, match=r"working_set: expected axes \[B, R\]"):
        played([[0], [1]])
    with pytest.raises(ShapeError, match=r"working_set: expected axes \[N, R\]"):
        played([[0, 1]])
    tree = params()
    del tree["rules"]
    with pytest.raises(ConfigError, match="expected an entry 'rules'"):
        played([[0, 1], [0, 1]], tree)
    with pytest.raises(ConfigError, match="num_rules, rule_sizes"):
        step_policy((2,), 2, num_steps=3, num_rules=2)
    with pytest.raises(ShapeError, match="rules: expected axes"):
        played([[0, 1], [0, 1]], params(np.zeros((3, 1), np.int32)))
