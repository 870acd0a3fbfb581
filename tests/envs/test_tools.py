"""`tools`: calls against a slow reference, the oracle, side effects, splits, text."""

import doctest
from functools import partial

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from jerp.envs import tools_tables, tools_tasks, tools_text
from jerp.envs.checks import check_environment
from jerp.envs.tools import Tools, ToolsState
from jerp.envs.tools_tables import CALLS, DONE, OK, REQUESTS, STATUSES
from jerp.envs.tools_text import describe, describe_action, describe_task
from jerp.envs.tools_things import APIS
from jerp.errors import JerpError
from jerp.typing import Outcome
from tests.reference.tools import run_call

FILES, TRADING, TRAVEL, VEHICLE = range(4)
STEPS = 18
"""More than the oracle ever takes."""

draw = tools_tasks.tools_tasks


def names(api):
    return [variable.name for variable in APIS[api].variables]


def number(text):
    """The call that is written so."""
    return next(a for a in range(1 + len(CALLS)) if describe_action(a) == text)


def by_hand(*texts):
    """An episode of `trading_task`: the calls, then the oracle's; `[steps, ...]`."""
    forced = [number(text) for text in texts] + [-1] * (12 - len(texts))
    params = jax.tree.map(lambda x: x[None], trading_task())
    state, now, _ = play(Tools(), params, jnp.asarray([forced]))
    return row(state, 0), row(now, 0)


def row(tree, *index):
    return jax.tree.map(lambda x: np.asarray(x)[index], tree)


@partial(jax.jit, static_argnums=0)
def play(env, tasks, before):
    """Episodes `[N, steps, ...]`: the actions `before` `[N, b]`, then the oracle's."""

    def one(params, forced):
        def body(state, action):
            action = jnp.where(action < 0, env.oracle(state, params), action)
            after, now = env.step(jax.random.key(0), state, action, params)
            return after, (after, now, action)

        rest = jnp.full(env.horizon - forced.shape[0], -1)
        start, _ = env.reset(jax.random.key(0), params)
        return jax.lax.scan(body, start, jnp.concatenate([forced, rest]))[1]

    return jax.vmap(one)(tasks, before)


def without(tasks):
    return jnp.full((tasks.api.shape[0], 4), -1)


@pytest.fixture(scope="module")
def tasks():
    return draw(jax.random.key(0), 400)


def test_the_world_keeps_its_promises(tasks):
    env = Tools(horizon=16, observation="tokens")
    some = jax.tree.map(lambda x: x[:60], tasks)
    check_environment(env, some, jax.random.key(1), num_steps=18)


@pytest.mark.parametrize("split", ["train", "seen", "unseen"])
def test_the_oracle_solves_every_task_and_no_call_of_it_fails(split):
    many = draw(jax.random.key(3), 400, split=split)
    state, now, _ = play(Tools(), many, without(many))
    steps = np.argmax(np.asarray(now.terminated), axis=1) + 1
    assert np.all(np.asarray(now.outcome[:, -1]) == Outcome.SUCCESS)
    assert np.all(np.asarray(now.score[:, -1]) == 1)
    assert np.all(np.asarray(now.reward).sum(1) == 1) and steps.max() <= STEPS
    assert steps.min() >= 6, "every request takes a call"
    assert np.asarray(state.status).max() == OK
    np.testing.assert_array_equal(state.values[:, -1], many.goal[:, -1])


def test_calls_do_what_the_definitions_say(tasks):
    env, size = Tools(horizon=22), (400, 20)
    own = np.asarray([[d == api for d, _ in CALLS] for api in range(len(APIS))])
    allowed = jnp.asarray(own)[tasks.api]
    logits = jnp.where(allowed, 0.0, -jnp.inf)[:, None]
    called = 1 + jax.random.categorical(jax.random.key(2), logits, shape=size)
    state, _, _ = play(env, tasks, called)
    values, status, about = (
        np.asarray(x) for x in (state.values, state.status, state.about)
    )
    start, called = np.asarray(tasks.start), np.asarray(called)
    errors = set()
    for n in range(200):
        api = n % len(APIS)
        now = dict(zip(names(api), start[n].tolist(), strict=False))
        for t in range(20):
            now, error, shown = run_call(now, call := CALLS[called[n, t] - 1][1])
            got = values[n, t].tolist()
            assert got == [*now.values(), *[0] * (8 - len(now))]
            assert STATUSES[status[n, t]] == (error or "ok")
            place = 0 if error else 1 + names(api).index(call.shown)
            assert about[n, t] == place and (error or got[place - 1] == shown)
            errors.add(error)
    assert len(errors) > 0.9 * len(STATUSES)


def test_the_oracle_repairs_what_others_did(tasks):
    own = np.asarray([[d == api for d, _ in CALLS] for api in range(len(APIS))])
    logits = jnp.where(jnp.asarray(own)[tasks.api], 0.0, -jnp.inf)[:, None]
    before = 1 + jax.random.categorical(jax.random.key(4), logits, shape=(400, 4))
    _, now, _ = play(Tools(horizon=40), tasks, before)
    success = np.asarray(now.outcome[:, -1]) == Outcome.SUCCESS
    # A tank cannot be emptied: all that it cannot do is undo too much fuel.
    refuels = [number(f"refuel({level})") for level in ("1/2", "3/4", "full")]
    fuelled = np.isin(np.asarray(before), refuels).any(1)
    assert success[~fuelled].all() and success[fuelled].any()
    assert np.asarray(now.terminated[:, -1]).all()


