"""The fitted simulator: by hand, beside plain dictionaries, and against its own log."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from jerp.envs.fitted_sim import ENDED, HALTED, FittedSim, FittedState, unsupported
from jerp.envs.fitted_value import expected_episode, features_at
from jerp.envs.fitting import fit_simulator
from jerp.errors import InputError, ShapeError, TrajectoryError
from jerp.harness.actions import NUM_ACTIONS, Action
from jerp.harness.state import FEATURES
from jerp.trajectory import select
from jerp.typing import Outcome
from tests.envs import logs
from tests.envs.smoke import check_world
from tests.reference import fitted_sim as reference

EASY = np.zeros(len(logs.HAND_WRITTEN), np.int32)
STEPS = 12
"""Step budget of the drawn log."""
DRAFTED_VISIT = np.int32(3)
"""Second step of the first hand-written episode, after the two reserved rows."""


@pytest.fixture(scope="module")
def hand_written():
    return fit_simulator(logs.make_log(logs.HAND_WRITTEN), EASY, min_count=1)


@pytest.fixture(scope="module")
def drawn():
    return logs.drawn_log(1000)


@pytest.fixture(scope="module")
def drawn_tables(drawn):
    return fit_simulator(*drawn, max_steps=STEPS)


def always(tables, *actions, num_steps=10):
    """`[T, V, A]`: the first of `actions` that is legal, with certainty."""
    legal = np.asarray(tables.legal[tables.state])
    order = [int(a) for a in actions]
    chosen = np.asarray(order)[legal[:, order].argmax(1)]
    prob = (np.arange(NUM_ACTIONS) == chosen[:, None]) & legal
    return jnp.asarray(np.broadcast_to(prob, (num_steps, *prob.shape)), jnp.float32)


def uniform(tables, num_steps=STEPS):
    legal = np.asarray(tables.legal[tables.state], np.float32)
    prob = legal / np.maximum(legal.sum(1, keepdims=True), 1)
    return jnp.asarray(np.broadcast_to(prob, (num_steps, *prob.shape)))


@jax.jit
def reset(tables, key, level, max_steps):
    return FittedSim(tables, max_steps).reset(key, level)


@jax.jit
def step(tables, key, state, action, max_steps):
    return FittedSim(tables, max_steps).step(key, state, action, jnp.int32(0))


exact = jax.jit(expected_episode)


def play(tables, actions, difficulty=0, seed=0, max_steps=10):
    first, *keys = jax.random.split(jax.random.key(seed), 1 + len(actions))
    state, now = reset(tables, first, jnp.int32(difficulty), max_steps)
    steps = [now]
    for key, action in zip(keys, actions, strict=True):
        state, now = step(tables, key, state, jnp.int32(action), max_steps)
        steps.append(now)
    return state, steps


def test_three_states_have_the_values_of_the_log(hand_written):
    """A check is worth .7 * 4/6 + .1 * 2/6 = .5; a submit at once (1 + .2) / 2 = .6."""
    checks = always(hand_written, Action.CHECK, Action.DRAFT, Action.SUBMIT)
    found = exact(hand_written, checks)
    np.testing.assert_allclose(found.score, [0.5], rtol=1e-6)
    np.testing.assert_allclose(found.steps, [3.0], rtol=1e-6)
    hasty = always(hand_written, Action.SUBMIT, Action.DRAFT)
    found = exact(hand_written, hasty)
    np.testing.assert_allclose(found.score, [0.6], rtol=1e-6)
    np.testing.assert_allclose([found.steps[0], found.unsupported[0]], [2.0, 0.0])
    idle = always(hand_written, Action.OBSERVE)
    np.testing.assert_allclose(exact(hand_written, idle).steps, [10.0])


def test_an_observe_leads_back_or_on(hand_written):
    """Of three observes at the start one was followed by another; all by the start."""
    found = exact(hand_written, uniform(hand_written, 10))
    # A draft comes with chance 1/2 a step, and so does a submit against a check; a
    # checked draft needs three of the ten steps, one submitted at once two.
    draft_at = 0.5 ** np.arange(1, 11)
    score = 0.5 * 0.6 * draft_at[:9].sum() + 0.5 * 0.5 * draft_at[:8].sum()
    np.testing.assert_allclose(found.score, [score], rtol=1e-5)


def test_an_episode_step_by_step(hand_written):
    actions = (Action.OBSERVE, Action.DRAFT, Action.CHECK, Action.SUBMIT)
    state, steps = play(hand_written, actions)
    features = np.stack([s.observation for s in steps])
    column = {name: features[:, i] for i, name in enumerate(FEATURES)}
    np.testing.assert_allclose(column["progress"], np.arange(5) / 10, rtol=1e-6)
    np.testing.assert_allclose(column["remaining"], 1 - np.arange(5) / 10, rtol=1e-6)
    cost = [0, 0.025, 0.275, 0.3, 0.325]
    np.testing.assert_allclose(column["cost_share"], cost, rtol=1e-5)
    assert column["last:none"].tolist()[:2] == [1, 0]
    assert column["last:draft"].tolist()[:4] == [0, 0, 1, 0]
    assert column["has_draft"].tolist()[:4] == [0, 0, 1, 1]
    legal = [np.flatnonzero(s.legal).tolist() for s in steps]
    assert legal == [[0, 3], [0, 3], [4, 6], [6], []]
    assert [float(s.reward) for s in steps[:4]] == [0] * 4
    assert int(state.visit) == ENDED
    right = column["coverage"][3] == 1
    known = (1.0, 0.8, 0.6, 0.4) if right else (0.0, 0.2)
    assert np.isclose(known, steps[-1].score).any()
    assert steps[-1].reward == steps[-1].score
    assert steps[-1].terminated
    assert [float(s.usage[0]) for s in steps] == [0, 0, 1, 0, 0]
    assert len({int(s.anchor) for s in steps}) == 4


def test_the_budget_ends_an_episode(hand_written):
    state, steps = play(hand_written, [Action.OBSERVE] * 4, max_steps=4)
    assert [bool(s.truncated) for s in steps] == [False] * 4 + [True]
    last = steps[-1]
    assert (int(last.outcome), float(last.score)) == (Outcome.TRUNCATED, 0.0)
    assert not last.legal.any()
    assert int(state.step) == 4


def test_an_illegal_action_only_costs_the_step(hand_written):
    state, steps = play(hand_written, [Action.SUBMIT, Action.REVISE])
    assert (int(state.step), float(state.cost)) == (2, 0.0)
    assert steps[-1].anchor == steps[0].anchor
    assert not steps[-1].terminated
    assert not steps[-1].truncated


@pytest.fixture(scope="module")
def two_paths():
    """One easy draft, submitted; one hard draft, checked and then submitted."""
    flawed = logs.WRONG | {"legal": ("submit", "revise")}
    drafted = (logs.START, "draft", logs.DRAFTED)
    episodes = [
        logs.submit(*drafted, "submit", score=0.75),
        logs.submit(*drafted, "check", flawed, "submit", score=0.5),
    ]
    return fit_simulator(logs.make_log(episodes), np.array([0, 2], np.int32))


def test_what_was_never_logged_is_borrowed_or_halts_and_is_counted(two_paths):
    _, steps = play(two_paths, [Action.DRAFT, Action.CHECK, Action.REVISE])
    assert [bool(s.truncated) for s in steps] == [False, False, False, True]
    # The check leads on as it did in the hard episode; a revise was never seen.
    np.testing.assert_allclose(steps[2].observation[FEATURES.index("coverage")], 0.5)
    assert int(steps[-1].anchor) == HALTED
    assert (int(steps[-1].outcome), float(steps[-1].score)) == (Outcome.TRUNCATED, 0.0)
    prob = always(two_paths, Action.REVISE, Action.CHECK, Action.DRAFT)
    found = exact(two_paths, prob)
    np.testing.assert_allclose(found.unsupported, [2.0, np.nan, 1.0])
    np.testing.assert_allclose(found.steps, [3.0, np.nan, 3.0])
    np.testing.assert_allclose(found.score, [0.0, np.nan, 0.0])


def test_a_difficulty_that_was_never_logged_halts_at_once(two_paths):
    for level, halted in ((0, False), (1, True), (7, True), (-1, True)):
        _, (first,) = play(two_paths, [], difficulty=level)
        assert bool(first.truncated) == halted
        assert bool(first.legal.any()) != halted


def test_a_log_without_chance_is_simulated_without_chance(two_paths):
    actions = (Action.DRAFT, Action.CHECK, Action.SUBMIT)
    runs = [play(two_paths, actions, difficulty=2, seed=seed)[1] for seed in range(3)]
    for one, *others in zip(*runs, strict=True):
        for other in others:
            np.testing.assert_array_equal(one.observation, other.observation)
            assert one.score == other.score
    assert float(runs[0][-1].score) == 0.5


def reference_episodes(log, difficulty):
    episodes = []
    names = (*reference.STATUS, "findings", "draft_length", "error_share")
    for b, level in enumerate(difficulty.tolist()):
        steps = [
            {n: float(log.observation[b, t, FEATURES.index(n)]) for n in names}
            | {"legal": np.flatnonzero(log.legal[b, t]).tolist()}
            | {"action": int(log.action[b, t]), "call": bool(log.usage[b, t, 0])}
            for t in range(int(log.mask[b].sum()))
        ]
        ending = "submit" if log.terminated[b].any() else "cut"
        keyed = reference.keyed(level, steps)
        episodes.append((keyed, (ending, float(log.score[b]))))
    return episodes


def leaning(t, step):
    """A policy that depends on time and mask."""
    weight = {a: 1.0 + (a + t) % 5 for a in step[5]}
    return {a: w / sum(weight.values()) for a, w in weight.items()}


@pytest.mark.parametrize("min_count", [1, 30])
def test_values_are_those_of_plain_dictionaries(drawn, min_count):
    log, difficulty = select(drawn[0], slice(0, 100)), drawn[1][:100]
    log = with_cuts(log)
    tables = fit_simulator(log, difficulty, max_steps=STEPS, min_count=min_count)
    weight = 1.0 + (np.arange(7)[None, None] + np.arange(STEPS)[:, None, None]) % 5
    weight = weight * np.asarray(tables.legal[tables.state])
    total = np.maximum(weight.sum(-1, keepdims=True), 1)
    found = exact(tables, jnp.asarray(weight / total, jnp.float32))
    expected = reference.values(
        reference_episodes(log, difficulty),
        leaning,
        min_count=min_count,
        max_steps=STEPS,
        difficulty=difficulty.tolist(),
    )
    for level in range(3):
        got = [found.score[level], found.steps[level], found.unsupported[level]]
        np.testing.assert_allclose(got, expected[level], rtol=2e-5)


def with_cuts(log):
    """The first 20 episodes lose their last step, and so end in a cut of score .125."""
    cut = np.arange(len(log.score)) < 20
    last = log.terminated & cut[:, None]
    mask = log.mask & ~last
    ends = mask & ~np.pad(mask, ((0, 0), (0, 1)))[:, 1:] & cut[:, None]
    return log.replace(
        mask=mask,
        terminated=log.terminated & ~cut[:, None],
        truncated=ends,
        score=np.where(cut, np.float32(0.125), log.score),
        reward=np.where(cut[:, None], 0, log.reward).astype(np.float32),
    )


def test_merging_more_supports_more_and_tells_less_apart(drawn):
    log, difficulty = select(drawn[0], slice(0, 200)), drawn[1][:200]
    tables = [
        fit_simulator(log, difficulty, max_steps=STEPS, min_count=m)
        for m in (1, 10, 10_000)
    ]
    states = [int(t.num_states) for t in tables]
    assert states[0] > states[1] > states[2]
    lacking = [int((t.legal & ~t.supported).sum()) for t in tables]
    assert lacking[0] > lacking[1] >= lacking[2]


def test_the_logs_own_policy_has_the_logs_own_means(drawn, drawn_tables):
    """Random legal play made the log; its exact value is the mean of the log."""
    log, difficulty = drawn
    found = exact(drawn_tables, uniform(drawn_tables))
    for logged, value in (
        (log.score, found.score),
        (log.mask.sum(1), found.steps),
    ):
        for level in range(3):
            real = logged[difficulty == level]
            error = real.std() / np.sqrt(len(real))
            assert abs(value[level] - real.mean()) < 3 * error


@pytest.mark.slow
def test_smoke_and_simulation_agree_with_the_exact_value(drawn_tables):
    """The means of random legal play are the programme's, within three errors."""
    played = check_world(
        FittedSim(drawn_tables, STEPS), jnp.arange(3), num_steps=STEPS, batch_size=9000
    )
    expected = exact(drawn_tables, uniform(drawn_tables))
    lacking = np.asarray(unsupported(drawn_tables, played))
    assert not lacking[~played.mask].any()
    for simulated, value in (
        (played.score, expected.score),
        (played.mask.sum(1), expected.steps),
        (lacking.sum(1), expected.unsupported),
    ):
        for level in range(3):
            ours = simulated[played.task_id == level]
            error = ours.std() / np.sqrt(len(ours))
            assert abs(value[level] - ours.mean()) < 3 * error
    features = played.observation[played.mask]
    assert np.abs(features).max() <= 1
    np.testing.assert_array_equal(features[:, -8:].sum(1), 1)


