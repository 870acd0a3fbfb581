"""What the optimizer of skills reads and writes, and the place that it writes for."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from experiments.wer.config import OptimizerSizes
from experiments.wer.executor import Runs
from experiments.wer.optimizer import clone_optimizer, optimizer_policy, seen_lines
from experiments.wer.optimizer_words import OptimizerWords, Word
from experiments.wer.places import Place
from experiments.wer.skill_lines import lines_of
from experiments.wer.workplace import ToolsWorkplace
from jerp.envs.tools_tables import OK, STATUSES, WAITING
from jerp.errors import ConfigError
from jerp.runs.skills.work import Evidence, RefinementState
from jerp.skills.document import render_skill
from jerp.storage.skill_runs import Trial

PLACE = Place()
WORDS = OptimizerWords(PLACE)
RIGHT = PLACE.right_lines("travel")
CARD = PLACE.env.language.situations.index("a call fails with no card")
ADD = PLACE.env.language.moves.index("call add card")


def run_of(*steps):
    """One run of one task; a step is request, status and action."""
    fields = np.zeros((1, 1, PLACE.horizon, len(PLACE.env.field_sizes)), np.int32)
    action = np.zeros((1, 1, PLACE.horizon), np.int32)
    for t, (request, status, made) in enumerate(steps):
        fields[0, 0, t, [2, 3, -1]] = (1 + request, status, 1 + status)
        action[0, 0, t] = made
    mask = np.arange(PLACE.horizon)[None, None] < len(steps)
    return Runs(np.zeros((1, 1), np.int32), fields, action, mask)


def test_evidence_by_hand():
    error = STATUSES.index("no card")
    steps = (5, WAITING, 60), (5, error, ADD - 1), (5, OK, 60), (7, WAITING, 0)
    words = WORDS.evidence(run_of(*steps), 0, 0)
    assert WORDS.say(words) == [
        *("request 6", PLACE.env.language.moves[61]),
        *("a call fails with no card", "call add card"),
        *("a call works", PLACE.env.language.moves[61]),
        *("request 8", "end the turn"),
    ]
    assert seen_lines(WORDS, words) == [PLACE.line(CARD, ADD)]


def test_words_are_all_different():
    ids = [*range(1, 1 + len(Word)), *WORDS.firsts]
    assert ids == sorted(set(ids))
    assert len(WORDS.say(range(WORDS.size))) == WORDS.size
    prompt = WORDS.prompt(1, RIGHT, (WORDS.firsts[3],), None)
    said = WORDS.say(prompt[prompt != 0])
    assert said[:2] == ["vehicle", "SKILL"] and said[-3:] == [
        *("SUCCESS", "request 1", "WRITE"),
    ]


def test_the_longest_prompt_and_draft_fit():
    full = [PLACE.line(s, 2) for s in range(3, 11)]
    run = [WORDS.firsts[2]] * (2 * PLACE.horizon)
    prompt = WORDS.prompt(0, full, run, run)
    assert (prompt != 0).all() and len(prompt) == WORDS.num_prompt_tokens
    assert (WORDS.draft(range(1, 9), full) != 0).all()


def test_a_draft_is_read_as_it_was_written():
    found = WORDS.read("travel", [x for x in WORDS.draft([CARD], RIGHT) if x])
    assert found.skill is not None and not found.faults
    assert lines_of(PLACE, found.skill) == RIGHT
    assert (found.reasoning, found.reasoning_tokens) == ("a call fails with no card", 1)


GOOD = [int(x) for x in WORDS.draft([CARD], RIGHT[:2]) if x]
BODY = GOOD.index(Word.BODY)
MANY = WORDS.pairs(PLACE.line(s, 2) for s in range(3, 12))
NOTHING = [WORDS.firsts[1], WORDS.firsts[2]]
"""The situation and the move of padding."""


@pytest.mark.parametrize(
    ("words", "fault"),
    [
        ([], "no_delimiters"),
        (GOOD[:-1], "no_delimiters"),
        (GOOD[1:], "no_delimiters"),
        ([*GOOD, *GOOD], "no_delimiters"),
        ([GOOD[1], GOOD[0], *GOOD[2:]], "order"),
        ([*GOOD[:BODY], 3, *GOOD[BODY:]], "order"),
        ([*GOOD[BODY:], *GOOD[:BODY]], "order"),
        ([*GOOD[: BODY + 1], GOOD[-1]], "malformed_skill"),
        ([*GOOD[:-2], GOOD[-1]], "malformed_skill"),
        ([*GOOD[: BODY + 1], *GOOD[BODY + 2 : BODY + 4], GOOD[-1]], "malformed_skill"),
        ([*GOOD[: BODY + 1], *MANY, GOOD[-1]], "length"),
        ([*GOOD[: BODY + 1], *NOTHING, GOOD[-1]], "malformed_skill"),
    ],
)
def test_what_is_no_skill_has_a_fault(words, fault):
    found = WORDS.read("travel", words)
    assert found.skill is None and found.faults == (fault,)


def test_anything_at_all_can_be_read():
    draws = np.asarray(jax.random.randint(jax.random.key(0), (300, 9), 0, WORDS.size))
    for row in draws:
        assert WORDS.read("vehicle", row.tolist()).faults


@pytest.fixture(scope="module")
def workplace():
    executor = PLACE.policy().init(jax.random.key(0))
    tasks = PLACE.tasks(jax.random.key(1), 6, "train")
    return ToolsWorkplace(jax.random.key(2), WORDS, executor, tasks)


def test_a_run_does_not_depend_on_what_is_beside_it(workplace):
    skill = render_skill(WORDS.read("travel", GOOD).skill)
    trials = [Trial("travel 0", skill, 3), Trial("vehicle 1", None, 4)]
    trials += [Trial("travel 4", skill, 3), Trial("travel 0", None, 3)]
    together = workplace.execute(trials)
    assert [workplace.execute([trial])[0] for trial in trials] == together
    assert all(run.evidence and run.executor_calls for run in together)
    assert together[0].executor_calls <= PLACE.horizon


def test_prompts_show_skill_and_evidence(workplace):
    skill = render_skill(WORDS.read("travel", GOOD).skill)
    states = [
        RefinementState("travel 0"),
        RefinementState(
            "travel 0", skill, Evidence("a/0", [30]), Evidence("a/1", [31])
        ),
    ]
    cold, warm = workplace.prompts(states)
    np.testing.assert_array_equal(cold, WORDS.prompt(0, ()))
    np.testing.assert_array_equal(warm, WORDS.prompt(0, RIGHT[:2], [30], [31]))
    assert workplace.read("travel 0", np.array(GOOD), np.ones(len(GOOD), bool)).skill


def test_of_a_share_of_states_the_runs_are_exchanged(workplace):
    """Always of the same ones; the others are shown as they were."""
    tasks = PLACE.tasks(jax.random.key(1), 6, "train")
    executor = PLACE.policy().init(jax.random.key(0))
    skill = render_skill(WORDS.read("travel", GOOD).skill)
    states = [
        RefinementState(
            f"travel {2 * (i % 3)}",
            skill,
            Evidence(f"{i}/0", [30]),
            Evidence(f"{i}/1", [31]),
        )
        for i in range(300)
    ]
    misled = ToolsWorkplace(jax.random.key(2), WORDS, executor, tasks, misled=0.1)
    assert misled.fingerprint != workplace.fingerprint
    found, right = misled.prompts(states), workplace.prompts(states)
    wrong = WORDS.prompt(0, RIGHT[:2], [31], [30])
    differs = (found != right).any(axis=1)
    np.testing.assert_array_equal(found[differs], np.tile(wrong, (differs.sum(), 1)))
    assert 15 <= differs.sum() <= 47  # three standard errors about 30
    np.testing.assert_array_equal(misled.prompts(states[::-1])[::-1], found)


def test_places_are_told_apart(workplace):
    tasks = PLACE.tasks(jax.random.key(1), 6, "train")
    executor = PLACE.policy().init(jax.random.key(0))
    same = ToolsWorkplace(jax.random.key(2), WORDS, executor, tasks)
    other = ToolsWorkplace(jax.random.key(3), WORDS, executor, tasks)
    assert workplace.fingerprint == same.fingerprint != other.fingerprint


@pytest.mark.slow
def test_a_clone_drafts_what_can_be_read(workplace):
    executor = PLACE.policy().init(jax.random.key(0))
    params, noted = clone_optimizer(
        jax.random.key(5), WORDS, executor, OptimizerSizes()
    )
    assert np.isfinite(noted["loss"])
    policy = optimizer_policy(WORDS)
    prompts = jnp.asarray(workplace.prompts([RefinementState("travel 0")] * 64))
    keys = jax.random.split(jax.random.key(6), 64)
    drawn = jax.device_get(jax.jit(policy.act)(params, (), keys, prompts, None)[1])
    read = [
        workplace.read("travel 0", *x)
        for x in zip(drawn.tokens, drawn.token_mask, strict=True)
    ]
    assert np.mean([not found.faults for found in read]) > 0.7
    assert len({found.skill for found in read}) > 32


@pytest.mark.parametrize("change", [{"most": 0}, {"seen": 1.5}, {"epochs": 0}])
def test_bad_sizes_name_themselves(change):
    with pytest.raises(ConfigError, match=next(iter(change))):
        OptimizerSizes(**change)
