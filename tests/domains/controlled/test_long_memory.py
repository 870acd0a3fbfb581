"""The long-memory domain: its memories, masks, what each action does, the rubric."""

import re
from dataclasses import replace

import numpy as np
import pytest

from jerp.bridge.executor import Completion
from jerp.domains.controlled import long_memory_rubric as rubric
from jerp.domains.controlled.long_memory import LongMemoryDomain
from jerp.domains.controlled.long_memory_tasks import NUM_SESSIONS, THINGS, generate
from jerp.domains.controlled.research_corpus import words
from jerp.domains.explore import explore
from jerp.errors import ConfigError
from jerp.harness.actions import Action
from jerp.harness.state import FEATURES
from jerp.records import Task
from tests.domains.cheats import LIMIT, at_random, mean_score, thorough

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
    # Enough for each rule of fairness to have refused a memory.
    return DOMAIN.generate(3, 120)


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


def test_the_ladder_has_as_many_rungs_as_asked_for(tasks):
    (short,) = generate(3, 1, ladder=1)
    assert len(short.payload["ladder"]) == 1
    assert len(tasks[0].payload["ladder"]) == DOMAIN.ladder == 2


def test_memories_are_what_their_difficulty_says(tasks):
    for task in tasks:
        hidden, ladder = task.payload["hidden"], task.payload["ladder"]
        assert len(task.payload["passages"]) == NUM_SESSIONS
        told = rubric.newest_mention(task, range(1, NUM_SESSIONS + 1))
        assert told == hidden["source"]
        assert any(hidden["answer"] in s for s in rubric.mentions(task, told))
        others = " ".join(
            s for n in {*ladder} - {told} for s in task.payload["passages"][n - 1]
        )
        assert set(words(hidden["answer"])).isdisjoint(words(others))
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
    assert legal(play(O, R, T, D)) == {R, C, S}
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


def test_retrieving_after_the_tool_lays_out_whole_sessions_again():
    w = play(O, R, T, R)
    assert [p.split()[0] for p in w.passages] == ["[4]", "[9]", "[21]"]
    assert FILLER[0] in w.passages[2] and T in legal(w)
    assert step(w, T).passages == play(O, R, T).passages


def test_the_tool_passes_a_draft_that_rests_on_the_latest_session():
    w = play(O, R, T, R, D, T, text="556")
    assert w.draft == "556 [21]" and w.support == 1.0
    assert w.feedback is None and V not in legal(w)
    assert w.trace[-1].verify_failed is False and w.trace[-1].new_facts == 0


def test_the_tool_keeps_what_a_check_found_and_a_revision_is_unverified_again():
    # Nine words: grounded in the latest session, but no short answer.
    long = "Ada Holm got another locker, it opens with 556"
    checked = play(O, R, T, R, D, C, text=long)
    assert checked.trace[-1].missing == rubric.PUBLIC
    searched = step(checked, T)
    assert searched.feedback == checked.feedback and searched.support == 1.0
    revised = step(searched, V, "556")
    assert revised.support == 0.5 and revised.revisions == 1
    assert revised.trace[-1].revises and not play(O, R, D).trace[-1].revises
    assert step(revised, S).verdict.score == 1.0


def test_of_two_sessions_with_the_same_value_the_later_one_is_named():
    sessions = list(SESSIONS)
    sessions[8] = ["Ada Penn's locker code is 221.", FILLER[0]]
    task = replace(TASK, payload=dict(TASK.payload, passages=sessions))
    assert play(O, R, R, D, task=task).draft == "221 [9]"
    assert play(O, R, D, task=task).draft == "221 [4]"


def test_the_tool_that_finds_nothing_leaves_the_hand_as_it_is():
    sessions = [*SESSIONS[:3], *[FILLER] * (NUM_SESSIONS - 3)]
    task = replace(TASK, payload=dict(TASK.payload, passages=sessions))
    before, after = play(O, R, task=task), play(O, R, T, task=task)
    assert after.passages == before.passages and after.extra == before.extra
    assert after.support == 0.0 and T not in legal(after)
    assert not after.trace[-1].gathers_evidence


