"""A conversation, with a worker that is played: who ends it, and what is kept."""

from contextlib import closing

import pytest

from jerp.domains.benchmark import Call, Say
from jerp.domains.tau2.session import MAX_ERRORS, MAX_STEPS, Tau2Session, WorkerEpisode
from jerp.domains.tau2.user import ScriptedUser, UserMove
from jerp.errors import InfrastructureError
from tests.domains.tau2.made_up import DOMAIN, Played

ON, OFF = Call("power", {"on": True}), Call("power", {"on": False})


class Fixed:
    """A user who makes these moves, and after them the last one again."""

    def __init__(self, *moves):
        self.moves, self.seen = list(moves), []

    def answer(self, scene, talk):
        self.seen.append((scene, talk))
        return self.moves.pop(0) if len(self.moves) > 1 else self.moves[0]


def started(worker, key="agent", user=None, seed=0):
    episode = WorkerEpisode(worker, key)
    entry = DOMAIN.entries[key]
    return Tau2Session(DOMAIN, entry, episode, user or ScriptedUser(), seed)


def test_references_by_hand():
    assert DOMAIN.entries["agent"].oracle == (ON, Say("It is done. 7 x"))
    assert DOMAIN.entries["agent"].user_turns == ((),)
    assert DOMAIN.entries["nothing"].oracle == (Say("It is done."),)
    both = DOMAIN.entries["both"]
    please = Say("Please do now what has to be done on your side.")
    assert both.oracle == (please, OFF, ON, Say("It is done."))
    lamp = Call("lamp", {"on": True})
    assert both.user_turns == ((lamp,), (Call("lamp", {"on": False}), lamp))


def test_reference_actions_are_made_in_the_order_of_the_reference():
    worker = Played(parts={"ACTION": [1.0, ""]})
    with closing(started(worker, "both")) as session:
        assert session.opening.endswith("You sit in the dark.")
        assert session.policy == "Be kind." and session.tools == DOMAIN.tools
        replies = [session.move(m) for m in DOMAIN.entries["both"].oracle]
        [told] = worker.told.values()
        assert [(by, tool) for wish, by, tool, *_ in told if wish == "call"] == [
            (by, call.tool) for by, call in DOMAIN.entries["both"].actions
        ]
        assert [reply.ended for reply in replies] == [False] * 3 + [True]
        assert session.ended_by == "user"
        verdict = session.score()
        assert verdict.success and verdict.score == 1
        left_out = verdict.criteria[1]
        assert (left_out.name, left_out.weight) == ("NL_ASSERTION", 0)
        assert left_out.detail.startswith("left out")
    assert worker.told == {}


def test_a_score_is_official_and_an_unfinished_conversation_has_none():
    worker = Played(reward=0.0, parts={"DB": [0.0, "others"], "COMMUNICATE": [1.0, ""]})
    with closing(started(worker)) as session:
        verdict = session.score()
        assert not verdict.success and verdict.score == 0
        assert {c.detail for c in verdict.criteria} == {"broken off"}
        session.move(Say("It is done."))
        verdict = session.score()
        assert [(c.name, c.score, c.detail) for c in verdict.criteria] == [
            *(("DB", 0, "others"), ("COMMUNICATE", 1, "")),
        ]
        assert not verdict.success and session.score() is verdict
        assert session.move(ON).error and session.move(Say("And?")).ended


@pytest.mark.parametrize(
    "moves",
    [
        [UserMove(fault="the user's answer was timeout")],
        [UserMove("")],
        [UserMove(calls=(Call("power"),))],
        [UserMove("It is dark."), UserMove(calls=(Call("lamp", {"on": {1}}),))],
    ],
)
def test_a_user_who_fails_is_told_from_an_agent_who_does(moves):
    with closing(started(Played(), user=Fixed(*moves))) as session:
        if len(moves) > 1:
            assert session.opening and not session.ended_by
            assert session.move(Say("Do it.")).ended
        assert session.ended_by == "user-fault" and "user" in session.fault
        assert session.move(ON).ended
        with pytest.raises(InfrastructureError, match="agent: the user"):
            session.score()


def test_the_official_limits_end_an_episode():
    with closing(started(Played(), user=Fixed(UserMove("Go on.")))) as session:
        replies = [session.move(Say("I go on.")) for _ in range(MAX_STEPS // 2)]
        assert [r.ended for r in replies] == [False] * (MAX_STEPS // 2 - 1) + [True]
        assert session.ended_by == "limit" and not session.score().success
    with closing(started(Played())) as session:
        replies = [session.move(Call("no such tool")) for _ in range(MAX_ERRORS)]
        assert all(reply.error for reply in replies)
        assert [r.ended for r in replies] == [False] * (MAX_ERRORS - 1) + [True]
        assert "too many errors" in session.score().criteria[0].detail
    endless = Fixed(UserMove("It is dark."), UserMove(calls=(Call("lamp"),)))
    with closing(started(Played(), user=endless)) as session:
        assert session.move(Say("Do it.")).ended and session.ended_by == "limit"


def test_what_a_worker_lost_is_told_anew():
    worker = Played()
    with closing(started(worker)) as first, closing(started(worker)) as second:
        assert first.move(ON).text == "2"
        with pytest.raises(InfrastructureError, match="it died"):
            second.move(Call("break"))
        assert worker.told == {}
        assert [first.move(OFF).text, second.move(ON).text] == ["3", "2"]
        assert worker.opened == ["agent"] * 4
        worker.running = False
    assert len(worker.told) == 2  # nothing is started to be told of an end
    with pytest.raises(InfrastructureError, match="keeps losing it"):
        started(Played(keeps=False))


def test_moves_that_no_tool_should_see_are_answered():
    worker = Played()
    with closing(started(worker)) as session:
        before = next(iter(worker.told.values()))[:]
        assert session.move(Say(" ")).error and session.move(Say("a" * 100_001)).error
        odd = ({"x": float("nan")}, {"x": {1}}, {"x": "a" * 100_000})
        assert all(session.move(Call("power", found)).error for found in odd)
        tower = session.move(Call("calculate", {"expression": "9**9**9"}))
        assert tower.error and "knows +" in tower.text
        assert next(iter(worker.told.values())) == before
        assert not session.move(Call("power", {"\ud800": "\udfff"})).error
        assert next(iter(worker.told.values()))[-1] == (
            "call",
            "assistant",
            "power",
            {"?": "?"},
        )


def test_a_user_is_told_the_scene_and_what_it_may_know():
    user = Fixed(UserMove("It is dark."), UserMove("Thanks. #STOP#"))
    with closing(started(Played(), user=user, seed=5)) as session:
        session.move(ON)
        session.move(Say("Better?"))
    scene, talk = user.seen[-1]
    assert (scene.seed, scene.scenario) == (5, "You are Ada and sit in the dark.")
    assert [(line.by, line.text) for line in talk] == [
        *(("agent", "Hello?"), ("user", "It is dark."), ("agent", "Better?")),
    ]