def test_features_at_another_time(hand_written):
    """A right draft that was reached two steps later than in the log."""
    steps = np.asarray(hand_written.features[:, FEATURES.index("progress")])
    visit = int(np.flatnonzero(np.isclose(steps, 0.2))[0])
    later = features_at(hand_written, 4, step_cost=logs.STEP_COST)[visit]
    changes = {"progress": 0.4, "remaining": 0.6}
    changes["cost_share"] = 0.275 + 2 * logs.STEP_COST
    for name, logged, moved in zip(
        FEATURES, hand_written.features[visit], later, strict=True
    ):
        np.testing.assert_allclose(moved, changes.get(name, logged), rtol=1e-5)
    # Of 20 steps, the logged progress of .2 is 4 and so is the time.
    same = features_at(hand_written, 4, max_steps=20, step_cost=logs.STEP_COST)[visit]
    np.testing.assert_allclose(same, hand_written.features[visit], rtol=1e-5)


def test_parity_of_one_step(hand_written):
    """Eager, jitted and both at once over a batch."""
    state = FittedState(DRAFTED_VISIT, np.int32(1), np.float32(0.25))
    keys, check = jax.random.split(jax.random.key(0), 8), np.int32(Action.CHECK)
    batched = jax.jit(jax.vmap(step, (None, 0, None, None, None)))
    batch = batched(hand_written, keys, state, check, 10)
    one = [step(hand_written, key, state, check, 10) for key in keys]
    stacked = jax.tree.map(lambda *x: np.stack(x), *one)
    jax.tree.map(np.testing.assert_array_equal, batch, stacked)
    key = jax.random.split(jax.random.key(0), 8)[0]
    eager = FittedSim(hand_written).step(key, state, check, EASY[0])
    jax.tree.map(np.testing.assert_array_equal, eager, one[0])
    assert len(np.unique(stacked[1].anchor)) == 2, "right and wrong drafts"