def test_the_tool_fails_a_draft_that_rests_on_an_outdated_session():
    w = play(O, R, D, T)
    assert w.draft == "221 [4]" and w.support == 0.0
    assert w.feedback.failed and V in legal(w)
    assert w.trace[-1].verify_failed and play(O, R, T).trace[-1].verify_failed is None
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


def test_weights_sum_to_one_and_correctness_is_at_least_half():
    assert sum(rubric.WEIGHTS.values()) == pytest.approx(1.0)
    assert rubric.WEIGHTS["correct"] >= 0.5 and set(rubric.PUBLIC) < set(rubric.WEIGHTS)


@pytest.mark.parametrize(
    ("draft", "paid", "public"),
    [
        ("556 [21]", {"correct", "source", "form", "grounded", "newest"}, "fgn"),
        ("it opens with 556 [21]", {"correct", "source", *rubric.PUBLIC}, "fgn"),
        ("now only 556 [21]", {"correct", "source", "form"}, "f"),
        ("556 [4]", {"correct", "form"}, "f"),
        ("556 [20]", {"correct"}, ""),
        ("556 [4] [21]", {"correct"}, ""),
        ("556", {"correct"}, ""),
        ("221 [4]", set(), "fg"),
        ("334 [9]", set(), "fg"),
        ("221, or 556 [21]", set(), "f"),
        # A second value, of which no session in reach or none at all tells.
        ("556 or 999 [21]", set(), "f"),
        ("556 - 1 [21]", set(), "f"),
        ("556 Tuesday [21]", set(), "f"),
        ("556 waffle [21]", set(), "f"),
        ("556 Penn [21]", set(), "f"),
        ("Ada Holm has 556 [21]", {"correct", "source", *rubric.PUBLIC}, "fgn"),
        ("5560 [21]", set(), "f"),
        ("Ada Holm's locker code [21]", set(), ""),
        ("556 and so on and on and on and on [21]", set(), ""),
        ("", set(), ""),
        (None, set(), ""),
    ],
)
def test_rubric_line_by_line(draft, paid, public):
    hand = (4, 9, 21)
    scores = rubric.scores(TASK, draft, hand)
    assert {name for name, score in scores.items() if score} == paid
    asked = rubric.public_scores(TASK, draft, hand)
    assert "".join(name[0] for name in rubric.PUBLIC if asked[name]) == public
    assert scores.keys() == rubric.WEIGHTS.keys()


def test_what_is_newest_is_judged_by_the_sessions_in_hand():
    assert rubric.public_scores(TASK, "221 [4]", (4, 9))["newest"] == 1
    assert rubric.public_scores(TASK, "221 [4]", (4, 9, 21))["newest"] == 0


def test_a_mention_names_the_whole_person_and_the_thing():
    assert [n for n in range(1, NUM_SESSIONS + 1) if rubric.mentions(TASK, n)] == [
        4,
        21,
    ]
    assert rubric.newest_mention(TASK, (4, 9)) == 4
    assert rubric.newest_mention(TASK, (9,)) is None


@pytest.mark.parametrize(
    ("answer", "correct"),
    [
        ("Tuesday", 1),
        # No session tells of the 28th; one of them tells of 334.
        ("Tuesday, July 28th", 1),
        ("Tuesday 334", 0),
        ("Tuesday, not Monday", 0),
        ("Tuesday mint", 0),
    ],
)
def test_an_invented_number_is_no_second_day(answer, correct):
    hidden = {"answer": "Tuesday", "rivals": [], "source": 21}
    payload = dict(TASK.payload, kind="word", hidden=hidden)
    task = replace(TASK, prompt="When does Ada Holm rest?", payload=payload)
    assert rubric.scores(task, answer, (21,))["correct"] == correct


def random_word_of_the_passages(workspace, request, rng):
    return " " + rng.choice(" ".join(workspace.passages or ("",)).split() or [""])


def values(workspace):
    """What the thing that is asked about may be: any value of its kind, or a number."""
    prompt = workspace.task.prompt
    (thing,) = (
        t for t in THINGS if all(part in prompt for part in t.question.split("{p}"))
    )
    return thing.values or tuple(map(str, range(112, 980, 31)))


