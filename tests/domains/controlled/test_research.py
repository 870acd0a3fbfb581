"""The research domain: masks, what each action does, the rubric line by line."""

from collections import deque
from dataclasses import replace

import numpy as np
import pytest

from jerp.bridge.executor import Completion
from jerp.domains.controlled.cited_answer import Memory
from jerp.domains.controlled.cited_rubric import (
    MAX_WORDS,
    PUBLIC,
    WEIGHTS,
    parse_draft,
    public_scores,
)
from jerp.domains.controlled.research import ResearchDomain
from jerp.domains.controlled.research_corpus import words
from jerp.domains.explore import explore
from jerp.harness.actions import NUM_ACTIONS, Action
from jerp.harness.state import NUM_FEATURES
from jerp.records import Task
from tests.domains.cheats import LIMIT, at_random, mean_score, thorough

O, R, T, D, C, V, S = Action  # noqa: E741
DOMAIN = ResearchDomain()


@pytest.fixture(scope="module")
def tasks():
    return DOMAIN.generate(3, 60)


def perfect(task, passages):
    """Answers rightly as soon as the answer is in hand."""
    answer = task.payload["hidden"]["answer"]
    return answer if any(answer in p for p in passages) else "nobody knows"


def step(w, action, answer=perfect):
    """The workspace after a legal action, by a scripted executor."""
    assert DOMAIN.legal(w)[action], f"{Action(action).name} is not legal"
    completion = None
    if DOMAIN.request(w, action) is not None:
        text = answer(w.task, w.passages) if callable(answer) else answer
        completion = Completion(text)
    return DOMAIN.advance(w, action, completion)


def play(task, actions, answer=perfect):
    w = DOMAIN.begin(task, 0)
    for action in actions:
        w = step(w, action, answer)
    return w


TASK = Task(
    "research/-/0",
    "research",
    1,
    "How many arches does Old Harlow Bridge have?",
    {
        "topic": "Harlow Bridge",
        "kind": "number",
        "passages": [
            ["Harlow Bridge has 7 arches.", "Harlow Bridge is painted red."],
            [
                "Old Harlow Bridge was opened in 1733.",
                "Old Harlow Bridge has 9 arches.",
            ],
        ],
        "ladder": [1, 2],
        "topic_ladder": [1],
        "hidden": {"answer": "9", "rivals": ["7"], "source": 2},
    },
)


def verdict(text, hand=(1, 2), task=TASK):
    w = replace(DOMAIN.begin(task, 0), extra=Memory(hand=hand))
    return {c.name: c.score for c in DOMAIN.verify(task, text, w).criteria}


def test_the_oracle_controller_with_a_perfect_executor_scores_one(tasks):
    for task in tasks:
        w = play(task, (O, R, D, C))
        while w.feedback.failed:
            w = step(step(step(w, R), V), C)
        w = step(w, S)
        assert w.verdict.score == 1.0 and w.verdict.success and w.terminated


def test_some_legal_action_remains_on_every_path_and_paths_end(tasks):
    for task in tasks[:6]:
        seen, queue = set(), deque([DOMAIN.begin(task, 0)])
        while queue:
            w = queue.popleft()
            legal = DOMAIN.legal(w)
            assert legal.any() != (w.terminated or w.truncated)
            for action in np.flatnonzero(legal):
                after = step(w, action)
                state = (DOMAIN.anchor(after), after.step, after.terminated)
                if state not in seen:
                    seen.add(state)
                    queue.append(after)


def test_before_observing_one_passage_for_the_topic_and_no_search_or_check():
    w = play(TASK, (R,))
    legal = DOMAIN.legal(w)
    assert legal[O] and legal[D] and not legal[[R, T]].any()
    assert DOMAIN.request(w, D).messages[1].content.splitlines()[-1] == "Harlow Bridge"
    drafted = step(w, D)
    assert not DOMAIN.legal(drafted)[C] and DOMAIN.legal(drafted)[S]


def test_a_draft_needs_a_passage():
    assert not DOMAIN.legal(play(TASK, (O,)))[D]


def test_retrieving_climbs_the_ladder_once():
    first = play(TASK, (O, R))
    assert first.passages == (
        "[1] Harlow Bridge has 7 arches. Harlow Bridge is painted red.",
    )
    second = step(first, R)
    assert second.passages[0] == first.passages[0] and len(second.passages) == 2
    assert not DOMAIN.legal(second)[R]
    assert second.trace[-1].gathers_evidence and second.trace[-1].new_facts == 2


def test_searching_puts_names_before_other_shared_words():
    passages = [
        ["Harlow Bridge has arches, many arches.", "It has 7 arches."],
        ["Old Harlow Bridge crosses the river in 9 spans."],
    ]
    task = replace(TASK, payload=dict(TASK.payload, passages=passages))
    w = play(task, (O, R, R, T))
    assert w.passages == ("[2] Old Harlow Bridge crosses the river in 9 spans.",)
    assert w.support == pytest.approx(3 / 4)


