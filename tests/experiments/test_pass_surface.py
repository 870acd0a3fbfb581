"""The study of PASS@(k, T): test questions that stay, training that draws anew."""

from dataclasses import replace
from types import SimpleNamespace

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from experiments.pass_surface import arms
from experiments.pass_surface.arms import (
    both_budgets,
    expert_episodes,
    training_questions,
)
from experiments.pass_surface.base import NO_SLIP, Habits, draw_habits, lazy_episodes
from experiments.pass_surface.config import (
    CATEGORIES,
    SIZES,
    TRAINED_LIMIT,
    PassSurfaceConfig,
    Sizes,
)
from experiments.pass_surface.evaluation import NO_ACTION, play
from experiments.pass_surface.places import LOOKUP, place_named
from experiments.pass_surface.questions import Asked, episode_key, questions
from jerp.envs.lookup_tasks import LookupKind
from jerp.errors import ConfigError, UnknownNameError
from jerp.storage.documents import read_json
from jerp.typing import Outcome

PLACE = place_named("lookup")
SMALL = replace(SIZES["smoke"], questions=3, samples=32)
ENTITIES = LOOKUP.size.num_entities


def a_key():
    """Of a seed's evaluation; a fresh one, because tests share no key."""
    return jax.random.key(3)


def forms(tasks):
    """What a policy could know a question by, before anything is drawn."""
    columns = (tasks.kind[:, None], tasks.direction[:, None], tasks.groups)
    return {tuple(row) for row in np.concatenate(columns, axis=1).tolist()}


def test_a_test_question_is_the_same_for_all_and_another_for_another_seed():
    one, again = (questions(a_key(), SMALL, "C") for _ in range(2))
    for a, b in zip(
        jax.tree.leaves(one.tasks), jax.tree.leaves(again.tasks), strict=True
    ):
        np.testing.assert_array_equal(a, b)
    assert jnp.array_equal(one.starts, again.starts)
    other = questions(jax.random.key(4), SMALL, "C")
    assert not jnp.array_equal(one.starts, other.starts)
    for kind, category in zip(LookupKind, CATEGORIES, strict=True):
        assert (questions(a_key(), SMALL, category).tasks.kind == kind).all()


def test_all_samples_and_budgets_of_a_question_have_one_knowledge_base():
    """Whatever key an episode has; but two questions of a form have two."""
    asked = questions(a_key(), SMALL, "C")
    env, keys = Asked(PLACE.env), jax.random.split(jax.random.key(0), 2)

    def states(limit, announced):
        rows = asked.under(limit, announced=announced)
        row = jax.tree.map(lambda x: x[0], rows)
        keys_of_episodes = jax.random.clone(keys)
        return jax.jit(jax.vmap(env.reset, (0, None)))(keys_of_episodes, row)[0]

    first, second = states(5, True), states(0, False)
    for name in ("asked", "entity", "link", "value"):
        both = np.concatenate([getattr(first, name), getattr(second, name)])
        assert (both == both[:1]).all()
    one, other = (LOOKUP.reset(k, _row(asked))[0].value for k in keys[:2])
    assert not np.array_equal(one, other)


def _row(asked):
    return jax.tree.map(lambda x: x[0], asked.tasks)


@pytest.fixture(scope="module")
def played():
    """An untrained policy's answers with 5 and with 2 look-ups, the budget hidden."""
    params = PLACE.policy().init(jax.random.key(1))
    settings = {"announced": False, "samples": SMALL.samples, "block": 48}
    asked = questions(a_key(), SMALL, "B")
    return [
        play(
            *(episode_key(a_key(), "B"), PLACE, params, asked),
            limit=limit,
            num_steps=TRAINED_LIMIT + 1,
            **settings,
        )
        for limit in (TRAINED_LIMIT, 2)
    ]