def test_padding_and_lost_episodes_leave_no_trace(hand_written):
    log = logs.make_log([*logs.HAND_WRITTEN, logs.HAND_WRITTEN[0]])
    outcome = np.append(log.outcome[:-1], np.int32(Outcome.INFRASTRUCTURE))
    unknown = np.where(np.append(EASY, 1)[:, None, None] == 1, np.nan, log.observation)
    lost = log.replace(outcome=outcome, observation=unknown.astype(np.float32))
    with pytest.raises(TrajectoryError, match="finite where mask"):
        fit_simulator(lost, np.append(EASY, 0))
    tables = fit_simulator(
        log.replace(outcome=outcome), np.append(EASY, 0), min_count=1
    )
    assert int(tables.num_invalid) == 1
    same = tables.replace(num_invalid=hand_written.num_invalid)
    jax.tree.map(np.testing.assert_array_equal, same, hand_written)
    assert all(np.isfinite(x).all() for x in jax.tree.leaves(tables))
    assert np.isnan(log.observation).any(), "the padding of the log is NaN"


def test_logs_of_like_size_share_a_program(hand_written):
    traces = []

    @jax.jit
    def value(tables, prob):
        traces.append(1)
        return expected_episode(tables, prob).score

    for episodes in (logs.HAND_WRITTEN, logs.HAND_WRITTEN[:-1]):
        log = logs.make_log(episodes)
        tables = fit_simulator(log, EASY[: len(episodes)], min_count=1)
        value(tables, uniform(tables, 10))
    assert len(traces) == 1


