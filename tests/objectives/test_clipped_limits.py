"""The PPO family's loss: identities, microbatches, padding, extremes and bad data."""

from functools import partial

import chex
import jax
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from jerp.objectives.clipped import clipped_policy_loss
from tests.objectives.tokens import (
    ADVANTAGE,
    AGGREGATIONS,
    BATCH,
    FULL,
    LOG_PROB,
    MASK,
    OLD,
    POISONS,
    REFERENCE,
    SAMPLER,
    poisoned,
)

FREE = {"clip_low": np.inf, "clip_high": np.inf}
BY_SEQUENCE = np.array([1.5, -1.0, 0.5, 0.0], np.float32)


def value_and_gradient(*batch, **keywords):
    """Loss and the gradient of its total; one compilation a call."""

    def total(log_prob, *others):
        loss = clipped_policy_loss(log_prob, *others, **keywords).loss
        return loss.total, loss

    (_, loss), gradient = jax.jit(jax.value_and_grad(total, has_aux=True))(*batch)
    return loss, gradient


def test_on_policy_the_loss_is_minus_the_mean_advantage():
    mean = ADVANTAGE[MASK].mean()
    for ratio in ("token", "sequence", "sequence_token"):
        output = clipped_policy_loss(OLD, OLD, ADVANTAGE, MASK, ratio=ratio)
        np.testing.assert_allclose(output.loss.value(), -mean, rtol=1e-6)
        assert output.metrics["clip_fraction"].value() == 0
        assert output.metrics["old_kl_k3"].value() == 0


def test_an_infinite_clip_is_plain_importance_sampling():
    loss, gradient = value_and_gradient(*BATCH, **FREE)
    weighed = np.where(MASK, -np.exp(LOG_PROB - OLD) * ADVANTAGE, 0)
    np.testing.assert_allclose(loss.total, weighed.sum(), rtol=1e-6)
    np.testing.assert_allclose(gradient, weighed, rtol=1e-6)


def test_an_infinite_dual_clip_is_none():
    free = clipped_policy_loss(*BATCH, dual_clip=np.inf)
    assert free.metrics.pop("dual_clip_fraction").value() == 0
    chex.assert_trees_all_equal(free, clipped_policy_loss(*BATCH))


def test_sequences_of_one_token_have_the_tokens_ratio():
    first = [x[:, :1] for x in BATCH]
    token = value_and_gradient(*first)
    for ratio in ("sequence", "sequence_token"):
        chex.assert_trees_all_close(
            value_and_gradient(*first, ratio=ratio), token, rtol=1e-6
        )


def test_gspo_by_token_is_gspo_where_the_sequence_has_one_advantage():
    keywords = {
        "clip_low": 0.05,
        "clip_high": 0.1,
        **AGGREGATIONS["sequence_mean_token_mean"],
    }
    batch = (LOG_PROB, OLD, BY_SEQUENCE, MASK)
    chex.assert_trees_all_close(
        value_and_gradient(*batch, **keywords, ratio="sequence_token"),
        value_and_gradient(*batch, **keywords, ratio="sequence"),
        rtol=1e-5,
        atol=1e-6,
    )


def test_cispo_within_the_clip_has_ppos_gradient_and_outside_a_bounded_one():
    _, ppo = value_and_gradient(*BATCH)
    _, cispo = value_and_gradient(*BATCH, form="cispo")
    ratio = np.exp(LOG_PROB - OLD)
    inside = MASK & (ratio > 0.8) & (ratio < 1.2)
    assert 2 < inside.sum() < MASK.sum()
    np.testing.assert_allclose(cispo[inside], ppo[inside], rtol=1e-6)
    outside = MASK & ~inside
    expected = -np.clip(ratio, 0.8, 1.2) * ADVANTAGE
    np.testing.assert_allclose(cispo[outside], expected[outside], rtol=1e-6)


# Eight sequences of uneven lengths, one of them empty.
ROWS = np.array([0, 1, 2, 0, 1, 3, 2, 1])
SCALE = np.linspace(-1, 1, 8, dtype=np.float32)[:, None]
EIGHT = tuple(x[ROWS] for x in (*BATCH, SAMPLER, REFERENCE))
EIGHT = (EIGHT[0] + 0.1 * SCALE, EIGHT[1], EIGHT[2] * SCALE, *EIGHT[3:])


