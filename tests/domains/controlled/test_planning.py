"""The planning domain: its plans, masks, what each action does, the rubric."""

from itertools import permutations

import numpy as np
import pytest

from jerp.bridge.executor import Completion
from jerp.domains.controlled.planning import PlanningDomain
from jerp.domains.controlled.planning_schedule import (
    late_jobs,
    parse_order,
    rules_broken,
    schedule,
    sorted_rules,
)
from jerp.domains.explore import explore
from jerp.errors import ConfigError
from jerp.harness.actions import Action
from jerp.records import Task

O, R, T, D, C, V, S = Action  # noqa: E741
DOMAIN = PlanningDomain()

# Dig takes 1 hour, then two crews share sow 3, rake 2 and water 1.
PLAN = {
    "trade": "garden",
    "jobs": ["water", "rake", "sow", "dig"],
    "rules": [["dig", "sow"], ["dig", "rake"], ["dig", "water"]],
    "words": ["sow after dig", "dig before rake", "water after dig"],
    "hours": {"dig": 1, "sow": 3, "rake": 2, "water": 1},
    "crews": 2,
    "deadlines": {"water": 2},
}
TASK = Task("planning/-/0", "planning", 2, "Put the jobs in order.", PLAN)
LATE = "dig, sow, rake, water"
GOOD = "dig, water, sow, rake"
BROKEN = "sow, dig, rake, water"


@pytest.fixture(scope="module")
def tasks():
    return DOMAIN.generate(3, 60)


def step(w, action, text):
    assert DOMAIN.legal(w)[action], f"{Action(action).name} is not legal"
    wanted = DOMAIN.request(w, action) is not None
    return DOMAIN.advance(w, action, Completion(text) if wanted else None)


def play(*actions, text=GOOD):
    w = DOMAIN.begin(TASK, 0)
    for action in actions:
        w = step(w, action, text)
    return w


def legal(w):
    return {Action(a) for a in np.flatnonzero(DOMAIN.legal(w))}


def asked(w, action):
    return DOMAIN.request(w, action).messages[1].content


def test_schedule_by_hand():
    spans = schedule(PLAN, LATE.split(", "))
    assert spans == {"dig": (0, 1), "sow": (1, 4), "rake": (1, 3), "water": (3, 4)}
    assert late_jobs(PLAN, LATE.split(", ")) == ["water"]
    assert late_jobs(PLAN, GOOD.split(", ")) == []
    broken = rules_broken(PLAN, BROKEN.split(", "))
    assert [list(rule) for rule in broken] == [["dig", "sow"]]


def test_a_schedule_never_runs_more_jobs_than_crews(tasks):
    for task in tasks[:12]:
        plan = task.payload
        for order in permutations(plan["jobs"]):
            spans = schedule(plan, order).values()
            for hour in range(max(span.end for span in spans)):
                running = sum(span.start <= hour < span.end for span in spans)
                assert running <= plan["crews"]


@pytest.mark.parametrize(
    "text", ["", "dig, sow", "dig, dig, sow, rake, water", "nothing at all"]
)
def test_an_order_names_every_job_once(text):
    assert parse_order(PLAN["jobs"], text) is None


def test_sorted_rules_keep_the_deadline_where_it_is_known():
    assert sorted_rules(PLAN, due=True)[0] == ("dig", "water")
    places = [then for _, then in sorted_rules(PLAN, due=True)]
    assert not late_jobs(PLAN, ["dig", *places])


def test_a_generated_task_is_pinned():
    (task,) = DOMAIN.generate(7, 1)
    assert task.key == "planning/7/0000" and task.difficulty == 0
    assert task.payload["rules"] == [
        ["row", "swim"],
        ["swim", "fetch"],
        ["fetch", "rest"],
    ]
    assert task.payload["jobs"] == ["rest", "fetch", "row", "swim"]


def test_fewer_tasks_are_a_prefix_and_difficulties_take_turns(tasks):
    assert DOMAIN.generate(3, 4) == tasks[:4]
    assert [t.difficulty for t in tasks[:6]] == [0, 1, 2, 0, 1, 2]
    with pytest.raises(ConfigError, match="num_tasks"):
        DOMAIN.generate(3, 0)


