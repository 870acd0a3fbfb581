"""Shuffling and minibatches: every real row once an epoch, padding never."""

import jax
import jax.numpy as jnp
import numpy as np
import optax

from jerp.records import LossOutput, WeightedMean
from jerp.training.minibatches import minimize, real_rows_first, shuffled_rows

MASK = np.array([[1, 1, 0], [0, 0, 0], [1, 0, 0]], bool)


def test_real_rows_come_first_in_order():
    x = np.arange(18, dtype=np.float32).reshape(3, 3, 2)
    rows = real_rows_first({"x": np.where(MASK[..., None], x, np.nan)}, MASK)["x"]
    np.testing.assert_array_equal(rows[:3], [[0, 1], [2, 3], [12, 13]])
    np.testing.assert_array_equal(rows[3:], np.zeros((6, 2)))


def test_an_order_is_a_permutation_of_the_real_rows_whatever_follows():
    count = jnp.int32(50)
    order = np.asarray(shuffled_rows(jax.random.key(0), 64, count))
    assert sorted(order[:50]) == list(range(50))
    assert sorted(order) == list(range(64))
    assert list(order[:50]) != sorted(order[:50])
    longer = shuffled_rows(jax.random.key(0), 96, count)
    np.testing.assert_array_equal(longer[:50], order[:50])
    other = np.asarray(shuffled_rows(jax.random.key(1), 64, count))
    assert not np.array_equal(other[:50], order[:50])


def test_orders_are_uniform():
    """Every row is equally often in every place, within four errors."""
    keys = jax.random.split(jax.random.key(0), 6000)
    orders = jax.vmap(lambda key: shuffled_rows(key, 6, jnp.int32(4)))(keys)
    counts = np.stack(
        [np.bincount(orders[:, place], minlength=6)[:4] for place in range(4)]
    )
    error = np.sqrt(6000 * 0.25 * 0.75)
    assert np.abs(counts - 1500).max() < 4 * error
    assert (np.asarray(orders)[:, 4:] >= 4).all()


def test_every_real_row_is_visited_once_an_epoch():
    """With plain gradient descent on a linear loss the parameter sums the rows."""

    def loss_fn(params, rows, mask, key):
        del key
        total = jnp.sum(jnp.where(mask, rows, 0.0)) * params
        weight = jnp.sum(mask).astype(jnp.float32)
        # A mean over 2 rows a batch, the last one alone: undo it to see sums.
        return LossOutput(
            loss=WeightedMean(total=total * weight, weight=weight),
            metrics={"rows": WeightedMean(total=weight, weight=jnp.ones(()))},
        )

    rows = jnp.array([1.0, 2.0, 4.0, 8.0, 16.0, 999.0, 999.0])
    params, _, output = minimize(
        jax.random.key(0),
        jnp.zeros(()),
        lambda params: rows,
        jnp.int32(5),
        loss_fn=loss_fn,
        optimizer=optax.sgd(1.0),
        epochs=3,
        batch_size=2,
    )
    assert float(params) == -3 * 31
    np.testing.assert_array_equal(output.metrics["rows"].total, [5, 5, 5])
    np.testing.assert_array_equal(output.metrics["rows"].weight, [3, 3, 3])


def test_rows_follow_the_parameters_before_every_epoch():
    """Targets one above the parameter are never reached, but chased."""

    def loss_fn(params, rows, mask, key):
        del key
        error = jnp.sum(jnp.where(mask, jnp.square(params - rows), 0.0))
        weight = jnp.sum(mask).astype(jnp.float32)
        return LossOutput(loss=WeightedMean(total=error, weight=weight), metrics={})

    params, _, output = minimize(
        jax.random.key(0),
        jnp.zeros(()),
        lambda params: jnp.broadcast_to(params + 1.0, (4,)),
        jnp.int32(4),
        loss_fn=loss_fn,
        optimizer=optax.sgd(0.5),
        epochs=3,
        batch_size=4,
    )
    np.testing.assert_allclose(params, 3.0, rtol=1e-6)
    np.testing.assert_allclose(output.loss.value(), [1, 1, 1], rtol=1e-6)


def test_every_minibatch_has_a_key_of_its_own():
    """A sum of uniform numbers, one a minibatch: four different ones, and again so."""

    def loss_fn(params, rows, mask, key):
        drawn = jax.random.uniform(key)
        loss = WeightedMean(total=0.0 * params, weight=jnp.ones(()))
        squares = WeightedMean(total=drawn**2, weight=drawn)
        return LossOutput(loss, {"drawn": squares})

    def drawn():
        _, _, output = minimize(
            jax.random.key(5),
            jnp.zeros(()),
            lambda params: jnp.zeros(4),
            jnp.int32(4),
            loss_fn=loss_fn,
            optimizer=optax.sgd(0.5),
            epochs=2,
            batch_size=2,
        )
        return [np.asarray(x) for x in jax.tree.leaves(output.metrics["drawn"])]

    squares, sums = drawn()
    np.testing.assert_array_equal(drawn()[1], sums)
    assert sums[0] != sums[1]
    # Two equal numbers x, x would have 2 x^2 = (2 x)^2 / 2.
    assert (squares - sums**2 / 2 > 1e-4).all()