def test_searching_keeps_the_sentences_with_most_of_the_questions_words():
    w = play(TASK, (O, R, R, T))
    assert w.passages == ("[2] Old Harlow Bridge has 9 arches.",)
    assert w.support == pytest.approx(4 / 4) and not DOMAIN.legal(w)[T]
    alone = play(TASK, (O, R, T))
    assert alone.passages == ("[1] Harlow Bridge has 7 arches.",)
    assert alone.support == pytest.approx(3 / 4)
    assert step(alone, R).passages == play(TASK, (O, R, R)).passages


def test_the_prompt_holds_passages_question_and_after_a_failed_check_a_hint():
    w = play(TASK, (O, R))
    request = DOMAIN.request(w, D)
    user = request.messages[1].content
    assert user == f"{w.passages[0]}\n{TASK.prompt}"
    assert request.messages[-1].role == "assistant"
    checked = step(step(w, D, "7"), C)
    assert checked.feedback.failed
    again = DOMAIN.request(checked, V).messages[1].content
    assert again == f"{user}\n{checked.feedback.text}"
    assert "Old Harlow Bridge" in checked.feedback.text


def test_a_revision_asks_the_same_whatever_failed_and_was_rejected():
    answers = (
        "7",
        "7.",
        "12",
        "",
        "I am not sure at all of what to say here",
        "9 or 7",
    )
    drafts = [play(TASK, (O, R, D, C), answer) for answer in answers]
    assert all(w.feedback.failed for w in drafts)
    assert len({DOMAIN.request(w, V) for w in drafts}) == 1
    assert DOMAIN.request(drafts[0], V) != DOMAIN.request(play(TASK, (O, R)), D)


def test_a_revision_that_would_repeat_its_request_is_not_offered():
    w = play(TASK, (O, R, D, C), "7")
    assert DOMAIN.legal(w)[V]
    revised = step(step(w, V, "7"), C)
    assert revised.feedback.failed and not DOMAIN.legal(revised)[V]
    assert DOMAIN.legal(step(revised, R))[V]


def test_a_failed_check_then_retrieval_then_revision_mends_the_answer():
    w = play(TASK, (O, R, D, C, R, V, C), lambda task, p: "9" if len(p) > 1 else "7")
    assert w.draft == "9 [2]" and not w.feedback.failed
    assert w.coverage == 1.0 and w.missing_share == 0.0
    assert step(w, S).verdict.score == 1.0


def test_a_failing_completion_is_an_error_observation_and_the_episode_goes_on():
    w = play(TASK, (O, R))
    for status in ("empty", "refused", "malformed", "truncated"):
        after = DOMAIN.advance(w, D, Completion("", status=status))
        assert after.errors == 1 and after.trace[-1].error and after.draft == ""
        assert DOMAIN.legal(after)[[C, S]].all()


@pytest.mark.parametrize(
    ("text", "draft"),
    [
        (" 9.", "9 [2]"),
        (' "9 arches".', "9 arches [2]"),
        (
            " that Old Harlow Bridge has 9 arches.",
            "that Old Harlow Bridge has 9 arches [2]",
        ),
        (" 7", "7 [1]"),
        (" 8", "8"),
        (" 9 [1]", "9 [2]"),
        (" 7 or 9", "7 or 9"),
        (" Old Harlow Bridge", "Old Harlow Bridge"),
        ("", ""),
    ],
)
def test_the_harness_cites_the_passage_that_holds_the_answer(text, draft):
    assert play(TASK, (O, R, R, D), text).draft == draft


@pytest.mark.parametrize(
    ("draft", "answer", "source"),
    [
        ("9 [2]", "9", 2),
        ("[2] 9", "9", 2),
        ("9", "9", None),
        ("9 [1] [2]", "9", None),
        ("", "", None),
    ],
)
def test_parse_draft(draft, answer, source):
    assert parse_draft(draft) == (answer, source)


def test_weights_sum_to_one_and_correctness_is_at_least_half():
    assert sum(WEIGHTS.values()) == pytest.approx(1.0)
    assert WEIGHTS["correct"] >= 0.5 and set(PUBLIC) < set(WEIGHTS)


