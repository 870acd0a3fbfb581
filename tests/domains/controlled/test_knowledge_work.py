"""The knowledge-work domain: masks, what each action does, what is asked when."""

import itertools
import re
from collections import deque
from dataclasses import replace

import numpy as np
import pytest

from jerp.bridge.executor import Completion
from jerp.domains.controlled.knowledge_work import KnowledgeWorkDomain
from jerp.domains.controlled.knowledge_work_tasks import MONTHS, WORDS
from jerp.domains.explore import explore
from jerp.harness.actions import NUM_ACTIONS, Action
from jerp.harness.state import NUM_FEATURES
from tests.domains.cheats import LIMIT, mean_score, thorough
from tests.domains.controlled.knowledge_work_task import GOOD, TASK

O, R, T, D, C, V, S = Action  # noqa: E741
DOMAIN = KnowledgeWorkDomain()


@pytest.fixture(scope="module")
def tasks():
    return DOMAIN.generate(3, 30)


def perfect(w):
    """Completes what the harness began, rightly where the notes in hand say it."""
    figures = w.task.payload["hidden"]["figures"]
    known = {
        s: figure if any(figure in passage for passage in w.passages) else "unknown"
        for s, figure in figures.items()
    }
    if w.draft is not None:
        section = next(
            s for s in w.extra.faulty if (w.extra.rungs, s) not in w.extra.asked
        )
        return f" {known[section]}"
    if not w.observed:
        return " a building: to be built"
    first, *rest = known
    return "\n".join((f" {known[first]}", *(f"- {s}: {known[s]}" for s in rest)))


def step(w, action, answer=perfect, status="ok"):
    """The workspace after a legal action, by a scripted executor."""
    assert DOMAIN.legal(w)[action], f"{Action(action).name} is not legal"
    completion = None
    if DOMAIN.request(w, action) is not None:
        text = answer(w) if callable(answer) else answer
        completion = Completion(text, status)
    return DOMAIN.advance(w, action, completion)


def play(task, actions, answer=perfect):
    w = DOMAIN.begin(task, 0)
    for action in actions:
        w = step(w, action, answer)
    return w


def user(w, action):
    return DOMAIN.request(w, action).messages[1].content


def begun(w, action):
    assert DOMAIN.request(w, action).messages[2].role == "assistant"
    return DOMAIN.request(w, action).messages[2].content


NOTE_1 = (
    "[1] Old Harlow Ferry (superseded): "
    "The budget is 90 crowns. Anna Tell leads the work."
)
NOTE_2 = "[2] Old Harlow Ferry: The budget is 340 crowns. Oda Holm leads the work."
NOTE_3 = "[3] Old Harlow Ferry: The colour is red. It has 55 visitors a day."
WRONG = " 90 crowns\n- manager: Anna Tell\n- colour: blue"


def test_a_perfect_executor_earns_one_with_all_notes_and_no_check(tasks):
    for task in tasks:
        w = play(task, (O, R, R, D, C, T, S))
        assert w.verdict.score == 1.0 and w.verdict.success and w.terminated
        assert not w.feedback.failed and w.coverage == 1 and w.support == 1


def test_a_check_tells_whether_the_second_rung_is_needed(tasks):
    wants = [play(task, (O, R, D, C)) for task in tasks]
    assert {w.feedback.failed for w in wants} == {True, False}
    for w in wants:
        while w.feedback.failed:
            w = step(step(step(w, R) if DOMAIN.legal(w)[R] else w, V), C)
        assert step(w, S).verdict.score == 1.0


def test_some_legal_action_remains_on_every_path_and_paths_end():
    seen, queue = set(), deque([DOMAIN.begin(TASK, 0)])
    while queue:
        w = queue.popleft()
        legal = DOMAIN.legal(w)
        assert legal.any() != (w.terminated or w.truncated)
        for action in np.flatnonzero(legal):
            after = step(w, action, WRONG)
            state = (DOMAIN.anchor(after), after.step, after.terminated)
            if state not in seen:
                seen.add(state)
                queue.append(after)


def test_before_observing_one_rung_and_a_briefing_of_unknown_sections():
    w = play(TASK, (R,))
    legal = DOMAIN.legal(w)
    assert legal[O] and legal[D] and not legal[[R, T]].any()
    assert user(w, D).splitlines()[-1] == "Briefing on Old Harlow Ferry."
    assert begun(w, D) == "Briefing on Old Harlow Ferry\n-"
    drafted = step(w, D, " colour: red")
    assert drafted.draft == "- colour: red"
    assert not DOMAIN.legal(drafted)[[C, T, V, R]].any()
    assert DOMAIN.legal(step(drafted, O))[[C, T, R]].all()


def test_a_draft_needs_notes():
    assert not DOMAIN.legal(play(TASK, (O,)))[D]


