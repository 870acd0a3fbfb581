"""The learner learns what can be learned: on probes, and on the simulated harness."""

from functools import partial

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from jerp.envs.harness_sim import HarnessSim, SimParams, simulated_tasks
from jerp.envs.probes import PROBES, Probe, probe_params
from jerp.estimators.intervals import paired_difference
from jerp.harness.baselines import BASE_SEQUENCES, perturbed_policy
from jerp.models.controller import controller_policy, log_probs
from jerp.rollout.scan import rollout
from jerp.training.awr import AwrConfig, AwrHyper, hyper_grid, make_awr
from jerp.trajectory import select
from tests.envs.smoke import random_legal
from tests.reference import harness_sim as reference


@pytest.fixture(scope="module")
def probes():
    """240 random episodes of two steps of each probe."""
    play = partial(rollout, num_steps=2, batch_size=240 * len(PROBES))
    data = jax.jit(
        lambda key: play(key, Probe(), probe_params(*PROBES), random_legal, ())
    )(jax.random.key(0))
    return {
        name: select(data, np.flatnonzero(data.task_id == i))
        for i, name in enumerate(PROBES)
    }


def probability(params, data, step, action):
    """Mean probability of `action` (`[B]` or one number) at `step`."""
    log_prob = log_probs(params, data.observation[:, step], data.legal[:, step])
    chosen = jnp.broadcast_to(action, log_prob.shape[:1]).astype(jnp.int32)
    return float(jnp.exp(log_prob)[jnp.arange(len(chosen)), chosen].mean())


@pytest.mark.parametrize("advantage", ["trajectory", "step"])
def test_probes(probes, advantage):
    config = AwrConfig(advantage=advantage, batch_size=64, hidden_size=16)
    train = jax.jit(make_awr(config))
    hyper = jax.tree.map(
        jnp.float32, AwrHyper(learning_rate=0.02, value_learning_rate=0.02)
    )
    trained = {
        name: train(jax.random.key(1), hyper, data) for name, data in probes.items()
    }
    params = {name: state.params for name, (state, _) in trained.items()}
    cue = probes["matching"].observation[:, 0, 1]
    assert probability(params["action"], probes["action"], 1, 1) > 0.9
    assert probability(params["matching"], probes["matching"], 1, cue) > 0.9
    assert probability(params["delayed"], probes["delayed"], 0, 1) > 0.9
    for step in (0, 1):
        indifferent = probability(params["constant"], probes["constant"], step, 1)
        assert 0.4 < indifferent < 0.6
    weight = np.asarray(trained["constant"][1]["weight"])
    np.testing.assert_allclose(weight, 1, atol=0.2)


@pytest.fixture(scope="module")
def simulated():
    """Scores of uniform, BC, AWR and per-step AWR on the same fresh episodes."""
    env, tasks = HarnessSim(), simulated_tasks(60)
    behaviour = perturbed_policy(BASE_SEQUENCES["simulated"], epsilon=0.25)
    buffer = jax.jit(
        lambda key: rollout(
            key, env, tasks, behaviour, (), num_steps=10, batch_size=1800
        )
    )(jax.random.key(0))

    @jax.jit
    def evaluate(params):
        return rollout(
            jax.random.key(1),
            env,
            tasks,
            controller_policy,
            params,
            num_steps=10,
            batch_size=3600,
        )

    grid = jax.jit(jax.vmap(make_awr(), in_axes=(None, 0, None)))
    both, _ = grid(jax.random.key(2), hyper_grid(temperature=[np.inf, 0.2]), buffer)
    steps = jax.jit(make_awr(AwrConfig(advantage="step")))
    per_step, _ = steps(jax.random.key(2), AwrHyper(), buffer)
    policy = {k: per_step.params[k] for k in both.params}
    arms = {
        "uniform": jax.tree.map(jnp.zeros_like, policy),
        "bc": jax.tree.map(lambda x: x[0], both.params),
        "awr": jax.tree.map(lambda x: x[1], both.params),
        "step": policy,
    }
    return {name: evaluate(params) for name, params in arms.items()}


@pytest.mark.parametrize(
    ("better", "worse"), [("awr", "bc"), ("step", "bc"), ("bc", "uniform")]
)
def test_on_the_simulator_awr_beats_cloning_beats_uniform(simulated, better, worse):
    """Paired by episode, tasks as clusters: the 95% interval excludes 0."""
    difference = paired_difference(
        jax.random.key(3),
        simulated[better].score,
        simulated[worse].score,
        cluster=simulated[better].task_id,
    )
    assert float(difference.low) > 0, difference


def test_no_controller_beats_the_exact_optimum(simulated):
    tasks = [
        vars(SimParams(*(float(x[i]) for x in jax.tree.leaves(simulated_tasks(3)))))
        for i in range(3)
    ]
    optimum = np.mean([reference.optimal(task) for task in tasks])
    uniform = np.mean([reference.uniform(task) for task in tasks])
    scores = {name: float(batch.score.mean()) for name, batch in simulated.items()}
    assert scores["awr"] < optimum
    np.testing.assert_allclose(scores["uniform"], uniform, atol=0.03)
