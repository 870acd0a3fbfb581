"""Rules of tools: a situation is what is seen, a move is a call."""

from functools import partial
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from jerp.envs.checks import check_environment
from jerp.envs.rule_language import Situated, read_sentence, sentence
from jerp.envs.tools import Tools
from jerp.envs.tools_rules import TOOLS_TYPES, ToolsRules
from jerp.envs.tools_tables import STATUSES
from jerp.envs.tools_tasks import tools_tasks
from jerp.envs.tools_text import describe_action
from jerp.rollout.demonstrations import demonstrations
from jerp.rules.instructions import imperative_fault

RULES = ToolsRules()
ENV = Situated(Tools(), RULES)


@pytest.fixture(scope="module")
def played():
    """Episodes of an oracle that errs half of the time, and their moves."""
    tasks = tools_tasks(jax.random.key(0), 8)

    @jax.jit
    def play():
        data = demonstrations(
            jax.random.key(1), ENV, tasks, num_steps=12, batch_size=64, noise=0.5
        )
        params = jax.tree.map(lambda x: x[data.task_id], tasks)
        fields: Any = data.observation
        return data, ENV.moves(data.action, fields, params)

    return jax.device_get(play())


def test_it_is_a_world():
    env = Situated(Tools(horizon=16), RULES)
    tasks: Any = tools_tasks(jax.random.key(2), 8)
    check_environment(env, tasks, jax.random.key(3), num_steps=18)


def test_a_situation_is_what_the_last_call_brought(played):
    data, _ = played
    fields = data.observation[data.mask]
    np.testing.assert_array_equal(fields[:, -1], 1 + fields[:, 3])
    words = {RULES.situations[s] for s in np.unique(fields[:, -1])}
    assert {"a request is new", "a call works", "a call fails with no card"} <= words


def test_a_move_is_an_action(played):
    data, moves = played
    np.testing.assert_array_equal(moves[data.mask], 1 + data.action[data.mask])
    assert len(RULES.moves) == 1 + ENV.num_actions
    for action in range(1, ENV.num_actions):
        words = describe_action(action).replace("()", "").replace("(", " ")
        plain = words.replace(", ", " ").replace(")", "")
        assert RULES.moves[1 + action] == f"call {plain}"


def test_every_rule_is_a_sentence_that_is_read_back():
    assert len(RULES.situations) == 1 + len(STATUSES)
    for situation in range(1, len(RULES.situations)):
        for move in range(1, len(RULES.moves)):
            text = sentence(RULES, situation, move)
            assert read_sentence(RULES, text) == (situation, move)
    assert imperative_fault(sentence(RULES, 3, 3)) is None


def test_what_it_says_by_hand():
    situation = RULES.situations.index("a call fails with no card")
    move = RULES.moves.index("call add card")
    assert sentence(RULES, situation, move) == (
        "When a call fails with no card, call add card."
    )
    assert RULES.moves[1] == "end the turn"
    assert TOOLS_TYPES == ("files", "trading", "travel", "vehicle")


def test_moves_go_through_jit_and_vmap():
    actions = jnp.arange(5)
    tasks = jax.tree.map(lambda x: x[:1], tools_tasks(jax.random.key(2), 8))
    move = partial(RULES.move, situation=jnp.int32(3), params=tasks)
    plain = [int(move(a)) for a in actions]
    assert jax.jit(jax.vmap(move))(actions).tolist() == plain == [1, 2, 3, 4, 5]