def output_of(rows, mode, ratio="token"):
    *batch, sampler, anchor = rows
    keywords = {"sampler_log_prob": sampler, "reference_log_prob": anchor}
    return clipped_policy_loss(
        *batch, **keywords, kl_weight=0.25, ratio=ratio, **AGGREGATIONS[mode]
    )


@partial(jax.jit, static_argnames=("mode", "ratio"))
def compiled(rows, mode, ratio):
    def total(log_prob):
        loss = output_of((log_prob, *rows[1:]), mode, ratio).loss
        return loss.total, loss

    (_, loss), gradient = jax.value_and_grad(total, has_aux=True)(rows[0])
    return loss, gradient


@jax.jit
def metrics_of(rows):
    return output_of(rows, "token_mean").metrics


def all_aggregations(rows, ratio="token"):
    """Losses of the four modes and the gradients of their totals."""
    return {mode: compiled(rows, mode, ratio) for mode in AGGREGATIONS}


def cut(size):
    return [tuple(x[i : i + size] for x in EIGHT) for i in range(0, 8, size)]


def summed(size, mode, ratio):
    """Value and divided gradient of all microbatches of `size` rows."""
    losses, gradients = zip(
        *(compiled(rows, mode, ratio) for rows in cut(size)), strict=True
    )
    loss = jax.tree.map(lambda *x: sum(x), *losses)
    return loss.value(), np.concatenate(gradients) / loss.weight


@pytest.mark.parametrize(
    ("mode", "ratio"),
    [("token_mean", "token"), ("sequence_mean_token_mean", "sequence")],
)
def test_any_cut_into_microbatches_gives_the_same(mode, ratio):
    """Ratios of sequences too: a row is never cut. `test_aggregate` has all modes."""
    value, gradient = summed(8, mode, ratio)
    assert np.abs(gradient).max() > 1e-2
    for size in (4, 1):
        chex.assert_trees_all_close(
            summed(size, mode, ratio), (value, gradient), rtol=1e-6, atol=1e-6
        )


def test_metrics_add_across_microbatches():
    (whole,), parts = ([metrics_of(r) for r in cut(size)] for size in (8, 4))
    chex.assert_trees_all_close(
        jax.tree.map(lambda a, b: a + b, *parts), whole, rtol=1e-6
    )
    assert whole["tokens"].total == EIGHT[3].sum()
    assert whole["tokens"].weight == 7


def test_padding_to_another_length_changes_nothing():
    longer = tuple(
        np.pad(x, ((0, 2), (0, 3)), constant_values=0 if x.dtype == bool else np.nan)
        for x in EIGHT
    )
    mode = ("sequence_mean_token_mean", "sequence")
    short, gradient = compiled(EIGHT, *mode)
    loss, padded = compiled(longer, *mode)
    chex.assert_trees_all_close(loss, short, rtol=1e-6)
    np.testing.assert_allclose(padded[:8, :5], gradient, rtol=1e-6, atol=1e-6)
    assert not np.asarray(padded)[8:].any()
    assert not np.asarray(padded)[:, 5:].any()


@pytest.mark.parametrize("poison", POISONS)
def test_padding_reaches_neither_values_nor_gradients(poison):
    arrays, mask = EIGHT[:3] + EIGHT[4:], EIGHT[3]

    def batch(fill):
        a, b, c, *others = (poisoned(x, fill, mask) for x in arrays)
        return (a, b, c, mask, *others)

    clean, dirty = batch(0), batch(poison)
    chex.assert_trees_all_equal(metrics_of(dirty), metrics_of(clean))
    chex.assert_trees_all_equal(all_aggregations(dirty), all_aggregations(clean))
    sequence = ("sequence_mean_token_mean", "sequence")
    chex.assert_trees_all_equal(compiled(dirty, *sequence), compiled(clean, *sequence))


@settings(deadline=None)
@given(
    st.permutations(range(8)),
    st.lists(st.floats(-2, 2, width=32), min_size=8, max_size=8),
    st.sampled_from(POISONS),
)
def test_rows_in_any_order_and_padding_of_any_kind(order, shift, poison):
    old, mask = EIGHT[1], EIGHT[3]
    log_prob = old + np.array(shift, np.float32)[:, None] * SCALE
    rows = (log_prob, old, *EIGHT[2:])
    shuffled = tuple(
        x[order] if x.dtype == bool else poisoned(x, poison, mask)[order] for x in rows
    )
    here, there = all_aggregations(rows), all_aggregations(shuffled)
    for mode in AGGREGATIONS:
        loss, gradient = here[mode]
        moved, moved_gradient = there[mode]
        chex.assert_trees_all_close(moved, loss, rtol=1e-5, atol=1e-5)
        np.testing.assert_array_equal(moved_gradient, np.asarray(gradient)[order])


