"""The executor that follows skills: what is said, who follows, and the same luck."""

import doctest
from functools import partial

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from experiments.wer import executor, skill_lines
from experiments.wer.config import ExecutorSizes
from experiments.wer.executor import Runs, clone_executor, draw_lines, execute, no_lines
from experiments.wer.places import NUM_LINES, Place
from experiments.wer.skill_lines import lines_of, skill_of, working_sets
from jerp.envs.rule_language import sentence
from jerp.errors import (
    ConfigError,
    InputError,
    ShapeError,
    SkillError,
    UnknownNameError,
)
from jerp.rollout.rule_demonstrations import rule_demonstrations
from jerp.skills.document import Skill, parse_skill, render_skill
from jerp.typing import Outcome
from tests.optimised import optimised_jit

PLACE = Place()
LANGUAGE = PLACE.env.language
S, M = PLACE.rule_sizes
NUM_TASKS = 70
"""Two runs of each take more than a block."""


def said(lines):
    return [sentence(LANGUAGE, *PLACE.rules[line]) for line in lines]


def test_right_lines_of_the_tables():
    """What repairs each error, if it is the same for all requests."""
    assert said(PLACE.right_lines("travel")) == [
        "When a call fails with not signed in, call sign in.",
        "When a call fails with booked already, call cancel.",
        "When a call fails with passport not verified, call verify.",
        "When a call fails with insured, call end insurance.",
        "When a call fails with no card, call add card.",
    ]
    assert said(PLACE.right_lines("vehicle")) == [
        "When a call fails with engine running, call stop engine.",
        "When a call fails with engine off, call start engine.",
        "When a call fails with doors open, call lock doors.",
        "When a call fails with brake released, call set brake.",
        "When a call fails with climate on, call set climate off.",
    ]
    assert said(Place(("trading",)).right_lines("trading")) == [
        "When a call fails with not logged in, call log in.",
        "When a call fails with insufficient funds, call deposit.",
        "When a call fails with account full, call withdraw.",
    ]


@pytest.mark.parametrize("domain", PLACE.domains)
def test_wrong_lines_are_of_the_same_errors_and_never_right(domain):
    right, wrong = (
        PLACE.rules[list(lines)]
        for lines in (PLACE.right_lines(domain), PLACE.wrong_lines(domain))
    )
    np.testing.assert_array_equal(right[:, 0], wrong[:, 0])
    assert (right[:, 1] != wrong[:, 1]).all()
    assert set(wrong[:, 1]) <= set(PLACE.moves(domain))
    assert set(wrong[:, 0]) <= set(PLACE.situations(domain)) <= set(PLACE.unknown)


def test_tasks_are_of_the_domains_in_turn():
    place = Place(("vehicle", "trading", "files"))
    # As many rounds as the tasks of other tests take: one program.
    tasks = place.tasks(jax.random.key(0), 104, "train")
    assert tasks.goal.shape[0] == 104
    np.testing.assert_array_equal(tasks.api, np.resize([3, 1, 0], 104))
    np.testing.assert_array_equal(place.domain_of(tasks), np.arange(104) % 3)


def test_places_are_of_known_domains():
    with pytest.raises(UnknownNameError, match="travle"):
        Place(("travle",))
    for domains in ((), ("travel", "travel")):
        with pytest.raises(ConfigError, match="domains: expected different ones"):
            Place(domains)
    with pytest.raises(ConfigError, match="epochs: expected at least 1, got 0"):
        ExecutorSizes(epochs=0)
    with pytest.raises(ConfigError, match="foreign: expected a share"):
        ExecutorSizes(foreign=1.5)


@pytest.fixture(scope="module")
def tasks():
    return PLACE.tasks(jax.random.key(1), NUM_TASKS, "seen")


def skills_of(tasks, lines):
    return working_sets(lines(PLACE.domains[d]) for d in PLACE.domain_of(tasks))


def test_right_lines_solve_all_and_wrong_ones_less_than_none(tasks):
    """Of someone who errs in nothing else; all are shown in one program."""
    told = [lambda _: (), PLACE.right_lines, PLACE.wrong_lines]
    lines = np.concatenate([skills_of(tasks, lines) for lines in told])
    show = partial(
        rule_demonstrations,
        env=PLACE.shown,
        num_steps=PLACE.horizon,
        batch_size=len(lines),
        unknown=PLACE.unknown,
    )
    data = jax.jit(show)(
        jax.random.key(2),
        env_params=jax.tree.map(lambda x: jnp.concatenate([x] * 3), tasks),
        rules=jnp.asarray(PLACE.rules),
        working_set=jnp.asarray(lines),
    )
    solved = (np.asarray(data.outcome) == Outcome.SUCCESS).reshape(3, NUM_TASKS)
    assert solved[1].all()
    for domain in range(len(PLACE.domains)):
        none, _, wrong = solved[:, PLACE.domain_of(tasks) == domain].sum(axis=1)
        assert 0 < wrong < none < 25