def test_retrieving_climbs_the_ladder_and_reopens_check_and_cross_check():
    w = play(TASK, (O, R))
    assert w.passages == (NOTE_1, NOTE_2) and w.findings == 4
    assert w.trace[-1].new_facts == 4 and w.trace[-1].gathers_evidence
    checked = step(step(step(w, D), C), T)
    assert not DOMAIN.legal(checked)[[C, T]].any()
    more = step(checked, R)
    assert more.passages == (NOTE_1, NOTE_2, NOTE_3)
    assert DOMAIN.legal(more)[[C, T, V]].all() and not DOMAIN.legal(more)[R]


def test_a_draft_shows_all_notes_and_begins_with_the_first_section():
    w = play(TASK, (O, R))
    assert user(w, D) == f"{NOTE_1}\n{NOTE_2}\n{TASK.prompt}"
    assert begun(w, D) == "Briefing on Old Harlow Ferry\n- budget:"


def test_lines_are_cited_by_the_first_note_that_holds_their_words():
    w = play(
        TASK, (O, R, D), " 340 crowns\n- Manager: Anna Tell.\n- colour: blue\n- x: y"
    )
    assert (
        w.draft == "- budget: 340 crowns [2]\n- manager: Anna Tell [1]\n- colour: blue"
    )
    assert w.trace[-1].claims == 3 and w.trace[-1].evidence == 2


def test_a_revision_rewrites_the_first_line_at_fault_and_keeps_the_others():
    w = play(TASK, (O, R, D, C), " 340 crowns\n- manager: Anna Tell\n- colour: blue")
    assert w.feedback.text == "at fault: manager, colour"
    # The word manager is in no note: all current ones in hand are shown.
    assert user(w, V) == f"{NOTE_2}\nBriefing on Old Harlow Ferry: manager."
    assert begun(w, V) == "Briefing on Old Harlow Ferry\n- manager:"
    revised = step(w, V, " Oda Holm\n")
    assert revised.draft == (
        "- budget: 340 crowns [2]\n- manager: Oda Holm [2]\n- colour: blue"
    )
    assert revised.revisions == 1 and revised.trace[-1].revises
    assert not DOMAIN.legal(revised)[V] and DOMAIN.legal(revised)[[C, T]].all()


def test_a_revision_shows_the_sentences_that_name_its_section():
    w = play(TASK, (O, R, R, D, C), WRONG)
    assert user(w, V) == (
        "[2] Old Harlow Ferry: The budget is 340 crowns.\n"
        "Briefing on Old Harlow Ferry: budget."
    )


def test_a_line_is_rewritten_once_from_the_same_notes():
    w = play(TASK, (O, R, D, C, V, C), lambda w: WRONG if w.draft is None else " 91")
    assert w.feedback.text == "at fault: budget, manager, colour"
    assert begun(w, V).endswith("- manager:")
    assert begun(step(w, R), V).endswith("- budget:")
    last = step(step(w, V, " Oda Holm"), C)
    assert last.feedback.failed and last.revisions == 2 and not DOMAIN.legal(last)[V]


def test_without_a_section_left_to_rewrite_a_revision_is_not_offered():
    draft = " 340 crowns\n- manager: Oda Holm\n- colour: blue"
    w = play(TASK, (O, R, D, C), draft)
    again = step(step(w, V, "blue"), C)
    assert again.feedback.failed and not DOMAIN.legal(again)[V]
    assert DOMAIN.legal(step(again, R))[V]


def test_a_revision_asks_the_same_whatever_was_drafted():
    drafts = (WRONG, "", " 90", " 340 million [2]", "budget: - :", "\n\n- budget: 9")
    asked = {DOMAIN.request(play(TASK, (O, R, D, C), text), V) for text in drafts}
    assert len(asked) == 1


def test_the_cross_check_finds_a_figure_of_another_section_and_the_check_a_wrong_note():
    mixed = " 340 crowns\n- manager: Anna Tell\n- colour: 55"
    w = play(TASK, (O, R, R, D), mixed.replace("- colour: 55", "- colour: visitors"))
    assert step(w, T).feedback.text == "at fault: colour"
    assert step(w, T).support == pytest.approx(2 / 3)
    assert step(w, T).trace[-1].verify_failed and step(w, T).trace[-1].tool_valid
    assert step(w, C).feedback.text == "at fault: manager"
    assert step(w, C).trace[-1].missing == ("current: manager",)
    assert step(w, C).coverage == pytest.approx(8 / 9)
    both = {step(step(w, a), b).feedback.text for a, b in ((C, T), (T, C))}
    assert both == {"at fault: manager, colour"}


def test_nothing_at_fault_leaves_nothing_to_revise():
    w = play(TASK, (O, R, R, D, T, C), GOOD)
    assert not w.feedback.failed and w.trace[-2].verify_failed is False
    assert not DOMAIN.legal(w)[V] and w.missing_share == 0


