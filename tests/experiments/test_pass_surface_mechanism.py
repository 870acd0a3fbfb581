"""Transcripts read by other policies: identities in a small world, made-up numbers."""

from functools import partial

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from experiments.pass_surface.mechanism import (
    measure,
    query_sequences,
    right_answer_probability,
    right_answers,
    token_sums,
)
from experiments.pass_surface.mechanism_analysis import (
    arm_numbers,
    mechanism_notes,
    mechanism_tables,
)
from experiments.pass_surface.places import Place
from experiments.pass_surface.questions import Asked, Questions
from jerp.envs.lookup import Lookup
from jerp.envs.lookup_tasks import LookupSize, lookup_tasks
from jerp.envs.lookup_tokens import action_tokens
from jerp.envs.shared_words import SharedWords
from jerp.models.token_policy import token_policy
from jerp.rollout.scan import rollout
from jerp.typing import Outcome

SIZE = LookupSize(num_entities=32, num_values=32, num_paragraphs=3, max_lookups=2)
WORLD = Lookup(SIZE, forced=True, observation="tokens")
PLACE = Place("small", SharedWords(WORLD, WORLD.vocabulary), partial(lookup_tasks), 3)
QUESTIONS, SAMPLES = 6, 8
READ = {"num_searches": SIZE.num_entities}


@pytest.fixture(scope="module")
def asked():
    tasks = lookup_tasks(jax.random.key(0), QUESTIONS, size=SIZE, announced=False)
    starts = jax.random.split(jax.random.key(1), QUESTIONS)
    return Questions(tasks, jax.random.key_data(starts))


@pytest.fixture(scope="module")
def policy():
    actions = tuple(map(tuple, np.asarray(action_tokens(SIZE)).tolist()))
    return token_policy(
        *(len(WORLD.vocabulary), 5, 3),
        **{"num_steps": 3, "actions": actions, "hidden_size": 8, "num_layers": 1},
        num_heads=2,
    )


@pytest.fixture(scope="module")
def params(policy):
    # Wide, so that policies differ in what they prefer.
    wide = jax.tree.map(lambda x: 3 * x, policy.init(jax.random.key(2)))
    return {"base": policy.init(jax.random.key(3)), "arm": wide}


@pytest.fixture(scope="module")
def play(policy, asked):
    @jax.jit
    def played(key, asked, params):
        return rollout(
            *(key, Asked(PLACE.env), asked, policy, params),
            num_steps=3,
            batch_size=QUESTIONS * SAMPLES,
        )

    def play(params):
        return played(jax.random.key(4), asked, params)

    return play


@pytest.fixture(scope="module")
def data(play, params):
    return play(params["arm"])


def last_step(data):
    return np.asarray(data.mask).sum(1) - 1


def test_probabilities_of_all_answers_add_to_one(data, params, policy):
    read = partial(right_answer_probability, params["base"], policy=policy, **READ)
    total = sum(
        read(data, jnp.full(len(data.mask), action))
        for action in range(SIZE.num_entities, WORLD.num_actions)
    )
    np.testing.assert_allclose(total, 1, rtol=1e-5)


def test_who_answers_as_it_did_has_the_probability_that_it_acted_with(
    data, params, policy
):
    """Searches are masked: of the two words of an answer the value's remains."""
    rows, last = np.arange(len(data.mask)), last_step(data)
    own = data.action[rows, last]
    found = right_answer_probability(params["arm"], data, own, policy=policy, **READ)
    acted = np.exp(data.token_log_prob[rows, last, 1])
    np.testing.assert_allclose(found, acted, rtol=1e-4)
    other = right_answer_probability(params["base"], data, own, policy=policy, **READ)
    assert np.abs(np.asarray(other) - acted).max() > 0.01


def test_sums_over_tokens_are_what_acting_said(data, params, policy):
    sums = np.asarray(token_sums(params["arm"], data, policy=policy, **READ))
    search = np.asarray(data.mask & (data.action < SIZE.num_entities))
    log_prob = np.asarray(data.token_log_prob).sum(-1)
    expected = [(log_prob * search).sum(1), (log_prob * (data.mask & ~search)).sum(1)]
    np.testing.assert_allclose(sums[:, 0].T, expected, rtol=1e-4, atol=1e-5)
    # Each search has two words with an alternative, as has an answer, unless the cap
    # forces its first one.
    forced = search.sum(1) == SIZE.max_lookups
    np.testing.assert_array_equal(sums[:, 1, 0], 2 * search.sum(1))
    np.testing.assert_array_equal(sums[:, 1, 1], 2 - forced)
    assert forced.any() and not forced.all()


def test_the_right_answers_are_those_that_score(asked, play, params, data):
    right = right_answers(PLACE, asked)
    rows, last = np.arange(len(data.mask)), last_step(data)
    answered_right = data.action[rows, last] == right[data.task_id]
    success = np.asarray(data.outcome) == Outcome.SUCCESS
    np.testing.assert_array_equal(answered_right, success)
    assert (right >= SIZE.num_entities).all()