def trading_task():
    """Own 1 Acme, watch Bolt, own 0 Acme; no session, two in the account."""
    variable = {name: i for i, name in enumerate(names(TRADING))}
    start = np.zeros(8, np.int32)
    start[variable["balance"]] = 2
    goals = [start.copy() for _ in range(3)]
    for goal, shares, watch, left in zip(
        goals, (1, 1, 0), (0, 1, 1), (1, 1, 2), strict=True
    ):
        goal[variable["Acme shares"]], goal[variable["balance"]] = shares, left
        goal[variable["Bolt watch"]], goal[variable["session"]] = watch, 1
    wanted = (("Acme shares", 1), ("Bolt watch", 1), ("Acme shares", 0))
    requests = [(d, r.variable, r.value) for d, r in REQUESTS]
    return tools_tasks.ToolsParams(
        api=jnp.int32(TRADING),
        start=jnp.asarray(start),
        request=jnp.asarray([requests.index((TRADING, *w)) for w in wanted]),
        goal=jnp.asarray(np.stack(goals)),
    )


CALLS_BY_HAND = (
    ("buy(Acme)", "not logged in"),
    ("log in()", "ok"),
    ("buy(Dodo)", "no such symbol"),
    ("buy(Crux)", "insufficient funds"),
    ("buy(Acme)", "ok"),
    ("done", "waiting"),
    ("watch(Bolt)", "ok"),
    ("done", "waiting"),
    ("sell(Acme)", "ok"),
    ("sell(Acme)", "nothing to sell"),
)


@pytest.mark.parametrize("extra", [(), ("watch(Crux)",), ("log out()",)])
def test_an_episode_by_hand_and_what_a_side_effect_costs(extra):
    texts = [text for text, _ in CALLS_BY_HAND] + [*extra, *["done"] * (2 - len(extra))]
    state, now = by_hand(*texts)
    for t, (_, status) in enumerate(CALLS_BY_HAND):
        assert STATUSES[state.status[t]] == status
    assert not now.terminated[9] and now.score[9] == np.float32(2 / 3)
    assert now.terminated[-1] and not now.truncated[-1]
    expected = (0, Outcome.FAILURE, 2 / 3) if extra else (1, Outcome.SUCCESS, 1)
    got = (now.reward.sum(), now.outcome[-1], now.score[-1])
    np.testing.assert_allclose(got, expected, rtol=1e-6)


def test_one_request_can_be_late_but_the_state_counts():
    _, now = by_hand("done", "log in()", "watch(Bolt)", "done", "done")
    # The balance is what it was, as after buying and selling; no other turn was right.
    assert now.reward[4] == 1 and now.score[4] == 1 and now.score[3] == 0


def test_the_state_is_not_seen_but_by_calls():
    env, params = Tools(), trading_task()
    zero = jnp.int32(0)
    state = ToolsState(zero, params.start, zero, zero, zero, zero)
    poorer = state.replace(values=params.start.at[6].set(0))
    seen = [env.observe(s, params).fields for s in (state, poorer)]
    np.testing.assert_array_equal(*seen)
    assert (env.anchor(state, params) != env.anchor(poorer, params)).any()


def test_splits_share_no_sequence_of_requests():
    sequences = {}
    for split in ("train", "seen", "unseen"):
        request = np.asarray(draw(jax.random.key(5), 400, split=split).request)
        sequences[split] = set(map(tuple, request.tolist()))
        assert len(sequences[split]) > 150
    assert sum(map(len, sequences.values())) == len(set.union(*sequences.values()))
    last = {split: {r[1:] for r in rows} for split, rows in sequences.items()}
    assert not last["unseen"] & (last["train"] | last["seen"])


def test_every_request_is_drawn_and_none_asks_for_what_is_so(tasks):
    api, asked, start, goal = (
        np.asarray(x) for x in (tasks.api, tasks.request, tasks.start, tasks.goal)
    )
    assert set(asked.reshape(-1)) == set(range(len(REQUESTS)))
    before = np.concatenate([start[:, None], goal[:, :-1]], axis=1)
    for n, t in np.ndindex(asked.shape):
        d, wanted = REQUESTS[asked[n, t]]
        place = names(d).index(wanted.variable)
        assert d == api[n] and goal[n, t, place] == wanted.value
        assert before[n, t, place] != wanted.value


def test_text_says_what_the_request_is_and_what_a_call_brought():
    one = row(trading_task())
    state, _ = by_hand("buy(Acme)", "log in()", "buy(Acme)", "done")
    lines = [describe(row(state, t), one) for t in range(4)]
    assert lines == [
        "Request 1: I want to own 1 Acme shares.\nThe call failed: not logged in.",
        "Request 1: I want to own 1 Acme shares.\nThe call worked; session: on.",
        "Request 1: I want to own 1 Acme shares.\nThe call worked; Acme shares: 1.",
        "Request 2: Turn the Bolt watch on.",
    ]
    assert "trading tools: buy, sell, watch" in describe_task(one)
    env = Tools()
    words, tokens = env.vocabulary, np.asarray(env.action_tokens(one))
    assert [words[t] for t in tokens[number("refuel(full)")]] == ["refuel", "full", ""]
    seen = env.observe(jax.tree.map(jnp.asarray, row(state, 2)), trading_task()).tokens
    expected = ["trading", "turn 1", "Acme shares", "1", "ok", "Acme shares", "1"]
    assert [words[t] for t in seen] == expected
    assert tokens[DONE].tolist() == [words.index("done"), 0, 0]


@pytest.mark.parametrize("module", [tools_tables, tools_tasks, tools_text])
def test_examples(module):
    result = doctest.testmod(module)
    assert result.attempted > 0 and result.failed == 0


def test_refusals_name_the_argument():
    with pytest.raises(JerpError, match="split 'valid'"):
        draw(jax.random.key(0), 4, split="valid")
    with pytest.raises(JerpError, match="num_tasks: expected a whole number >= 1"):
        draw(jax.random.key(0), 0)
