"""Merging by a language model, for which a scripted executor stands in."""

import pytest

from jerp.bridge.scripted import ScriptedExecutor
from jerp.errors import ExecutorError, InputError, SkillError
from jerp.runs.skills.draft_prompt import answer_text
from jerp.runs.skills.merge import MeasuredSkill, merge_by_vote
from jerp.runs.skills.model_merge import ModelMerger, merge_messages
from jerp.skills.document import Skill, render_skill

MERGED = Skill("Pay", "All bills.", ("Log in.", "Pay."))
SKILLS = [
    MeasuredSkill("a", Skill("Pay", "Bills.", (step,)), success)
    for step, success in (("Wait.", 0.25), ("Log in.", 1.0), ("Stop.", None))
]


def merger(answer, **settings):
    script = ScriptedExecutor(lambda _: answer, name="stand-in for a merger")
    return script, ModelMerger(script, **settings)


def test_the_answer_is_the_skill():
    script, merge = merger(answer_text("Both log in.", MERGED))
    assert merge(SKILLS) == MERGED
    (request,) = script.requests
    assert request.sampling.temperature == 0 and not merge.notes
    assert merge.executor_calls == 1 and merge.tokens > 20


def test_the_prompt_has_all_skills_the_best_first():
    _, user = merge_messages(SKILLS, max_chars=1000)
    said = user.content
    assert said.startswith("There are 3 skills.")
    places = [
        said.index(f"Runs that succeeded: {share}\n<skill>\n{render_skill(s.skill)}")
        for share, s in (("100%", SKILLS[1]), ("25%", SKILLS[0]))
    ]
    assert places == sorted(places)
    assert said.index("unknown") > places[-1]


def test_skills_without_room_are_left_out_and_counted():
    size = len(f"Runs that succeeded: 100%\n<skill>\n{render_skill(SKILLS[1].skill)}")
    _, user = merge_messages(SKILLS, max_chars=size + len("</skill>"))
    assert "(2 more skills, with no more success, were left out.)" in user.content
    assert "Wait." not in user.content
    with pytest.raises(InputError, match="expected at least one that has room"):
        merge_messages(SKILLS, max_chars=10)
    with pytest.raises(InputError, match="at least one to merge, got none"):
        merge_messages((), max_chars=1000)


UNUSABLE = [
    ("I cannot.", {}, "faults no_delimiters"),
    (answer_text("So.", MERGED).replace("1.", "3."), {}, r"malformed_skill \(line 8: "),
    (answer_text("So.", MERGED), {"secrets": ["log"]}, "faults secret"),
    (answer_text("So.", MERGED), {"max_words": 3}, "faults length"),
]


@pytest.mark.parametrize(("answer", "settings", "says"), UNUSABLE)
def test_an_answer_that_is_no_skill_says_why(answer, settings, says):
    with pytest.raises(SkillError, match=says):
        merger(answer, **settings)[1](SKILLS)


def test_a_fallback_merges_and_says_so(caplog):
    _, merge = merger("I cannot.", fallback=merge_by_vote)
    assert merge(SKILLS) == merge_by_vote(SKILLS)
    (note,) = merge.notes
    assert "no_delimiters" in note and "3 skills were merged without it" in note
    assert note in caplog.text


def test_nobodys_answer_is_no_skill():
    script = ScriptedExecutor(lambda _: "", failures={0: "timeout"})
    with pytest.raises(ExecutorError, match="expected an answer, got timeout"):
        ModelMerger(script)(SKILLS)


class Broken:
    """Fails as a whole, which no executor should."""

    fingerprint = "broken"

    async def complete(self, requests):
        raise OSError("no route")


def test_a_fallback_covers_an_executor_that_raises():
    merge = ModelMerger(Broken(), fallback=merge_by_vote)
    assert merge(SKILLS) == merge_by_vote(SKILLS)
    assert "no route" in merge.notes[0] and merge.executor_calls == 1
    alone = ModelMerger(Broken())
    with pytest.raises(ExecutorError, match="no route"):
        alone(SKILLS)
    assert alone.executor_calls == 1 and not alone.notes


@pytest.mark.parametrize(
    ("executor", "settings", "message"),
    [
        (None, {}, "executor: expected one of jerp.bridge, got None"),
        (Broken(), {"max_words": 0}, "max_words: expected a whole number >= 1"),
        (Broken(), {"max_words": "x"}, "max_words: expected a whole number >= 1"),
        (Broken(), {"secrets": None}, "secrets: expected texts.*got None"),
    ],
)
def test_bad_settings(executor, settings, message):
    with pytest.raises(InputError, match=message):
        ModelMerger(executor, **settings)
