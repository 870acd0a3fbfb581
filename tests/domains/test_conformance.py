"""An adapter is checked by its own references, and what it does wrong is found."""

from dataclasses import replace

import pytest

from jerp.domains.benchmark import Call, Say
from jerp.domains.conformance import check_benchmark, spoilt, to_check
from jerp.errors import ConfigError, UnknownNameError
from tests.domains.counting import Counting


def test_a_sound_adapter_passes_and_its_marks_are_counted():
    done = []
    found = check_benchmark(Counting(), "all", on_progress=done.append)
    assert (found.tasks, found.checked, found.broken, found.faults) == (12, 12, 0, ())
    assert (found.oracle, found.dropped, found.wrong, found.nothing) == (1, 0, 0, 0)
    # Of 2, 4, … one call fewer; each solution says that it is done.
    assert found.moves == sum(i // 2 + i % 2 + 1 for i in range(1, 13))
    assert found.steps_per_second > 0 and done == [1] * 12


def test_references_that_are_known_to_be_broken_are_left_out_and_counted():
    known = Counting(broken={"counting/3": "counts one too few"})
    found = check_benchmark(known, "all")
    assert (found.tasks, found.checked, found.broken) == (12, 11, 1)
    assert found.oracle == 1 and not found.faults


def test_references_without_full_marks_are_faults():
    class Short(Counting):
        def oracle(self, task):
            return super().oracle(task)[1:]

    found = check_benchmark(Short(number=4), "all", limit=3)
    assert found.checked == 3 and found.oracle == 0
    assert [f.task for f in found.faults if f.check == "oracle"] == [
        f"counting/{i}" for i in (1, 2, 3)
    ]


@pytest.mark.parametrize(
    ("fault", "checks"),
    [
        ("leak", {"oracle", "equal seeds", "side by side", "after a crash"}),
        ("raise", {"malformed moves"}),
        ("silent", {"malformed moves"}),
    ],
)
def test_what_an_adapter_does_wrong_is_found(fault, checks):
    found = check_benchmark(Counting(number=4, fault=fault), "all")
    assert {f.check for f in found.faults} == checks


def test_of_many_tasks_as_many_of_each_kind_are_checked():
    assert len(to_check(Counting(999).tasks("all"))) == 999
    tasks = Counting(2000, kinds=7).tasks("all")
    chosen = to_check(tasks)
    assert len({t.key for t in chosen}) == len(chosen) == 105
    assert {t.payload["kind"] for t in chosen} == {*range(7)}
    # One kind has three tasks: the other makes up for it.
    rare = [t for t in tasks if t.payload["kind"] == 0][:3]
    common = Counting(1500, kinds=1).tasks("all")
    common = [replace(t, payload={**t.payload, "kind": "common"}) for t in common]
    found = to_check([*rare, *common])
    assert len(found) == 100 and found[:3] == rare
    few = to_check(Counting(12).tasks("all"), 3)
    assert [task.payload["to"] for task in few] == [1, 5, 9]
    assert to_check([], 3) == [] and len(to_check(few, 5)) == 3
    assert len(to_check(Counting(1500, kinds=400).tasks("all"))) == 400


def test_spoilt_solutions_by_hand():
    first, last = Call("a", {"x": 1}), Call("b")
    assert spoilt((first, last, Say("done"))) == {
        "dropped": (first, Say("done")),
        "wrong": (Call("a", {"x": 2}), last, Say("done")),
        "nothing": (),
    }
    assert spoilt((last,)) == {"dropped": (), "nothing": ()}
    assert spoilt(()) == {}
    others = {"x": True, "y": "a"}, {"x": [1, "b"]}, {"x": {"k": None}}, {"x": []}
    assert [spoilt((Call("a", o),))["wrong"][0].arguments for o in others] == [
        *({"x": False, "y": "a"}, {"x": [2, "b x"]}, {"x": {"k": "x"}}, {"x": ["x"]}),
    ]


def test_mistakes_are_named():
    with pytest.raises(UnknownNameError, match="split"):
        check_benchmark(Counting(), "al")
    with pytest.raises(ConfigError, match="limit: expected at least 1, got 0"):
        check_benchmark(Counting(), "all", limit=0)
    with pytest.raises(ConfigError, match="expected some tasks in 'empty'"):
        check_benchmark(Counting(), "empty")