@pytest.mark.parametrize("status", ["empty", "refused", "malformed", "truncated"])
@pytest.mark.parametrize("text", ["", "\n", ":::", " 340 [999999]", "\x00[²]"])
def test_a_failing_completion_is_an_observation_and_the_episode_goes_on(status, text):
    w = step(play(TASK, (O, R)), D, text, status)
    failed = status != "truncated"
    assert w.trace[-1].error == failed and w.errors == failed
    revised = step(step(w, C), V, text, status)
    assert revised.trace[-1].error == failed
    assert DOMAIN.legal(revised)[[C, S]].all()
    assert step(revised, S).verdict.score < 1


def test_the_workspace_of_another_domain_is_refused():
    with pytest.raises(TypeError, match="knowledge-work Memory"):
        DOMAIN.legal(replace(DOMAIN.begin(TASK, 0), extra=None))


class Wrong:
    """An executor whose every answer fails the check: everything comes into reach."""

    fingerprint = "wrong"

    async def complete(self, requests):
        return [Completion(" nobody knows") for _ in requests]


def test_requests_within_reach_are_few(tasks):
    """Counted by `python -m pytest -rP`; the worst case is an executor always wrong."""
    reach = explore(DOMAIN, tasks[:6], (0,), Wrong())
    print(f"{reach.requests / 6:.1f} requests a task, all answers wrong")
    assert max(t.requests for t in reach.tasks) <= 9
    assert max(t.states for t in reach.tasks) <= 300


def in_each_line(w, said):
    """A briefing that says `said(section)` in each line, however begun."""
    first, *rest = w.task.payload["sections"]
    return "\n".join((f" {said(first)}", *(f"- {s}: {said(s)}" for s in rest)))


def sentences_in_turn(w, request, rng):
    """Copies a sentence of the notes into each line, in their order."""
    notes = [passage.split(": ", 1)[1] for passage in w.passages]
    found = itertools.cycle(s for note in notes for s in note.split(". "))
    return in_each_line(w, lambda section: next(found))


def everything_in_each_line(w, request, rng):
    return in_each_line(w, lambda section: " ".join(w.passages))


VALUES = {
    "number": r"\b\d{2,3}\b",
    "date": rf"\d+ (?:{'|'.join(MONTHS)})",
    "name": r"[A-Z]\w+ [A-Z]\w+",
    "word": "|".join(word for values in WORDS.values() for word in values),
}


def values(w, kind):
    """The values of a kind that the notes state, each once."""
    notes = " ".join(passage.split(": ", 1)[1] for passage in w.passages)
    return list(dict.fromkeys(re.findall(VALUES[kind], notes)))


def several_of_the_kind(w, request, rng):
    """As many values of the section's kind as fit into four words."""

    def said(section):
        kind = w.task.payload["sections"][section]
        return " ".join(values(w, kind)[: 2 if kind in ("date", "name") else 4])

    return in_each_line(w, said)


def one_more_of_the_kind(w, request, rng):
    """A value of the section's kind and one that the notes do not state, or more."""
    more = {"number": "999", "date": "1 May", "name": "Jo Doe", "word": "red oak"}

    def said(section):
        kind = w.task.payload["sections"][section]
        return " ".join((*values(w, kind)[:1], more[kind]))

    return in_each_line(w, said)


def one_of_each_kind(w, request, rng):
    said = " ".join(v for k in ("number", "word", "name") for v in values(w, k)[:1])
    return in_each_line(w, lambda section: said)


@pytest.mark.parametrize(
    "cheat",
    [
        sentences_in_turn,
        everything_in_each_line,
        several_of_the_kind,
        one_of_each_kind,
    ],
)
def test_notes_copied_without_reading_earn_next_to_nothing(cheat):
    assert mean_score(DOMAIN, DOMAIN.generate(3, 150), cheat, thorough) < LIMIT


def first_rung(domain, w, rng):
    """Reads, retrieves once, drafts, submits."""
    legal = domain.legal(w)
    order = (O, D, S) if w.passages else (O, R)
    return next(action for action in order if legal[action])


@pytest.mark.parametrize("choose", [thorough, first_rung])
def test_two_values_in_each_line_earn_nothing(choose):
    tasks = DOMAIN.generate(3, 150)
    assert mean_score(DOMAIN, tasks, one_more_of_the_kind, choose) == 0


def test_features_are_in_range_and_follow_the_workspace():
    w = play(TASK, (O, R, D, T, C), WRONG)
    x = DOMAIN.features(w)
    assert x.shape == (NUM_FEATURES,) and np.abs(x).max() <= 1
    assert DOMAIN.legal(w).shape == (NUM_ACTIONS,)
    assert not np.array_equal(x, DOMAIN.features(step(w, R)))