@pytest.mark.parametrize(
    ("draft", "scores"),
    [
        ("9 [2]", {"correct": 1, "source": 1, "grounded": 1, "subject": 1, "form": 1}),
        ("nine arches, 9 [2]", {"correct": 1, "grounded": 0, "subject": 0}),
        ("9 [1]", {"correct": 1, "source": 0, "grounded": 0, "form": 1}),
        ("9", {"correct": 1, "source": 0, "grounded": 0, "form": 0}),
        ("9 [3]", {"correct": 1, "source": 0, "form": 0}),
        # Grounded or not: a wrong answer is paid for nothing.
        ("7 [1]", dict.fromkeys(WEIGHTS, 0)),
        ("1733 [2]", dict.fromkeys(WEIGHTS, 0)),
        ("7 or 9 [2]", dict.fromkeys(WEIGHTS, 0)),
        ("19 [2]", {"correct": 0}),
        ("Old Harlow Bridge [2]", {"correct": 0, "grounded": 0, "form": 0}),
        ("red [1]", {"correct": 0, "form": 0}),
        ("9 " + "so " * MAX_WORDS + "[2]", {"correct": 0, "source": 0, "form": 0}),
        ("", dict.fromkeys(WEIGHTS, 0)),
        (None, dict.fromkeys(WEIGHTS, 0)),
    ],
)
def test_rubric_line_by_line(draft, scores):
    got = verdict(draft)
    assert {name: got[name] for name in scores} == scores


@pytest.mark.parametrize(
    ("draft", "public"),
    [
        ("9 [2]", "fgs"),
        ("7 [1]", "fg"),
        ("1733 [2]", "fgs"),
        ("9 [1]", "f"),
        ("red [1]", ""),
        ("", ""),
        (None, ""),
    ],
)
def test_a_check_knows_nothing_of_the_right_answer(draft, public):
    asked = public_scores(TASK, draft, (1, 2))
    assert "".join(name[0] for name in PUBLIC if asked[name]) == public


def test_a_source_not_in_hand_cannot_be_cited():
    assert verdict("9 [2]", hand=(1,))["form"] == 0


@pytest.mark.parametrize(
    ("kind", "good", "bad"),
    [
        ("year", "1733", "33"),
        ("number", "9", "many"),
        ("name", "Anna Tell", "red"),
        ("word", "red", "1733"),
    ],
)
def test_form_wants_the_kind_that_was_asked(kind, good, bad):
    task = replace(TASK, payload=dict(TASK.payload, kind=kind))
    assert public_scores(task, f"{good} [1]", (1,))["form"] == 1
    assert public_scores(task, f"{bad} [1]", (1,))["form"] == 0


def test_a_check_reports_what_the_verifier_will_find_of_a_right_answer(tasks):
    for task in tasks[:12]:
        gold = task.payload["hidden"]["answer"]
        for answer in (perfect, "red", f"by all accounts {gold}", gold):
            w = play(task, (O, R, D, C), answer)
            judged = {c.name: c.score for c in step(w, S).verdict.criteria}
            missing = tuple(name for name in PUBLIC if not judged[name])
            assert w.feedback.failed == bool(w.trace[-1].missing)
            if judged["correct"]:
                assert w.trace[-1].missing == missing
            else:
                assert missing == PUBLIC


def best_wrong_word(workspace, request, rng):
    """The word of the passages in hand that a check likes best among the wrong ones."""
    task, hand = workspace.task, workspace.extra.hand
    gold = words(task.payload["hidden"]["answer"])
    drafts = [
        f"{word} [{n}]"
        for n in hand
        for sentence in task.payload["passages"][n - 1]
        for word in sentence.rstrip(".").split()
        if not set(words(word)) & set(gold)
    ]
    return max(drafts, key=lambda d: sum(public_scores(task, d, hand).values()))


def test_a_wrong_word_earns_nothing_though_the_check_passes_it(tasks):
    assert mean_score(DOMAIN, tasks, best_wrong_word, thorough) == 0
    w = play(TASK, (O, R, R))
    word = best_wrong_word(w, None, None)
    assert word == "1733 [2]" and not step(step(w, D, word), C).feedback.failed


def random_word_of_the_passages(workspace, request, rng):
    return " " + rng.choice(" ".join(workspace.passages).split())


@pytest.mark.parametrize("choose", [thorough, at_random])
def test_a_random_word_of_the_passages_earns_next_to_nothing(tasks, choose):
    assert mean_score(DOMAIN, tasks, random_word_of_the_passages, choose) < LIMIT


def test_requests_within_reach_are_few(tasks):
    """Counted by `python -m pytest -rP`; the worst case is an executor always wrong."""
    executor = Wrong()
    reach = explore(DOMAIN, tasks, (0,), executor)
    print(f"{reach.requests / len(tasks):.1f} requests a task, all answers wrong")
    assert reach.requests <= 10 * len(tasks)
    assert max(t.requests for t in reach.tasks) <= 16


class Wrong:
    """An executor whose every answer fails the check: everything comes into reach."""

    fingerprint = "wrong"

    async def complete(self, requests):
        return [Completion(" nobody knows") for _ in requests]


def test_features_are_in_range_and_follow_the_workspace():
    w = play(TASK, (O, R, T, D, C), "7")
    x = DOMAIN.features(w)
    assert x.shape == (NUM_FEATURES,) and np.abs(x).max() <= 1
    assert DOMAIN.legal(w).shape == (NUM_ACTIONS,)
    assert not np.array_equal(x, DOMAIN.features(step(w, R)))
    assert w.trace[-1].claims == 1 and w.trace[-1].evidence == 1
