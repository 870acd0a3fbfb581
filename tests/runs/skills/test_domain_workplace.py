"""Skills that an executor follows on the tasks of a domain; scripts stand in for it."""

from dataclasses import replace

import numpy as np
import pytest

from jerp.bridge.executor import Message
from jerp.bridge.scripted import ScriptedExecutor
from jerp.bridge.store import ResponseStore, StoredExecutor
from jerp.errors import ConfigError, ExecutorError
from jerp.harness.actions import Action
from jerp.runs.skills.domain_workplace import (
    DRAFT_ONCE,
    DRAFT_TEST_REVISE,
    DomainWorkplace,
)
from jerp.runs.skills.draft_prompt import DraftPrompts, answer_text
from jerp.runs.skills.skilled_domain import SkilledDomain, skilled_task, with_skill
from jerp.runs.skills.work import (
    Evidence,
    RefinementState,
    Trial,
    check_verifier,
    executed,
)
from jerp.skills.document import Skill, render_skill
from jerp.storage.skill_runs import SkillRunFile
from jerp.typing import Outcome
from tests.bridge.fake_domain import FakeDomain
from tests.bridge.tiny_model import TinyModel

PROMPTS = DraftPrompts(TinyModel(None, None), num_prompt_tokens=1200)
TASKS = FakeDomain().generate(3, 2)
ONE, TWO = (task.key for task in TASKS)
SKILL = render_skill(Skill("Write well", "Words.", ("Write a good word.",)))
CHECKED = (Action.OBSERVE, Action.DRAFT, Action.CHECK, Action.REVISE, Action.SUBMIT)


def follower(request):
    """Writes a good word if a skill says so; else only samples of odd number do."""
    told = any("good" in m.content for m in request.messages if m.role == "system")
    return f"{'good' if told or request.sample_index % 2 else 'poor'} word"


def place(script=follower, domain=None, tasks=TASKS, **settings):
    executor = ScriptedExecutor(script)
    settings = {"order": (Action.OBSERVE, Action.DRAFT, Action.SUBMIT), **settings}
    domain = domain or FakeDomain()
    return executor, DomainWorkplace(domain, executor, tasks, PROMPTS, **settings)


def test_a_skill_is_in_the_system_prompt_and_decides():
    executor, workplace = place()
    trials = [Trial(t, s, i) for t in (ONE, TWO) for s in (None, SKILL) for i in (0, 1)]
    runs = workplace.execute(trials)
    won = [run.outcome == Outcome.SUCCESS for run in runs]
    assert won == [False, True, True, True] * 2
    assert all(run.executor_calls == 1 and run.tokens > 0 for run in runs)
    assert executor.calls == 1  # all episodes together
    for trial, request in zip(trials, executor.requests, strict=True):
        assert request.sample_index == trial.sample
        systems = [m.content for m in request.messages if m.role == "system"]
        told = f"Follow this procedure:\n\n{SKILL.strip()}"
        assert systems == ([] if trial.skill is None else [told])
    assert [s["action"] for s in runs[0].evidence] == ["observe", "draft", "submit"]
    assert workplace.execute([]) == []


def test_a_system_prompt_that_is_there_stays_first():
    messages = (Message("system", "You write."), Message("user", "Go."))
    system, user = with_skill(messages, "# A\n")
    assert system.content == "You write.\n\nFollow this procedure:\n\n# A"
    assert user == messages[1] and with_skill(messages, None) == messages


def test_an_anchor_knows_the_skill():
    domain = SkilledDomain(FakeDomain())
    bare, told = (domain.begin(skilled_task(TASKS[0], s), 0) for s in (None, SKILL))
    assert domain.anchor(bare) != domain.anchor(told)
    assert domain.inner.anchor(bare) == domain.inner.anchor(told)


def test_an_order_with_a_revision_asks_twice_where_something_fails():
    script = ScriptedExecutor(
        lambda r: "good" if "is bad" in r.messages[-1].content else "poor"
    )
    workplace = DomainWorkplace(FakeDomain(), script, TASKS, PROMPTS, order=CHECKED)
    (run,) = workplace.execute([Trial(ONE, None, 0)])
    assert run.outcome == Outcome.SUCCESS and run.executor_calls == 2
    done = [step["action"] for step in run.evidence]
    assert done == ["observe", "draft", "check", "revise", "check", "submit"]
    assert DRAFT_TEST_REVISE[:3] == DRAFT_ONCE[:3]