@pytest.mark.parametrize(
    ("change", "difficulty", "error", "message"),
    [
        ({"legal": None}, EASY, InputError, "legal: expected .* got None"),
        ({"outcome": np.full(8, 4, np.int32)}, EASY, InputError, "got none of 8"),
        ({}, EASY[1:], ShapeError, "difficulty: expected axes"),
        ({}, EASY - 1, InputError, r"difficulty: expected in \[0, 100\), got -1"),
        ({}, EASY + 0.5, ShapeError, "difficulty: expected type int"),
        ({"action": np.full((8, 10), 5, np.int32)}, EASY, TrajectoryError, "illegal"),
        (
            {"observation": np.full((8, 10, 18), np.nan, np.float32)},
            EASY,
            TrajectoryError,
            "'progress'",
        ),
        (
            {"observation": np.zeros((8, 10, 17), np.float32)},
            EASY,
            ShapeError,
            r"observation: expected .*18",
        ),
        ({"legal": np.ones((8, 10, 9), bool)}, EASY, ShapeError, "legal: expected .*7"),
        (
            {"observation": np.zeros((8, 10, 18), np.float32)},
            EASY,
            InputError,
            "progress = step / max_steps = 1 / 10, got 0 at row 0, step 1",
        ),
    ],
)
def test_bad_logs_are_refused(change, difficulty, error, message):
    log = logs.make_log(logs.HAND_WRITTEN)
    with pytest.raises(error, match=message):
        fit_simulator(log.replace(**change), difficulty)


@pytest.mark.parametrize("name", ["min_count", "max_steps"])
def test_bad_settings_are_refused(name):
    log = logs.make_log(logs.HAND_WRITTEN)
    with pytest.raises(InputError, match=f"{name}: expected a whole number >= 1"):
        fit_simulator(log, EASY, **{name: 0})
    with pytest.raises(InputError, match="progress = step / max_steps"):
        fit_simulator(log, EASY, max_steps=12)


def test_probabilities_of_other_axes_are_refused(hand_written):
    with pytest.raises(ShapeError, match="action_prob"):
        expected_episode(hand_written, uniform(hand_written)[:, :-1])