@pytest.fixture(scope="module")
def played():
    """The executor's program as users' is compiled: single bits count."""
    program = optimised_jit(executor._played.__wrapped__, static_argnames="place")
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(executor, "_played", program)
        yield program


@pytest.fixture(scope="module")
def params():
    return jax.jit(PLACE.policy().init)(jax.random.key(3))


def assert_same(runs, others):
    for name, one, other in zip(Runs._fields, runs, others, strict=True):
        np.testing.assert_array_equal(one, other, err_msg=name)


def test_a_run_is_the_same_whatever_runs_beside_it(played, params, tasks):
    run = partial(execute, jax.random.key(4), PLACE, params)
    lines = skills_of(tasks, PLACE.right_lines)
    all_runs = run(tasks, lines, num_runs=2)
    steps = (NUM_TASKS, 2, PLACE.horizon)
    assert all_runs.fields.shape == (*steps, len(PLACE.env.field_sizes))
    assert all_runs.action.shape == all_runs.mask.shape == steps
    assert all_runs.success.shape == (NUM_TASKS, 2)

    # Some of the tasks in another order, and the second run alone.
    some = np.asarray([69, 3, 40])
    chosen = jax.tree.map(lambda x: x[some], tasks)
    found = run(chosen, lines[some], num_runs=1, first_run=1, task_id=some)
    assert_same(found, [x[some, 1:] for x in all_runs])
    # Other lines change their own task's runs alone.
    lines[3] = no_lines(1)
    moved = jax.device_put(params, jax.devices()[0])
    other = execute(jax.random.key(4), PLACE, moved, tasks, lines, num_runs=2)
    kept = np.arange(NUM_TASKS) != 3
    assert_same([x[kept] for x in other], [x[kept] for x in all_runs])
    assert (other.action[3] != all_runs.action[3]).any()
    # Runs of a task, and tasks that are alike, differ by their numbers.
    twins = jax.tree.map(lambda x: x[jnp.zeros(2, int)], tasks)
    actions = run(twins, lines[[0, 0]], num_runs=2).action.reshape(4, -1)
    assert len(np.unique(actions, axis=0)) == 4
    assert played._cache_size() == 1


def test_runs_of_what_cannot_be_are_refused(params, tasks):
    run = partial(execute, jax.random.key(4), PLACE, params, tasks)
    lines = no_lines(NUM_TASKS)
    with pytest.raises(InputError, match="num_runs: expected a whole number"):
        run(lines, num_runs=0)
    with pytest.raises(InputError, match="first_run: expected"):
        run(lines, num_runs=1, first_run=-1)
    with pytest.raises(InputError, match="working_set: expected lines from 0 to 2820"):
        run(np.where(lines == -1, S * M, lines), num_runs=1)
    with pytest.raises(ShapeError, match="working_set"):
        run(lines[:, :3], num_runs=1)
    with pytest.raises(ShapeError, match="tasks"):
        run(lines[:3], num_runs=1)
    with pytest.raises(ShapeError, match="task_id"):
        run(lines, num_runs=1, task_id=np.arange(3))


def test_demonstrations_are_told_what_the_sizes_say():
    domain = np.arange(4096, dtype=np.int32) % 2
    sizes = ExecutorSizes(right=0.5, without=0.25, foreign=0.0)
    lines = np.asarray(draw_lines(jax.random.key(5), PLACE, domain, sizes))
    assert lines.shape == (4096, NUM_LINES)
    pairs, shown = PLACE.rules[lines], lines >= 0
    assert (~shown.any(axis=1)).mean() == pytest.approx(0.25, abs=0.02)
    for d, name in enumerate(PLACE.domains):
        own = shown & (domain == d)[:, None]
        assert set(pairs[own][:, 0]) == set(PLACE.situations(name))
        assert set(pairs[own][:, 1]) == set(PLACE.moves(name))
        could = own & np.isin(pairs[..., 0], PLACE.rules[list(PLACE.right_lines(name))])
        by_chance = 0.5 / len(PLACE.moves(name))
        is_right = np.isin(lines, PLACE.right_lines(name))[could]
        assert is_right.mean() == pytest.approx(0.5 + by_chance, abs=0.02)
    for row, used in zip(pairs[..., 0], shown, strict=True):
        assert len(set(row[used])) == used.sum()
        assert used[: used.sum()].all()


