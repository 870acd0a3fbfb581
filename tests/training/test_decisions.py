"""Tokens without an alternative are no decisions: they change no mean."""

from dataclasses import dataclass, replace
from functools import partial

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from jerp.models.policy import Evaluated
from jerp.training.cloning import clone_policy
from jerp.training.group import make_group_step
from jerp.training.group_settings import GroupConfig, GroupHyper
from tests.training.cue_world import Table
from tests.training.episodes import random_trajectory

HYPER = GroupHyper(learning_rate=0.05, entropy_weight=0.1)


@dataclass(frozen=True)
class Spelled:
    """Writes what a table chooses in three tokens: the second alone is a choice."""

    table: Table

    def evaluate(self, params, data, *, key=None):
        found = self.table.evaluate(params, data, key=key)
        log_prob, entropy = (
            jnp.pad(x[..., None], ((0, 0), (0, 0), (1, 1)))
            for x in (found.log_prob, found.entropy)
        )
        choice = jnp.zeros(log_prob.shape, bool).at[..., 1].set(True)
        return Evaluated(log_prob, entropy, found.value, choice)


@pytest.fixture(scope="module")
def episodes():
    """In groups of four, of one step or two; and the same, spelled."""
    data = random_trajectory(batch=16, steps=2)
    assert 0 < data.mask[:, 1].sum() < 16
    data = data.replace(
        seed=np.arange(16, dtype=np.int32),
        action=data.action % 2,
        legal=np.ones((16, 2, 2), bool),
        log_prob=np.where(data.mask, np.float32(-0.7), np.float32(0)),
    )
    mask = np.repeat(data.mask[..., None], 3, axis=2)
    return data, data.replace(
        tokens=np.zeros(mask.shape, np.int32),
        token_mask=mask,
        token_log_prob=np.where(np.arange(3) == 1, data.log_prob[..., None], 0.0),
    )


@pytest.mark.parametrize(
    "config",
    [
        GroupConfig(4, ratio="sequence", aggregation="sequence_mean_token_mean"),
        GroupConfig(4, advantage="gae"),
    ],
)
def test_a_step_learns_the_same_however_long_its_choice_is_spelled(config, episodes):
    table = Table()
    params = table.init(jax.random.key(0))
    found = []
    for policy, data in zip((table, Spelled(table)), episodes, strict=True):
        init, step = make_group_step(replace(config, epochs=2), policy)
        state = init(jax.random.key(2), HYPER, params)
        found.append(jax.jit(step)(state, HYPER, data))
    (one, metrics), (other, spelled) = found
    for name in metrics:
        assert float(spelled[name]) == pytest.approx(float(metrics[name]), abs=1e-6)
    assert float(metrics["grad_norm"]) > 0.01
    for x, y in zip(*map(jax.tree.leaves, (one.params, other.params)), strict=True):
        np.testing.assert_allclose(x, y, atol=1e-5)


def test_a_clones_loss_is_of_choices(episodes):
    table = Table()
    params = table.init(jax.random.key(0))
    clone = partial(clone_policy, epochs=2, batch_size=8)
    losses = [
        jax.jit(partial(clone, policy=policy))(
            jax.random.key(0), params=params, data=data
        )[1]
        for policy, data in zip((table, Spelled(table)), episodes, strict=True)
    ]
    assert losses[0][0] > 0.3
    np.testing.assert_allclose(*losses, atol=1e-6)
