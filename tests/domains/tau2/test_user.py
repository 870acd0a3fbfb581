"""Who the agent talks to: a script by hand, and an executor in the customer's place."""

import pytest

from jerp.bridge.executor import Completion, Message, Sampling
from jerp.bridge.scripted import ScriptedExecutor
from jerp.bridge.tools import ToolCall
from jerp.domains.benchmark import Call, ToolSpec
from jerp.domains.tau2.user import ExecutorUser, Line, Scene, ScriptedUser, UserMove
from jerp.errors import ConfigError, UnknownNameError

ON, OFF = Call("lamp", {"on": True}), Call("lamp", {"on": False})
HELLO = Line("agent", "Hello?")


def scene(*turns, tools=()):
    return Scene(
        scenario="You are Ada.",
        tools=tools,
        guidelines="Play a customer, officially.",
        signs=("#STOP#", "#MOVED#", "#LOST#"),
        seed=3,
        known="You sit in the dark.",
        turns=turns,
    )


def conversation(user, of, *said):
    """The user's moves, when the agent says these things; tools return "ok"."""
    talk, moves = [], []
    for words in ("Hello?", *said):
        talk.append(Line("agent", words))
        while True:
            move = user.answer(of, tuple(talk))
            moves.append(move)
            talk.append(Line("user", move.text, move.calls))
            talk += [Line("tool", "ok")] * len(move.calls)
            if not move.calls:
                break
    return moves


def test_the_script_does_what_the_reference_has_it_do_and_then_ends():
    user = ScriptedUser()
    opening = UserMove(f"{user.OPENING}You sit in the dark.")
    done, bye = UserMove(user.DONE), UserMove(f"{user.BYE} #STOP#")
    assert "script" in opening.text
    talk = conversation(user, scene((ON, OFF), (ON,)), "Please?", "And now?")
    calls = [UserMove(calls=(call,)) for call in (ON, OFF, ON)]
    assert talk == [opening, *calls[:2], done, calls[2], bye]
    assert conversation(user, scene((ON,), ()), "Please.", "Good.") == [
        *(opening, calls[0], done, bye),
    ]
    assert conversation(user, scene(()), "It is done.") == [opening, bye]


def test_the_script_says_yes_to_questions_as_long_as_it_has_patience():
    user = ScriptedUser(patience=2)
    moves = conversation(user, scene(()), *("May I?",) * 3)
    yes = UserMove(user.YES)
    assert moves[1:] == [yes, yes, UserMove(f"{user.BYE} #STOP#")]
    with pytest.raises(ConfigError, match="patience: expected at least 0, got -1"):
        ScriptedUser(patience=-1)


def test_an_executor_is_asked_with_roles_exchanged():
    def script(request):
        if request.messages[-1].role == "tool":
            return "It is bright now. #STOP#"
        if len(request.messages) > 2:
            return Completion("", tool_calls=(ToolCall("lamp", '{"on": true}', "a"),))
        return "It is dark."

    executor = ScriptedExecutor(script)
    lamp = ToolSpec("lamp", "Yours.", {"type": "object", "properties": {}})
    user = ExecutorUser(executor, sampling=Sampling(max_tokens=9))
    moves = conversation(user, scene(tools=(lamp,)), "Use the lamp.")
    assert moves == [
        UserMove("It is dark."),
        UserMove(calls=(ON,)),
        UserMove("It is bright now. #STOP#"),
    ]
    last = executor.requests[-1]
    assert last.messages[1:] == (
        Message("user", "Hello?"),
        Message("assistant", "It is dark."),
        Message("user", "Use the lamp."),
        Message("assistant", "", (ToolCall("lamp", '{"on": true}', "call_1"),)),
        Message("tool", "ok", tool_call_id="call_1"),
    )
    assert (last.sample_index, last.sampling.max_tokens) == (3, 9)
    assert [tool.name for tool in last.tools] == ["lamp"]


def test_it_is_prompted_in_our_words_or_the_official_ones():
    prompts = {}
    for guidelines in ("own", "official"):
        executor = ScriptedExecutor({"Hello?": "It is dark."})
        user = ExecutorUser(executor, guidelines=guidelines)
        user.answer(scene(), (HELLO,))
        prompts[guidelines] = executor.requests[0].messages[0].content
    assert all("You are Ada." in prompt for prompt in prompts.values())
    assert prompts["official"].startswith("Play a customer, officially.")
    own = prompts["own"]
    assert all(sign in own for sign in ("#STOP#", "#MOVED#", "#LOST#"))
    assert "officially" not in own and "Your tools" not in own
    with pytest.raises(UnknownNameError, match="guidelines"):
        ExecutorUser(ScriptedExecutor({}), guidelines="none")  # pyright: ignore


@pytest.mark.parametrize(
    "status", ["error", "timeout", "refused", "truncated", "empty"]
)
def test_an_executor_that_gives_no_answer_is_a_fault_of_the_user(status):
    executor = ScriptedExecutor(lambda request: Completion("", status, error="why"))
    move = ExecutorUser(executor).answer(scene(), (HELLO,))
    assert move == UserMove(fault=f"the user's answer was {status}: why")


def test_a_malformed_call_is_a_fault_of_the_user():
    call = ToolCall("lamp", "{", fault="it was cut off")
    executor = ScriptedExecutor(lambda request: Completion("", tool_calls=(call,)))
    move = ExecutorUser(executor).answer(scene(), (HELLO,))
    assert move == UserMove(fault="a call of the user is malformed: it was cut off")
