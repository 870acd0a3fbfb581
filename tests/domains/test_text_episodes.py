"""A prompted model in a benchmark of commands, made up for these tests."""

import numpy as np
import pytest

from jerp.bridge.prompting import Prompting
from jerp.bridge.scripted import ScriptedExecutor
from jerp.domains.text_episodes import FORM, play_texts
from jerp.errors import ConfigError
from jerp.trajectory import check_trajectory
from jerp.typing import Outcome
from tests.domains.counting import Counting
from tests.domains.doors import Doors

TASKS = Doors().tasks("train")
PLAIN = Prompting("plain")


def play(answer, *, tasks=TASKS[:2], num_steps=3, prompting=PLAIN, **settings):
    executor = answer if isinstance(answer, ScriptedExecutor) else None
    executor = executor or ScriptedExecutor(answer)
    index = np.arange(len(tasks))
    found = play_texts(
        Doors(),
        tasks,
        executor,
        prompting,
        num_steps=num_steps,
        sample_index=index,
        task_id=index,
        **settings,
    )
    check_trajectory(found.trajectory)
    return found, executor


def asked(request):
    return request.messages[1].content


def knows(request):
    """Takes the key, then opens the door that is asked for."""
    colour = asked(request).split(" door.")[0].split()[-1]
    return f" open {colour}" if "You have a key" in asked(request) else " take key"


def test_commands_are_done_and_judged_by_the_benchmark():
    found, executor = play(knows, tasks=TASKS[:4:2])
    data = found.trajectory
    assert data.outcome.tolist() == [Outcome.SUCCESS] * 2
    assert data.score.tolist() == [1, 1] and data.mask.sum(1).tolist() == [2, 2]
    assert data.action[:, :2].tolist() == [[0, 1], [0, 2]]  # places in the list
    assert data.reward.tolist() == [[0, 1, 0]] * 2
    assert data.usage[:, 0, 0].tolist() == [1, 1]
    assert executor.calls == 2  # all episodes of a step in one
    told = found.transcripts[0]
    assert told.splitlines() == [
        "Go through the red door.",
        "Three doors, a key.",
        "Action: take key",
        "You have a key.",
        "Action: open red",
        "It opens.",
    ]


def test_what_is_listed_and_what_rules_say_is_in_the_prompt():
    rules = [("Take the key first.",), ()]
    sets = np.asarray([[0], [-1]], np.int32)
    found, executor = play(knows, num_steps=1, rules=rules, working_set=sets)
    first, second = (asked(request) for request in executor.requests)
    assert "- Take the key first." in first and "Take the key first" not in second
    assert "Action: open green" in first and "may be your own" in first
    assert "Take the key first" not in "".join(found.transcripts)
    assert found.trajectory.working_set.tolist() == [[0], [-1]]
    assert found.trajectory.outcome.tolist() == [Outcome.TRUNCATED] * 2
    assert found.trajectory.truncated[:, 0].all()


def test_a_command_of_its_own_is_done_and_a_wrong_form_costs_the_step():
    lines = iter([" look around", "I will\nthink"])
    found, _ = play(lambda _: next(lines), tasks=TASKS[:1], num_steps=2)
    assert found.trajectory.action.tolist() == [[4, -1]]  # behind the list; none
    assert found.unparsed.tolist() == [1]
    assert "Action: look around\nNothing happens.\n" + FORM in found.transcripts[0]


def test_a_thought_is_kept_before_its_command():
    found, _ = play(
        lambda _: " The key.\nAction: take key",
        tasks=TASKS[:1],
        num_steps=1,
        prompting=Prompting("react"),
    )
    assert "Thought: The key.\nAction: take key" in found.transcripts[0]


@pytest.mark.parametrize("number", [0, 2])
def test_what_nobody_answered_is_lost_before_the_step(number):
    executor = ScriptedExecutor(knows, failures={number: "timeout"})
    found, _ = play(executor)
    data = found.trajectory
    assert data.outcome.tolist() == [Outcome.INFRASTRUCTURE, Outcome.SUCCESS]
    assert data.mask.sum(1).tolist() == [number // 2, 2]


def test_one_that_was_cut_off_is_no_command():
    executor = ScriptedExecutor(knows, failures={0: "truncated"})
    found, _ = play(executor, tasks=TASKS[:1], num_steps=1)
    assert found.unparsed.tolist() == [1] and not found.trajectory.score.any()


def test_what_cannot_be_played_is_named():
    with pytest.raises(ConfigError, match="sample_index: expected one for each of the"):
        play(knows, tasks=())
    with pytest.raises(ConfigError, match="take commands, got counting"):
        play_texts(
            Counting(),
            Counting().tasks("all")[:1],
            ScriptedExecutor(knows),
            PLAIN,
            num_steps=1,
            sample_index=[0],
            task_id=[0],
        )
