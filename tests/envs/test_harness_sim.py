"""The simulated harness: its masks and features, and its values by exact recursion."""

import dataclasses

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from jerp.envs.harness_sim import HarnessSim, SimParams, simulated_tasks
from jerp.harness.actions import Action
from jerp.harness.baselines import BASE_SEQUENCES, conditional_policy
from jerp.harness.state import FEATURES
from jerp.rollout.scan import rollout
from jerp.typing import USAGE_KINDS, Outcome
from tests.envs.smoke import check_world
from tests.reference import harness_sim as reference

ENV = HarnessSim()
CERTAIN = SimParams(
    find=jnp.float32(1.0),
    draft=jnp.float32(0.0),
    fix=jnp.float32(1.0),
    gain=jnp.float32(0.0),
    detect=jnp.float32(1.0),
    flawed_score=jnp.float32(0.25),
    step_price=jnp.float32(0.01),
)
"""Nothing is random: a draft is always flawed, a revision always right."""


def task(index, **changes):
    params = jax.tree.map(lambda x: float(x[index]), simulated_tasks(3))
    return vars(params) | changes


@pytest.fixture(scope="module")
def play():
    return jax.jit(ENV.step), jax.jit(ENV.reset)


def run(play, actions, params=CERTAIN):
    step, reset = play
    key = jax.random.key(0)
    state, now = reset(key, params)
    steps = [now]
    for t, action in enumerate(actions):
        state, now = step(jax.random.fold_in(key, t), state, jnp.int32(action), params)
        steps.append(now)
    return state, steps


def legal_names(now):
    return {Action(i).name.lower() for i in np.flatnonzero(now.legal)}


def test_a_whole_episode_by_hand(play):
    """Observe, draft, check (finds the flaw), revise, check (finds none), submit."""
    actions = (
        Action.OBSERVE,
        Action.DRAFT,
        Action.CHECK,
        Action.REVISE,
        Action.CHECK,
        Action.SUBMIT,
    )
    _, steps = run(play, actions)
    assert [legal_names(s) for s in steps] == [
        {"observe", "retrieve", "draft"},
        {"retrieve", "draft"},
        {"retrieve", "call_tool", "check", "submit"},
        {"retrieve", "call_tool", "revise", "submit"},
        {"retrieve", "call_tool", "check", "submit"},
        {"retrieve", "call_tool", "submit"},
        set(),
    ]
    feature = {
        n: [float(s.observation[i]) for s in steps] for i, n in enumerate(FEATURES)
    }
    np.testing.assert_allclose(feature["progress"], np.arange(7) / 10, rtol=1e-6)
    np.testing.assert_allclose(feature["support"], [-1, -1, -1, 0, -1, 1, 1])
    np.testing.assert_allclose(feature["coverage"], [0, 0, 0, 0.25, 0, 1, 1])
    np.testing.assert_allclose(feature["findings"], [0, *[0.1] * 6], rtol=1e-6)
    assert feature["last:check"] == [0, 0, 0, 1, 0, 1, 0]
    np.testing.assert_allclose([s.reward for s in steps], [0] * 6 + [0.94], rtol=1e-6)
    assert [bool(s.terminated) for s in steps] == [False] * 6 + [True]
    calls = [float(s.usage[USAGE_KINDS.index("executor_calls")]) for s in steps]
    assert calls == [0, 0, 1, 0, 1, 0, 0]
    assert steps[-1].outcome == Outcome.SUCCESS
    np.testing.assert_allclose(steps[-1].score, 0.94, rtol=1e-6)


def test_an_unsubmitted_episode_is_truncated(play):
    _, steps = run(play, [Action.OBSERVE] * 10)
    assert [bool(s.truncated) for s in steps] == [False] * 10 + [True]
    last = steps[-1]
    assert last.outcome == Outcome.TRUNCATED
    assert (float(last.score), bool(last.terminated)) == (0.0, False)


def test_an_illegal_action_only_costs_the_step(play):
    state, steps = run(play, [Action.SUBMIT, Action.REVISE])
    assert not steps[-1].terminated
    assert (int(state.step), int(state.revisions)) == (2, 0)
    assert steps[-1].anchor == steps[0].anchor


def test_anchors_ignore_counters_and_tell_states_apart(play):
    one = run(play, [Action.OBSERVE, Action.RETRIEVE])[1]
    other = run(play, [Action.RETRIEVE, Action.OBSERVE])[1]
    assert one[-1].anchor == other[-1].anchor
    path = [Action.OBSERVE, Action.RETRIEVE, Action.DRAFT, Action.CALL_TOOL]
    path += [Action.CHECK, Action.REVISE, Action.CHECK, Action.SUBMIT]
    anchors = [int(s.anchor) for s in run(play, path)[1]]
    assert len(set(anchors)) == len(anchors)


def test_smoke_and_dynamics_agree_with_the_exact_value():
    """The mean return of random legal play is the recursion's, within three errors."""
    batch = check_world(ENV, simulated_tasks(3), num_steps=10, batch_size=9000)
    assert set(batch.outcome.tolist()) == {0, 1, 2}
    for index in range(3):
        score = batch.score[batch.task_id == index]
        error = score.std() / np.sqrt(len(score))
        assert abs(score.mean() - reference.uniform(task(index))) < 3 * error


def test_the_optimum_bounds_the_conditional_rule_which_beats_uniform():
    rule = conditional_policy(BASE_SEQUENCES["simulated"])

    @jax.jit
    def play(key):
        return rollout(
            key, ENV, simulated_tasks(3), rule, (), num_steps=10, batch_size=3000
        )

    batch = play(jax.random.key(1))
    for index in range(3):
        score = np.asarray(batch.score[batch.task_id == index])
        error = score.std() / np.sqrt(len(score))
        assert reference.uniform(task(index)) + 3 * error < score.mean()
        assert score.mean() < reference.optimal(task(index)) + 3 * error


def test_the_optimum_is_conditional():
    """It checks where facts are few, revises after a failure, and else submits."""
    params = task(0)
    best = reference.first_choices(params)
    gathered = reference.Info(step=4, observed=True, retrieved=2)
    rich = gathered._replace(findings=3, belief=1.0)
    belief = params["draft"] + params["gain"]
    poor = gathered._replace(findings=1, belief=belief)
    assert best[rich] == Action.SUBMIT
    assert best[poor] == Action.CHECK
    failed = poor._replace(step=5, belief=0.0, checked=True, failed=True)
    passed = poor._replace(step=5, belief=1.0, checked=True)
    assert best[failed] == Action.REVISE
    assert best[passed] == Action.SUBMIT


def test_every_parameter_matters():
    base = reference.uniform(task(1))
    for field in dataclasses.fields(SimParams):
        changed = task(1, **{field.name: task(1)[field.name] + 0.05})
        assert abs(reference.uniform(changed) - base) > 1e-4, field.name