def test_with_a_hidden_budget_a_short_run_is_the_beginning_of_a_long_one(played):
    """So that runs made for T and runs cut at T differ by the forced answer alone."""
    long, short = played
    actions = long["actions"]
    assert actions.shape == (3, 32, TRAINED_LIMIT + 1) and actions.dtype == np.int16
    np.testing.assert_array_equal(actions[..., :2], short["actions"][..., :2])
    within = long["lookups"] <= 2
    assert within.any() and not within.all()
    for name in ("outcome", "lookups", "tokens"):
        np.testing.assert_array_equal(long[name][within], short[name][within])
    assert (short["lookups"][~within] == 2).all()
    # The cap forces an answer: no run is cut off without one.
    assert (np.where(within, ENTITIES, short["actions"][..., 2]) >= ENTITIES).all()
    for one in played:
        assert np.isin(one["outcome"], (Outcome.FAILURE, Outcome.SUCCESS)).all()


def test_what_is_counted_of_a_run_is_in_its_actions(played):
    for one in played:
        steps = (one["actions"] != NO_ACTION).sum(-1)
        searches = (one["actions"] >= 0) & (one["actions"] < ENTITIES)
        np.testing.assert_array_equal(one["lookups"], searches.sum(-1))
        np.testing.assert_array_equal(one["tokens"], 3 * steps)
        np.testing.assert_array_equal(steps, one["lookups"] + 1)


def test_samples_and_questions_do_not_depend_on_the_size_of_blocks(played):
    """The blocks are part of the keys, so the block is; but not how many samples."""
    params = PLACE.policy().init(jax.random.key(1))
    fewer = play(
        *(episode_key(a_key(), "B"), PLACE, params, questions(a_key(), SMALL, "B")),
        limit=2,
        announced=False,
        samples=20,
        block=48,
        num_steps=TRAINED_LIMIT + 1,
    )
    for name, values in fewer.items():
        np.testing.assert_array_equal(values, played[1][name][:, :20])


def test_training_questions_are_of_b_and_c_and_in_no_test_or_validation():
    sizes = Sizes()
    asked = training_questions(a_key(), PLACE, sizes)
    assert np.bincount(asked.train.kind).tolist() == [0, 100, 100]
    assert np.bincount(asked.validation.kind).tolist() == [0, 50, 50]
    train, validation = forms(asked.train), forms(asked.validation)
    assert len(train) == 200 and len(validation) == 100 and not train & validation
    tests = [forms(questions(a_key(), sizes, c).tasks) for c in ("B", "C")]
    assert not (train | validation) & set.union(*tests)
    both = both_budgets(asked.train)
    assert len(both.kind) == 400 and forms(both) == train
    # An odd number of visits ends with one half of the rows.
    for half in (slice(200), slice(200, None)):
        shown = both.announced[half]
        for kind in (LookupKind.COMPARISON, LookupKind.BRIDGE):
            assert int(shown[both.kind[half] == kind].sum()) == 50
    assert (both.announced[:200] != both.announced[200:]).all()


def test_training_by_cloning_counts_what_was_tried_and_not_kept(tmp_path, monkeypatch):
    """Two numbers of visits of 4 and 12 tokens, and validation under two budgets."""
    sizes = replace(SIZES["smoke"], sft_visits=(1, 3))

    def expert(key, place, tasks, *, visits):
        return SimpleNamespace(token_mask=np.ones((visits, 4), bool))

    def answered(key, place, params, asked, *, announced, **settings):
        won = np.full((asked.number, 2), int(params == 1 and announced), np.int8)
        return {"outcome": won, "tokens": np.full((asked.number, 2), 3, np.int16)}

    monkeypatch.setattr(arms, "expert_episodes", expert)
    monkeypatch.setattr(
        arms, "_cloned", lambda key, base, data, policy: len(data.token_mask)
    )
    monkeypatch.setattr(arms, "play", answered)
    number = 4
    rows = [SimpleNamespace(kind=np.zeros(n)) for n in (16, number)]
    asked = arms.TrainingQuestions(*rows)  # pyright: ignore
    for visits, kept, learned, generated in (
        ((1, 3), 1, 4 + 12, 2 * 2 * number * 2 * 3),
        ((3,), 3, 12, 0),
    ):
        tried = replace(sizes, sft_visits=visits)
        key = jax.random.key(6 + kept)
        found = arms.train_by_cloning(tmp_path, key, PLACE, asked, 0, tried)
        taken = read_json(tmp_path / arms.TRAINING)
        assert (found, taken["visits"]) == (kept, kept)
        assert taken["learned_tokens"] == learned
        assert taken["generated_tokens"] == generated
    assert taken["validation"] == {}


