"""The long-memory domain: its memories, masks, what each action does, the rubric."""

import numpy as np
import pytest

from jerp.bridge.executor import Completion
from jerp.domains.controlled import long_memory_rubric as rubric
from jerp.domains.controlled.long_memory import LongMemoryDomain
from jerp.domains.controlled.long_memory_tasks import NUM_SESSIONS
from jerp.domains.explore import explore
from jerp.errors import ConfigError
from jerp.harness.actions import NUM_ACTIONS, Action
from jerp.records import Task

O, R, T, D, C, V, S = Action  # noqa: E741
DOMAIN = LongMemoryDomain()

FILLER = ["Rosa Cole likes rain.", "Ivo Lind was late."]
SESSIONS = [FILLER] * NUM_SESSIONS
SESSIONS[3] = ["Ada Holm's locker code is 221.", "Ivo Lind's cat is called Waffle."]
SESSIONS[8] = ["Ada Holm's cat is called Tango.", "Ada Penn's locker code is 334."]
SESSIONS[20] = ["Ada Holm got another locker, it opens with 556.", FILLER[0]]
TASK = Task(
    "long-memory/-/0",
    "long-memory",
    2,
    "What is Ada Holm's locker code?",
    {
        "kind": "number",
        "opening": "Ada Holm's locker code is",
        "passages": SESSIONS,
        "ladder": [4, 9],
        "hidden": {"answer": "556", "rivals": ["221", "334"], "source": 21},
    },
)


@pytest.fixture(scope="module")
def tasks():
    return DOMAIN.generate(3, 30)


def step(w, action, text="221"):
    assert DOMAIN.legal(w)[action], f"{Action(action).name} is not legal"
    wanted = DOMAIN.request(w, action) is not None
    return DOMAIN.advance(w, action, Completion(text) if wanted else None)


def play(*actions, text="221", task=TASK):
    w = DOMAIN.begin(task, 0)
    for action in actions:
        w = step(w, action, text)
    return w


def legal(w):
    return {Action(a) for a in np.flatnonzero(DOMAIN.legal(w))}


def test_a_generated_task_is_pinned():
    (task,) = DOMAIN.generate(7, 1)
    assert task.key == "long-memory/7/0000" and task.difficulty == 0
    assert task.prompt == "What is Hugo Cole's locker code?"
    assert task.payload["ladder"] == [2, 5]
    assert task.payload["hidden"] == {"answer": "440", "rivals": ["394"], "source": 2}


def test_fewer_tasks_are_a_prefix_and_difficulties_take_turns(tasks):
    assert DOMAIN.generate(3, 4) == tasks[:4]
    assert [t.difficulty for t in tasks[:6]] == [0, 1, 2, 0, 1, 2]
    with pytest.raises(ConfigError, match="num_tasks"):
        DOMAIN.generate(3, 0)


def test_memories_are_what_their_difficulty_says(tasks):
    for task in tasks:
        hidden, ladder = task.payload["hidden"], task.payload["ladder"]
        assert len(task.payload["passages"]) == NUM_SESSIONS
        told = rubric.newest_mention(task, range(1, NUM_SESSIONS + 1))
        assert told == hidden["source"]
        assert any(hidden["answer"] in s for s in rubric.mentions(task, told))
        if task.difficulty == 0:
            assert ladder[0] == hidden["source"]
        elif task.difficulty == 1:
            assert hidden["source"] in ladder and hidden["rivals"]
        else:
            earlier = [n for n in ladder if n < told and rubric.mentions(task, n)]
            assert earlier, "the outdated session comes into hand first or second"


def test_masks():
    assert legal(play()) == {O}
    assert legal(play(O)) == {R, D}
    assert legal(play(O, R)) == {R, T, D}
    assert legal(play(O, R, R)) == {T, D}
    assert legal(play(O, R, D)) == {R, T, C, S}
    assert legal(play(O, R, D, C)) == {R, T, S}
    assert legal(play(O, R, D, C, S)) == set()


def test_the_request_is_the_question_over_the_hand_and_opens_the_answer():
    system, user, assistant = DOMAIN.request(play(O, R), D).messages
    assert user.content == (
        "[4] Ada Holm's locker code is 221. Ivo Lind's cat is called Waffle.\n"
        "What is Ada Holm's locker code?"
    )
    assert assistant.content == "Ada Holm's locker code is"
    assert system.role == "system"
    assert DOMAIN.request(play(O), R) is None


def test_the_tool_brings_the_correction_and_keeps_it_alone():
    w = play(O, R, T)
    assert w.passages == ("[21] Ada Holm got another locker, it opens with 556.",)
    assert (w.support, w.tested) == (0.5, True)
    assert w.trace[-1].new_facts == 1 and w.trace[-1].gathers_evidence


def test_the_tool_fails_a_draft_that_rests_on_an_outdated_session():
    w = play(O, R, D, T)
    assert w.draft == "221 [4]" and w.support == 0.0
    assert w.feedback.failed and V in legal(w)
    right = step(w, V, "556.")
    assert right.draft == "556 [21]"
    assert step(right, S).verdict.score == 1.0


def test_a_check_that_finds_nothing_leaves_nothing_to_revise():
    # 221 is grounded, and the newest in hand: only the tool knows better.
    w = play(O, R, D, C)
    assert (w.coverage, w.missing_share) == (1.0, 0.0)
    assert V not in legal(w)
    found = play(O, R, R, D, C, text="334")
    assert found.trace[-1].missing == ("newest",) and V in legal(found)


def test_a_failed_check_asks_again_with_a_hint_and_never_the_same():
    w = play(O, R, D, C, text="nobody knows")
    assert w.trace[-1].missing == ("form", "grounded", "newest")
    hint = "Copy a number from the latest note about Ada Holm."
    assert DOMAIN.request(w, V).messages[1].content.endswith(hint)
    again = step(step(w, V, "still nothing"), C)
    assert V not in legal(again)


@pytest.mark.parametrize(
    ("text", "score"),
    [("556", 1.0), ("221", 0.0), ("556 or 221", 0.0), ("", 0.0), ("556 556", 1.0)],
)
def test_only_what_holds_now_is_paid(text, score):
    assert play(O, R, T, D, S, text=text).verdict.score == score


def test_a_right_answer_without_its_session_is_paid_for_the_answer_alone():
    # 556 is in no session in hand: no source, not grounded, no good form.
    verdict = play(O, R, D, S, text="556").verdict
    assert verdict.score == pytest.approx(0.6) and not verdict.success


@pytest.mark.parametrize("status", ["empty", "malformed", "truncated"])
def test_an_executor_that_fails_gives_an_observation(status):
    w = play(O, R)
    after = DOMAIN.advance(w, D, Completion("", status))
    assert after.trace[-1].error and after.draft == "" and not after.terminated


def test_features_are_in_range_and_what_can_be_reached_is_little(tasks):
    rng = np.random.default_rng(0)
    for task in tasks[:10]:
        w = DOMAIN.begin(task, 0)
        while not (w.terminated or w.truncated):
            x = DOMAIN.features(w)
            assert np.all(np.abs(x) <= 1) and x.shape == (18,)
            w = step(w, int(rng.choice(np.flatnonzero(DOMAIN.legal(w)))))
    assert NUM_ACTIONS == 7


def test_reachable_requests_are_few(tasks):
    class Scripted:
        fingerprint = "scripted"

        async def complete(self, requests):
            return [Completion("221") for _ in requests]

    reach = explore(DOMAIN, tasks[:6], [0], Scripted())
    assert max(task.requests for task in reach.tasks) <= 12