@pytest.mark.parametrize("ratio", ["token", "sequence", "sequence_token"])
def test_large_advantages_scale_loss_and_gradient(ratio):
    """Unscaled advantages may be large, and overflow nothing at an ordinary ratio."""
    old, mask = np.full((2, 2), -1.0, np.float32), np.ones((2, 2), bool)
    log_prob = old + np.float32(0.1) * np.float32([[-1, 1], [1, -1]])
    advantage = np.float32([[1, -1], [-1, 1]])
    one, slope = value_and_gradient(log_prob, old, advantage, mask, **FREE, ratio=ratio)
    for size in (7e3, 1e30):
        found, steep = value_and_gradient(
            log_prob, old, advantage * np.float32(size), mask, **FREE, ratio=ratio
        )
        np.testing.assert_allclose(found.total, size * one.total, rtol=1e-5)
        np.testing.assert_allclose(steep, size * np.asarray(slope), rtol=1e-5)


@pytest.mark.parametrize("ratio", ["token", "sequence", "sequence_token"])
def test_log_ratios_of_a_hundred_leave_all_finite(ratio):
    mask = np.ones((4, 4), bool)
    old = np.full((4, 4), -100.0, np.float32)
    shift = np.float32([100, -100, 100, -100])[:, None]
    advantage = np.float32([1, 1, -1, -1])
    loss, gradient = value_and_gradient(
        old + shift, old, advantage, mask, **FREE, ratio=ratio
    )
    gradient = np.asarray(gradient)
    assert np.isfinite([loss.total, *gradient.ravel()]).all()
    slope = np.exp(80.0) * (21 if ratio == "sequence_token" else 1)
    np.testing.assert_allclose(gradient[0], -slope, rtol=1e-5)
    np.testing.assert_allclose(gradient[2], slope, rtol=1e-5)
    np.testing.assert_allclose(gradient[[1, 3]], 0, atol=1e-34)


@pytest.mark.parametrize("sign", [1, -1])
def test_sampler_and_reference_a_hundred_nats_away_leave_all_finite(sign):
    far = EIGHT[1] + sign * np.float32(100)
    rows = (*EIGHT[:4], far, far)
    loss, gradient = compiled(rows, "token_mean", "token")
    assert all(np.isfinite(x).all() for x in jax.tree.leaves((loss, gradient)))
    assert all(np.isfinite(x).all() for x in jax.tree.leaves(metrics_of(rows)))
    pull = np.asarray(gradient)[EIGHT[3]]
    if sign > 0:  # far below the reference: up, with all the force of the cap
        np.testing.assert_allclose(pull, -0.25 * np.exp(80.0), rtol=1e-5)
    else:  # far above it: down, by the weight of the term
        np.testing.assert_allclose(pull, 0.25, atol=6)


def test_an_empty_batch_is_refused_eagerly_and_adds_nothing_under_jit():
    nothing = np.zeros_like(MASK)
    with pytest.raises(ValueError, match="mask: expected at least one real entry"):
        clipped_policy_loss(*BATCH[:3], nothing)
    empty = (*EIGHT[:3], np.zeros_like(EIGHT[3]), *EIGHT[4:])
    for loss, gradient in all_aggregations(empty).values():
        assert loss.total == loss.weight == loss.value() == 0
        np.testing.assert_array_equal(gradient, 0)


NAMES = ("log_prob", "old_log_prob", "advantage", "mask", *list(FULL)[:2])


@pytest.mark.parametrize("bad", [np.nan, np.inf, -np.inf])
@pytest.mark.parametrize("name", [name for name in NAMES if name != "mask"])
def test_a_real_entry_that_is_no_number(name, bad):
    """Refused by name where visible; else NaN in loss and gradient, and counted."""
    rows = {n: x.copy() for n, x in zip(NAMES, EIGHT, strict=True)}
    rows[name][0, 1] = bad
    with pytest.raises(ValueError, match=rf"^{name}: expected finite .* at \[0, 1\]"):
        clipped_policy_loss(**rows)
    batch = tuple(rows.values())
    for loss, gradient in all_aggregations(batch).values():
        assert np.isnan(loss.value())
        assert np.isnan(gradient[0, 1])
        assert np.isnan(gradient).sum() == 1
    assert metrics_of(batch)["invalid"].total == 1
