"""Sessions behind values: gone on with where they are, made again where not."""

from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field

import pytest

from jerp.domains.benchmark import Call, Say
from jerp.domains.tool_use.live_sessions import LiveSessions
from jerp.errors import ConfigError
from tests.domains.counting import Counting

ONE = Call("add", {"number": 1})


@dataclass
class Watched(Counting):
    """Remembers what it started."""

    started: list = field(default_factory=list)

    def start(self, task, *, seed=0):
        self.started.append(super().start(task, seed=seed))
        return self.started[-1]


def test_a_session_is_gone_on_with():
    benchmark = Watched()
    live, task = LiveSessions(benchmark), benchmark.tasks("all")[1]
    session = live.take(task, 0, ())
    session.move(ONE)
    live.keep(task, 0, (ONE,), session)
    assert live.take(task, 0, (ONE,)) is session
    assert len(benchmark.started) == 1


@pytest.mark.parametrize("change", ["taken", "moves", "seed", "task"])
def test_any_other_episode_is_made_again(change):
    benchmark = Watched()
    live, (task, other, *_) = LiveSessions(benchmark), benchmark.tasks("all")
    session = live.take(task, 0, (ONE,))
    live.keep(task, 0, (ONE,), session)
    asked = {
        "taken": (task, 0, (ONE,)),
        "moves": (task, 0, (ONE, ONE)),
        "seed": (task, 1, (ONE,)),
        "task": (other, 0, (ONE,)),
    }[change]
    if change == "taken":
        live.take(*asked)
    found = live.take(*asked)
    assert found is not session and found.count == len(asked[2])


def test_calls_and_words_of_one_text_are_told_apart():
    benchmark = Watched()
    live, task = LiveSessions(benchmark), benchmark.tasks("all")[0]
    session = live.take(task, 0, (Say("done"),))
    live.keep(task, 0, (Say("done"),), session)
    assert live.take(task, 0, (Call("done", {}),)) is not session


def test_the_oldest_go_and_are_closed():
    benchmark = Watched()
    live = LiveSessions(benchmark, most=2)
    for task in benchmark.tasks("all")[:3]:
        live.keep(task, 0, (), live.take(task, 0, ()))
    assert [session.closed for session in benchmark.started] == [1, 0, 0]
    live.close()
    live.close()
    assert [session.closed for session in benchmark.started] == [1, 1, 1]


def test_threads_never_share_a_session():
    benchmark = Watched()
    live, task = LiveSessions(benchmark), benchmark.tasks("all")[0]

    def play(_):
        session = live.take(task, 0, ())
        assert session.count == 0
        session.move(ONE)
        count = session.count
        live.keep(task, 0, (ONE,), session)
        return count

    with ThreadPoolExecutor(8) as pool:
        assert set(pool.map(play, range(200))) == {1}


def test_a_number_of_kept_ones_is_none_below_zero():
    with pytest.raises(ConfigError, match="most: expected at least 0, got -1"):
        LiveSessions(Counting(), most=-1)