def test_an_expert_meets_another_knowledge_base_at_every_visit():
    asked = training_questions(a_key(), PLACE, SIZES["smoke"]).train
    data = expert_episodes(jax.random.key(5), PLACE, asked, visits=4)
    right = data.outcome == Outcome.SUCCESS
    # Nothing is learned from a guess that was wrong.
    assert int(right.sum()) > 0 and not bool(data.mask[~right].any())
    assert data.mask[right].any(axis=1).all()
    number = len(asked.kind)
    # The names in the question are drawn with what can be looked up.
    names = np.asarray(data.observation)[:, 0, 2:4].reshape(4, number, 2)
    alike = (names == names[:1]).all(axis=(0, 2))
    assert alike.mean() < 0.2


def test_habits_decide_how_many_look_ups_come_before_an_answer():
    number = 3
    tasks = PLACE.tasks(jax.random.key(0), 3 * number, "train")
    tasks = tasks.replace(failure=jnp.zeros_like(tasks.failure))
    patience = jnp.repeat(jnp.array([0, 1, TRAINED_LIMIT]), number)
    slip = jnp.where(tasks.kind == LookupKind.DIRECT, 7, NO_SLIP)
    slip = slip.at[0].set(NO_SLIP)
    data = lazy_episodes(jax.random.key(1), PLACE, Habits(tasks, patience, slip))
    steps = np.asarray(data.mask.sum(axis=1))
    lookups = np.where(tasks.kind == LookupKind.DIRECT, 0, np.minimum(patience, 2))
    np.testing.assert_array_equal(steps, 1 + lookups)
    last = np.take_along_axis(np.asarray(data.action), steps[:, None] - 1, 1)[:, 0]
    direct = np.asarray(tasks.kind) == LookupKind.DIRECT
    assert (last[direct][1:] == ENTITIES + 7).all()
    right = np.asarray(data.outcome) == Outcome.SUCCESS
    assert right[0] and right[~direct & (patience == TRAINED_LIMIT)].all()


def test_habits_are_drawn_with_the_shares_that_the_sizes_say():
    sizes = replace(Sizes(), lazy=0.7, careless=0.5)
    tasks = PLACE.tasks(jax.random.key(0), 3000, "train")
    habits = draw_habits(jax.random.key(1), tasks, LOOKUP, sizes)
    direct = np.asarray(tasks.kind) == LookupKind.DIRECT
    slips = np.asarray(habits.slip) != NO_SLIP
    assert not slips[~direct].any() and 0.44 < slips[direct].mean() < 0.56
    assert 0.67 < np.mean(np.asarray(habits.patience) < TRAINED_LIMIT) < 0.73
    assert {*np.asarray(habits.patience).tolist()} == {0, 1, TRAINED_LIMIT}
    assert 0.46 < float(habits.tasks.announced.mean()) < 0.54


def test_a_config_says_its_command_and_refuses_what_cannot_be():
    config = PassSurfaceConfig(arms=("grpo", "ppo"), seeds=2, smoke=True)
    assert config.command == ("jerp run pass-surface --seeds 2 --arms grpo ppo --smoke")
    assert config.folder.name == "pass-surface-smoke"
    assert config.policies == ("base", "grpo", "ppo") and config.num_seeds == 2
    assert PassSurfaceConfig(full=True).num_seeds == 5
    with pytest.raises(ConfigError, match="seeds: expected at least 1, got 0"):
        PassSurfaceConfig(seeds=0)
    with pytest.raises(ConfigError, match="each once, got grpo grpo"):
        PassSurfaceConfig(arms=("grpo", "grpo"))
    with pytest.raises(UnknownNameError, match="arms"):
        PassSurfaceConfig(arms=("base",))
    with pytest.raises(ConfigError, match="smoke and full exclude each other"):
        PassSurfaceConfig(smoke=True, full=True)
