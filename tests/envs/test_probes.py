"""The probe worlds do what their names say."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from jerp.envs.checks import check_environment
from jerp.envs.probes import PROBES, Probe, probe_params
from jerp.errors import UnknownNameError
from tests.envs.smoke import check_world


def test_smoke_and_rewards():
    tasks = probe_params(*PROBES).replace(scale=jnp.array([1.0, 1.0, 1.0, 0.5, 1.0]))
    batch = check_world(Probe(3), tasks, num_steps=3, batch_size=200)
    assert batch.mask.all()
    cue, first, last = (
        batch.observation[:, 0, 1],
        batch.action[:, 0],
        batch.action[:, -1],
    )
    rewarded = np.stack(
        [np.ones(200), last == 1, last == cue, first == 1, (1 + cue) / 2]
    )
    scale = np.array([1, 1, 1, 0.5, 1])[batch.task_id]
    expected = rewarded[batch.task_id, np.arange(200)] * scale
    assert not batch.reward[:, :-1].any()
    np.testing.assert_array_equal(batch.reward[:, -1], expected)
    np.testing.assert_array_equal(batch.score, expected)
    assert 0.3 < cue.mean() < 0.7
    assert (batch.anchor[:, 0] % 2 == cue).all()


@pytest.mark.parametrize("observation", ["features", "tokens"])
def test_a_probe_keeps_the_contract_of_a_world(observation):
    tasks = probe_params(*PROBES, *PROBES)
    world = Probe(3, observation=observation)
    check_environment(world, tasks, jax.random.key(0), num_steps=5)


def test_an_unknown_probe_is_refused_with_the_nearest_name():
    with pytest.raises(UnknownNameError, match="did you mean 'delayed'"):
        probe_params("action", "delay")