def test_foreign_lines_are_of_the_whole_language():
    sizes = ExecutorSizes(without=0.0, foreign=1.0)
    lines = draw_lines(jax.random.key(6), PLACE, np.zeros(4096, np.int32), sizes)
    pairs = PLACE.rules[np.asarray(lines)][np.asarray(lines) >= 0]
    assert set(pairs[:, 0]) == set(range(1, S))
    assert set(range(1, M)) <= set(pairs[:, 1])


@settings(deadline=None, derandomize=True)
@given(
    st.lists(
        st.tuples(st.integers(1, S - 1), st.integers(1, M - 1)),
        min_size=1,
        max_size=NUM_LINES,
        unique_by=lambda pair: pair[0],
    )
)
def test_lines_are_read_back_from_markdown(pairs):
    lines = tuple(PLACE.line(*pair) for pair in pairs)
    skill = skill_of(PLACE, "travel", lines)
    assert lines_of(PLACE, parse_skill(render_skill(skill))) == lines


def test_a_skill_in_words():
    skill = skill_of(PLACE, "vehicle", PLACE.right_lines("vehicle")[1:2])
    assert render_skill(skill) == (
        "# Vehicle\n\nRequests in vehicle: what to do when a call does not work.\n\n"
        "## Workflow\n\n1. When a call fails with engine off, call start engine.\n"
    )


def test_the_first_line_of_a_situation_counts():
    lines = (PLACE.line(5, 2), PLACE.line(6, 2), PLACE.line(5, 3))
    assert lines_of(PLACE, Skill("A", "B.", tuple(said(lines)))) == lines[:2]
    assert skill_of(PLACE, "travel", lines).workflow == tuple(said(lines[:2]))


def test_what_cannot_be_said_is_refused():
    step = said([PLACE.line(5, 2)])[0]
    with pytest.raises(SkillError, match=r"workflow 2: expected .* got 'Be kind.'"):
        lines_of(PLACE, Skill("A", "B.", (step, "Be kind.")))
    with pytest.raises(SkillError, match="notes: expected none, got 1"):
        lines_of(PLACE, Skill("A", "B.", (step,), ("Be kind.",)))
    many = [PLACE.line(s, 1) for s in range(1, NUM_LINES + 2)]
    with pytest.raises(SkillError, match=r"at most 8 situations, .* got 9"):
        lines_of(PLACE, Skill("A", "B.", tuple(said(many))))
    with pytest.raises(SkillError, match="at most 8 situations"):
        working_sets([many])
    with pytest.raises(SkillError, match="workflow: expected 1 to 20 texts"):
        skill_of(PLACE, "travel", ())
    for line in (-1, 0, M - 1, PLACE.line(3, 0), S * M):
        with pytest.raises(SkillError, match=f"line 1: expected .* got {line};"):
            skill_of(PLACE, "travel", (line,))
    with pytest.raises(UnknownNameError, match="trading"):
        skill_of(PLACE, "trading", many[:1])


def test_examples_print_what_they_say():
    found = doctest.testmod(skill_lines)
    assert found.attempted and not found.failed


@pytest.mark.slow
def test_a_right_skill_raises_success_and_a_wrong_one_lowers_it():
    """By three standard errors each, with tasks as clusters."""
    params, notes = clone_executor(jax.random.key(0), PLACE, ExecutorSizes())
    assert 0.3 < notes["success"] < 0.7 and notes["loss"] < 1.1
    tasks = PLACE.tasks(jax.random.key(9), 1024, "seen")
    run = partial(execute, jax.random.key(10), PLACE, params, tasks, num_runs=4)
    none = run(no_lines(1024)).success.mean(axis=1)
    right = run(skills_of(tasks, PLACE.right_lines)).success.mean(axis=1)
    wrong = run(skills_of(tasks, PLACE.wrong_lines)).success.mean(axis=1)
    for domain in range(len(PLACE.domains)):
        own = PLACE.domain_of(tasks) == domain
        for better, worse in ((right, none), (none, wrong)):
            gain = (better - worse)[own]
            assert gain.mean() > 3 * gain.std(ddof=1) / np.sqrt(own.sum())
        assert right[own].mean() > 0.8