def values_not_in_hand(workspace, request, rng):
    hand = " ".join(workspace.passages)
    return " " + " ".join([v for v in values(workspace) if v not in hand][:8])


def values_in_hand_and_another(workspace, request, rng):
    """Values of any kind that the sessions in hand tell, and one that they do not."""
    known = {value for thing in THINGS for value in thing.values}
    hand = re.findall(r"\w+", " ".join(workspace.passages))
    found = [
        word for word in hand if word in known or (len(word) == 3 and word.isdigit())
    ]
    other = next(v for v in values(workspace) if v not in hand)
    return " ".join(["", *found[:7], other])


def everything_in_hand(workspace, request, rng):
    return " " + " ".join(workspace.passages)


def first_session(domain, workspace, rng):
    """Reads, retrieves once, drafts, submits."""
    legal = domain.legal(workspace)
    if legal[R] and not workspace.passages:
        return R
    return next(action for action in (O, D, S) if legal[action])


@pytest.mark.parametrize("choose", [thorough, first_session])
@pytest.mark.parametrize(
    "cheat", [values_not_in_hand, values_in_hand_and_another, everything_in_hand]
)
def test_a_list_of_values_earns_nothing(tasks, cheat, choose):
    assert mean_score(DOMAIN, tasks, cheat, choose) == 0


@pytest.mark.parametrize("choose", [thorough, at_random])
def test_a_random_word_of_the_passages_earns_next_to_nothing(tasks, choose):
    assert mean_score(DOMAIN, tasks, random_word_of_the_passages, choose) < LIMIT


def test_another_domains_workspace_is_refused():
    with pytest.raises(TypeError, match=r"a Memory of passages, got \(1, 2\)"):
        DOMAIN.legal(replace(play(O), extra=(1, 2)))


@pytest.mark.parametrize("status", ["empty", "malformed", "truncated"])
def test_an_executor_that_fails_gives_an_observation(status):
    w = play(O, R)
    after = DOMAIN.advance(w, D, Completion("", status))
    assert after.trace[-1].error and after.draft == "" and not after.terminated


def test_features_say_what_is_known_of_the_draft_and_the_hand():
    def known(w):
        x = dict(zip(FEATURES, DOMAIN.features(w).tolist(), strict=True))
        names = ("support", "coverage", "missing_share", "findings", "error_share")
        return [round(x[name], 3) for name in names]

    assert known(play(O)) == [-1, 0, 1, 0, 0]
    assert known(play(O, R, R)) == [-1, 0, 1, 0.4, 0]
    assert known(play(O, R, T)) == [0.5, 0, 1, 0.2, 0]
    assert known(play(O, R, D, T)) == [0, 0, 1, 0.2, 0]
    assert known(play(O, R, R, D, C, text="334")) == [-1, 0.667, 0.333, 0.4, 0]
    failing = DOMAIN.advance(play(O, R), D, Completion("", "empty"))
    assert known(failing) == [-1, 0, 1, 0.2, 0.1]


def test_claims_and_their_evidence_are_kept_for_every_later_step():
    assert [(s.claims, s.evidence) for s in play(O, R, D, C).trace] == [
        *[(0, 0)] * 2,
        *[(1, 1)] * 2,
    ]
    assert play(O, R, D, text="nobody").trace[-1].evidence == 0


def test_features_are_in_range(tasks):
    rng = np.random.default_rng(0)
    for task in tasks[:10]:
        w = DOMAIN.begin(task, 0)
        while not (w.terminated or w.truncated):
            x = DOMAIN.features(w)
            assert np.all(np.abs(x) <= 1) and x.shape == (len(FEATURES),)
            w = step(w, int(rng.choice(np.flatnonzero(DOMAIN.legal(w)))))


def test_reachable_requests_are_few(tasks):
    class Scripted:
        fingerprint = "scripted"

        async def complete(self, requests):
            return [Completion("221") for _ in requests]

    reach = explore(DOMAIN, tasks[:6], [0], Scripted())
    assert max(task.requests for task in reach.tasks) <= 12