def test_nobodys_answer_and_a_broken_verifier_are_no_failures():
    executor = ScriptedExecutor(follower, failures={1: "timeout"})
    domain = FakeDomain(raises={1})
    workplace = DomainWorkplace(domain, executor, TASKS, PROMPTS, order=CHECKED)
    runs = workplace.execute([Trial(t, SKILL, i) for t in (ONE, TWO) for i in (0, 1)])
    assert [run.outcome for run in runs] == [
        *(Outcome.SUCCESS, Outcome.INFRASTRUCTURE),
        *(Outcome.INFRASTRUCTURE, Outcome.INFRASTRUCTURE),
    ]
    assert "planned failure" in runs[1].evidence[-1]["error"]
    assert "verifier broke" in runs[2].evidence[-1]["error"]


def test_a_run_is_the_same_whatever_is_beside_it():
    trials = [Trial(t, s, i) for t in (ONE, TWO) for s in (None, SKILL) for i in (0, 1)]
    together = place()[1].execute(trials)
    assert [place()[1].execute([trial])[0] for trial in trials] == together


def test_what_was_paid_for_is_not_asked_again_after_a_kill(tmp_path):
    """The third call ends it all."""
    asked = []

    def dies(request):
        if len(asked) == 2:
            raise RuntimeError("killed")
        asked.append(request)
        return follower(request)

    def workplace(script, store):
        executor = StoredExecutor(ScriptedExecutor(script), store)
        return DomainWorkplace(*(FakeDomain(), executor, TASKS, PROMPTS), order=CHECKED)

    trials = [Trial(ONE, None, 0), Trial(TWO, SKILL, 0), Trial(ONE, SKILL, 1)]

    def run(script):
        store = ResponseStore(tmp_path / "store")
        found = workplace(script, store)
        path = tmp_path / "runs.jsonl"
        with SkillRunFile(path, workplace=found.fingerprint) as runs:
            try:
                return executed(found, runs, trials, at_once=1)
            finally:
                store.close()

    with pytest.raises(ExecutorError, match="killed"):
        run(dies)
    paid, again = list(asked), []

    def goes_on(request):
        again.append(request)
        return follower(request)

    found = run(goes_on)
    assert not {*paid} & {*again} and len(paid) == 2
    assert found == place(order=CHECKED)[1].execute(trials)


def test_prompts_show_context_skill_and_runs_and_drafts_are_read():
    _, workplace = place(
        context=lambda task: f"words such as {task.prompt}", secrets=lambda _: [77]
    )
    state = RefinementState(
        *(TWO, SKILL),
        Evidence("a", [{"action": "draft", "observation": "good word"}]),
        Evidence("b", [{"action": "draft", "observation": "", "error": "no answer"}]),
    )
    first, row = workplace.prompts([RefinementState(ONE), state])
    text = PROMPTS._tokenizer.decode(row[row != 0].tolist())
    assert "| words such as write word 1" in text and "# Write well" in text
    assert "succeeded:\n| > draft\n| good word\n" in text
    assert "failed:\n| > draft\n| no answer\n" in text
    assert (first != 0).sum() < (row != 0).sum()
    said = answer_text("So.", Skill("Write", "Words.", ("Write 77.",)))
    tokens, mask = PROMPTS.written(said, 300)
    assert workplace.read(ONE, tokens, mask).faults == ("secret",)


def test_a_fingerprint_tells_workplaces_apart():
    assert place()[1].fingerprint == place()[1].fingerprint
    executor = ScriptedExecutor(follower, name="another")
    others = [
        place(tasks=TASKS[:1])[1],
        place(tasks=[replace(TASKS[0], payload={"number": 5}), TASKS[1]])[1],
        place(order=CHECKED)[1],
        place(context=lambda _: "words")[1],
        place(told=str)[1],
        DomainWorkplace(FakeDomain(), executor, TASKS, PROMPTS),
    ]
    assert len({place()[1].fingerprint, *(p.fingerprint for p in others)}) == 7


def test_references_are_judged_where_there_are_some():
    check_verifier(place()[1], [ONE])
    verdicts = iter([Outcome.SUCCESS, Outcome.FAILURE])
    _, unsteady = place(reference=lambda _: next(verdicts))
    with pytest.raises(ValueError, match="two verdicts for fake/3/0000"):
        check_verifier(unsteady, [ONE])


@pytest.mark.parametrize(
    ("settings", "says"),
    [
        ({"tasks": ()}, "tasks: expected some"),
        ({"tasks": TASKS[:1] * 2}, "got 2 of which 1 differ"),
        ({"order": (Action.DRAFT,)}, "expected actions with 'submit'"),
    ],
)
def test_settings_that_cannot_be(settings, says):
    with pytest.raises(ConfigError, match=says):
        place(**settings)


def test_an_order_without_a_legal_action_is_refused():
    _, workplace = place(order=(Action.SUBMIT,))
    with pytest.raises(ConfigError, match=r"order: expected an action that is legal"):
        workplace.execute([Trial(ONE, None, 0)])


def test_an_action_is_the_first_of_the_order():
    legal = np.ones(7, bool)
    assert place(order=CHECKED)[1]._action(legal) == Action.OBSERVE