def test_every_plan_can_be_kept_but_by_no_fixed_order(tasks):
    for task in tasks:
        plan, jobs = task.payload, task.payload["jobs"]
        kept = [o for o in permutations(jobs) if not rules_broken(plan, o)]
        in_time = [o for o in kept if not late_jobs(plan, o)]
        assert in_time
        if task.difficulty == 2:
            assert len(in_time) < len(kept)
        for order in (jobs, jobs[::-1], sorted(jobs), sorted(jobs)[::-1]):
            assert tuple(order) not in kept
            assert DOMAIN.verify(task, ", ".join(order), play()).score == 0


def test_masks():
    assert legal(play()) == {O, D}
    assert legal(play(O)) == {R, T, D}
    assert legal(play(O, R)) == {T, D}
    assert legal(play(O, R, T)) == {D}
    assert legal(play(D)) == {S}
    assert legal(play(O, D)) == {T, C, S}
    assert legal(play(O, D, C)) == {T, S}
    assert legal(play(O, D, C, S)) == set()


def test_a_draft_before_the_rules_are_read_sees_the_names_alone():
    assert asked(play(), D).endswith("Jobs: water, rake, sow, dig")
    assert asked(play(O), D).endswith(f"Rules: {', '.join(PLAN['words'])}")
    assert DOMAIN.request(play(O), R) is None


def test_the_tool_sorts_and_the_sheet_changes_how():
    plain, due = asked(play(O, T), D), asked(play(O, R, T), D)
    assert "after" not in plain.splitlines()[-1]
    assert due.splitlines()[-1].startswith("Rules: dig before water")


def test_a_check_names_the_broken_rule_and_a_revision_asks_forwards():
    w = play(O, D, C, text=BROKEN)
    assert "dig before sow" in w.trace[-1].missing
    assert w.missing_share > 0 and V in legal(w)
    assert "First dig, then sow." in asked(w, V)
    assert BROKEN not in asked(w, V)
    assert step(step(w, V, GOOD), S, "").verdict.score == 1.0


def test_a_check_does_not_see_the_deadline_and_the_tool_does():
    assert V not in legal(play(O, D, C, text=LATE))
    w = play(O, D, T, text=LATE)
    assert w.trace[-1].verify_failed and V in legal(w)
    assert "Water as early as can be." in asked(w, V)


def test_a_revision_is_never_asked_the_same_twice():
    w = play(O, D, C, V, C, text=BROKEN)
    assert V not in legal(w)


@pytest.mark.parametrize(
    ("text", "score"),
    [(GOOD, 1.0), (LATE, 0.25), (BROKEN, 0.0), ("", 0.0), (f"so {GOOD}", 0.9)],
)
def test_a_criterion_pays_only_where_those_it_builds_on_hold(text, score):
    verdict = play(O, D, S, text=text).verdict
    assert verdict.score == pytest.approx(score)
    assert verdict.success == (score >= 0.9)


@pytest.mark.parametrize("status", ["empty", "malformed", "truncated"])
def test_an_executor_that_fails_gives_an_observation(status):
    after = DOMAIN.advance(play(O), D, Completion("", status))
    assert after.trace[-1].error and after.draft == "" and not after.terminated
    assert step(after, C, "").feedback.text == "Name all 4 jobs once."


def test_features_are_in_range(tasks):
    rng = np.random.default_rng(0)
    for task in tasks[:12]:
        w = DOMAIN.begin(task, 0)
        while not (w.terminated or w.truncated):
            x = DOMAIN.features(w)
            assert x.shape == (18,) and np.all(np.abs(x) <= 1)
            w = step(w, int(rng.choice(np.flatnonzero(DOMAIN.legal(w)))), "no plan")
        assert np.all(np.abs(DOMAIN.features(w)) <= 1)


def test_reachable_requests_are_few(tasks):
    class Scripted:
        fingerprint = "scripted"

        async def complete(self, requests):
            return [Completion("no plan") for _ in requests]

    reach = explore(DOMAIN, tasks[:6], [0], Scripted())
    assert max(task.requests for task in reach.tasks) <= 12
