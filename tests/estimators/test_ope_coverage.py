"""What off-policy estimates hold, in 500 logs of the simulated harness.

`pytest -m slow -s tests/estimators/test_ope_coverage.py` prints the table of
docs/ope.md. The truth is exact: the dynamic programme of tests/reference. A log is 60
tasks, drawn with their difficulty, of 10 episodes each; the target prefers to revise
what failed and to submit what was verified.
"""

from functools import partial

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from jerp.envs.harness_sim import HarnessSim, SimParams, simulated_tasks
from jerp.estimators.ope_methods import METHODS
from jerp.estimators.overlap import Refusal
from jerp.estimators.policy_value import evaluate_policies
from jerp.harness.actions import Action
from jerp.harness.baselines import BASE_SEQUENCES, perturbed_policy, uniform_policy
from jerp.harness.state import FEATURES
from jerp.ops.masked import masked_log_softmax
from jerp.rollout.scan import rollout
from tests.reference import harness_sim as reference

NUM_LOGS, TASKS, SAMPLES = 500, 60, 10
TASTE = (1.0, 1.0, 0.0, 0.5, 0.5, 0.5, 0.5)
SUPPORT, FINDINGS = FEATURES.index("support"), 9
BASE = BASE_SEQUENCES["simulated"]
BEHAVIOURS = {
    "uniform": uniform_policy(),
    "near base": perturbed_policy(BASE, epsilon=0.1),
    "half base": perturbed_policy(BASE, epsilon=0.5),
    "little base": perturbed_policy(BASE, epsilon=0.7),
}
CASES = [
    *(("uniform", sharpness, NUM_LOGS) for sharpness in (0.5, 1.0, 1.5, 2.0)),
    ("little base", 1.5, NUM_LOGS),
    # Half of these logs are refused.
    ("half base", 1.0, 2 * NUM_LOGS),
]
WITHIN = ("ordinary", "per_decision", "doubly_robust")


def log_target(x, legal, *, sharpness):
    """The target policy, of features."""
    verdict, findings = x[SUPPORT], jnp.round(10 * x[FINDINGS])
    score = jnp.array(TASTE).at[Action.REVISE].add(2.0 * (verdict == 0))
    score = score.at[Action.SUBMIT].add(1.0 * (verdict == 1))
    score = score.at[Action.DRAFT].add(0.5 * findings)
    return masked_log_softmax(sharpness * score, legal)


def exact_value(sharpness):
    """The same policy, of information states; each difficulty is as likely."""

    def choose(s, values):
        verified = s.tested or s.checked
        bonus = {
            Action.REVISE: 2 * s.failed,
            Action.SUBMIT: verified and not s.failed,
            Action.DRAFT: 0.5 * s.findings,
        }
        share = {a: np.exp(sharpness * (TASTE[a] + bonus.get(a, 0))) for a in values}
        return sum(share[a] * values[a] for a in values) / sum(share.values())

    tasks = jax.tree.leaves(simulated_tasks(3))
    tasks = [vars(SimParams(*(float(x[i]) for x in tasks))) for i in range(3)]
    return np.mean([reference.value(task, choose) for task in tasks])


def evaluated(key, *, behaviour, sharpness, min_effective):
    task, play, resample = jax.random.split(key, 3)
    difficulty = jax.random.randint(task, (TASKS,), 0, 3)
    tasks = jax.tree.map(lambda x: x[difficulty], simulated_tasks(3))
    settings = {"num_steps": 10, "batch_size": TASKS * SAMPLES}
    data = rollout(play, HarnessSim(), tasks, BEHAVIOURS[behaviour], (), **settings)
    target = jax.vmap(jax.vmap(partial(log_target, sharpness=sharpness)))
    return evaluate_policies(
        resample,
        data.observation,
        data.action,
        data.reward,
        data.log_prob,
        target(data.observation, data.legal)[None],
        data.mask,
        data.task_id,
        num_tasks=TASKS,
        num_resamples=1000,
        min_effective=min_effective,
    )


def of_many_logs(num_logs=NUM_LOGS, **settings):
    keys = jax.random.split(jax.random.key(7), num_logs)
    case = partial(evaluated, **settings)
    run = jax.jit(lambda keys: jax.lax.map(case, keys, batch_size=10))
    found = run(keys)
    found = {"estimates": found.estimates, "overlap": found.overlap}
    return jax.tree.map(lambda x: np.asarray(x)[:, 0], found)


@pytest.mark.slow
@pytest.mark.parametrize("behaviour, sharpness, num_logs", CASES)
def test_intervals_hold_the_exact_value(behaviour, sharpness, num_logs):
    settings = {"sharpness": sharpness, "min_effective": 50.0}
    found = of_many_logs(num_logs, behaviour=behaviour, **settings)
    size, truth = found["overlap"].effective_sample_size, exact_value(sharpness)
    print(f"\n{behaviour}, sharpness {sharpness}: value {truth:.4f}")
    print(f"  ESS {np.quantile(size, [0.05, 0.5, 0.95]).round()}")
    print(f"  at least 50 in {np.mean(size >= 50):.1%} of the logs")
    shares = {}
    for name in METHODS:
        e = found["estimates"][name]
        kept = e.reason == Refusal.NONE
        low, high, point = e.low[kept], e.high[kept], e.point[kept]
        shares[name] = np.mean((low <= truth) & (truth <= high))
        print(
            f"| {name} | {np.mean(point) - truth:+.4f} | {np.std(point):.4f} | "
            f"{shares[name]:.3f} | {np.mean(e.lower_bound[kept] <= truth):.3f} | "
            f"n {kept.sum()} |"
        )
        assert (e.reason[size < 50] != Refusal.NONE).all()
        assert np.isnan(e.point[~kept]).all()
    assert kept.sum() >= 350
    assert all(0.91 <= shares[name] <= 0.98 for name in WITHIN), shares


@pytest.mark.slow
def test_a_log_too_far_from_the_target_is_refused():
    found = of_many_logs(behaviour="near base", sharpness=3.0, min_effective=50.0)
    reasons = found["estimates"]["ordinary"].reason
    print({Refusal(r).name: int(np.sum(reasons == r)) for r in np.unique(reasons)})
    assert (reasons != Refusal.NONE).mean() > 0.99