def test_what_is_measured_adds_up(play, policy, params, asked):
    right = right_answers(PLACE, asked)
    found = measure(play, policy, params, right, batch=20, **READ)
    base, arm = found["base"]["swap"], found["arm"]["swap"]
    assert base.shape == arm.shape == (QUESTIONS, 2, 2)
    for cell in np.ndindex(2, 2):
        np.testing.assert_array_equal(base[:, *cell], arm[:, 0, 0])
    assert (arm[:, 1, 0] != arm[:, 0, 0]).any() and (arm[:, 0, 1] != arm[:, 0, 0]).any()
    # Expected and drawn successes of one arm differ by luck alone.
    several = arm[:, 1, 1] * (1 - arm[:, 1, 1]) / SAMPLES
    off = (found["arm"]["success"] - arm[:, 1, 1]).sum() / np.sqrt(several.sum())
    assert abs(off) < 3
    assert (found["arm"]["count"][found["arm"]["success"] == 0] == 0).all()


def test_batches_change_nothing(play, policy, params, asked):
    right = right_answers(PLACE, asked)
    one, other = (
        measure(play, policy, params, right, batch=batch, **READ) for batch in (20, 512)
    )
    jax.tree.map(partial(np.testing.assert_allclose, rtol=1e-4, atol=1e-5), one, other)


def test_sequences_by_hand():
    one = np.array([[[3, 5, 40], [3, 40, -1]], [[40, -1, -1], [5, 3, 41]]])
    other = np.array([[[3, 5, 33], [3, 3, 50]], [[50, 7, 7], [5, 3, 32]]])
    ids, others = query_sequences([one, other], num_searches=32)
    assert ids[0, 0] == others[0, 0] and ids[1, 0] == others[1, 0]
    assert ids[1, 1] == others[1, 1]
    assert ids[0, 1] != others[0, 1], "a failed search that is made again counts"
    assert len({*ids.flat, *others.flat}) == 5


def made_up(rng_key, strength):
    """An arm whose search brings `strength`, and whose answer nothing."""
    keys = jax.random.split(rng_key, 2)
    base = np.asarray(jax.random.uniform(keys[0], (30,))) / 4
    swap = np.stack([[base, base], [base + strength, base + strength]])
    count = np.ones((30, 2), np.float32) * [4, 1]
    return {
        "log_prob": -count * np.log([2.0, 3.0]),
        "count": count,
        "swap": np.moveaxis(swap, -1, 0),
    }


@pytest.fixture(scope="module")
def numbers():
    keys = jax.random.split(jax.random.key(5), 2)
    measured = [{"arm": made_up(key, 0.5)} for key in keys]
    runs = [
        {
            "base": np.asarray(jax.random.randint(key, (30, 16, 3), 0, 4)),
            "arm": np.full((30, 16, 3), 2),
        }
        for key in keys
    ]
    return arm_numbers(jax.random.key(6), "arm", measured, runs, num_searches=32)


def test_made_up_numbers_are_found_again(numbers):
    surprise = numbers["perplexity"]
    assert surprise["query"]["point"] == pytest.approx(2)
    assert surprise["answer"]["point"] == pytest.approx(3)
    assert surprise["ratio"]["point"] == pytest.approx(1.5)
    assert surprise["by_seed"]["query"] == pytest.approx([2, 2])
    assert surprise["tokens"] == {"query": 240, "answer": 60}
    assert numbers["part_search"]["point"] == pytest.approx(0.5)
    assert numbers["part_answer"]["point"] == pytest.approx(0)
    assert numbers["distinct"]["point"] == 1
    # Of 64 sequences at random, 16 runs show 64 (1 - (63 / 64)^16) on average.
    expected = 64 * (1 - (63 / 64) ** 16)
    assert numbers["distinct_base"]["point"] == pytest.approx(expected, abs=0.4)
    gap = numbers["distinct"]["point"] - numbers["distinct_base"]["point"]
    assert numbers["distinct_difference"]["point"] == pytest.approx(gap, abs=1e-5)
    assert numbers["known_ceiling"]["point"] < 0.25, "no base has all of itself"
    assert numbers["num_questions"] == 60 and numbers["samples"] == 16


def test_tables_have_a_cell_a_column(numbers):
    labels = {"base": "base", "arm": "Arm"}
    tables = mechanism_tables({"B": {"base": numbers, "arm": numbers}}, labels)
    for table in tables:
        assert all(len(row) == len(table.header) for row in table.rows)
    new, parts = tables
    assert "8 runs of the base" in " ".join(mechanism_notes({"B": {"arm": numbers}}))
    assert [row[:3] for row in new.rows][1] == ("B", "Arm", "2.00 [2.00, 2.00]")
    assert len(parts.rows) == 1 and "+.50 [+.50, +.50]" in parts.rows[0]
