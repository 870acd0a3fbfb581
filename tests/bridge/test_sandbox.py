"""What the sandbox makes of code, within its limits, from any thread."""

from concurrent.futures import ThreadPoolExecutor

import pytest

from jerp.bridge.sandbox import (
    Limits,
    Sandbox,
    TestCase,
    TestReport,
    TestResult,
)
from jerp.errors import ConfigError, UnknownNameError

SQUARE = "def f(x):\n    return x * x\n"
TESTS = (TestCase("f(3)", "9"), TestCase("f(-2)", "4"), TestCase("f(2)", "5"))


def value(sandbox, code, call="f()", expected="None"):
    report = sandbox.run_tests(code, [TestCase(call, expected)])
    return report.results[0]


def test_right_and_wrong_answers(sandbox):
    assert sandbox.run_tests(SQUARE, TESTS) == TestReport(
        (
            TestResult(True, "9", ""),
            TestResult(True, "4", ""),
            TestResult(False, "4", ""),
        ),
        "ok",
    )


def test_no_tests_only_loads(sandbox):
    assert sandbox.run_tests(SQUARE, []) == TestReport((), "ok")
    assert sandbox.run_tests("x = = 1", []).status == "syntax_error"


@pytest.mark.parametrize(
    ("code", "status", "error"),
    [
        ("def f(x) return x", "syntax_error", "SyntaxError: expected ':'"),
        ("x = '\0'", "syntax_error", "source code string cannot contain null bytes"),
        ("x = '\ud800'", "syntax_error", "UnicodeEncodeError"),
        ("(" * 5000, "syntax_error", "SyntaxError"),
        ("-" * 100_000 + "1", "memory", "MemoryError"),
        ("y = missing", "error", "NameError: name 'missing' is not defined"),
        ("import numpy", "error", "ModuleNotFoundError"),
        ("", "ok", "NameError: name 'f' is not defined"),
        ("def f(x): return x / 0", "ok", "ZeroDivisionError: division by zero"),
        ("def f(x): return object()", "ok", "the result, a object, is not a literal"),
        ("def f(x): return 'a' * 5000", "ok", "longer than 4000 characters"),
        ("def f(x): return 7 ** 9999", "ok", "Exceeds the limit"),
        (
            "def f(x):\n    y = []\n    y.append(y)\n    return y",
            "ok",
            "RecursionError",
        ),
        ("# " + "x" * 200_000, "error", "the code is longer than 200000 characters"),
    ],
)
def test_what_fails_says_why(sandbox, code, status, error):
    report = sandbox.run_tests(code, TESTS[:2])
    assert report.status == status
    for result in report.results:
        assert not result.passed and result.got == ""
        assert error in result.error and result.error


def test_error_texts_hold_no_addresses(sandbox):
    code = "def f():\n    raise KeyError(object())"
    assert value(sandbox, code).error == "KeyError: <object object at 0x0>"


def test_results_before_the_end_stand(sandbox):
    code = "import os\ndef f(x):\n    if x < 0: os._exit(0)\n    return x * x"
    report = sandbox.run_tests(code, TESTS)
    assert report.status == "error"
    assert report.results == (
        TestResult(True, "9", ""),
        TestResult(False, "", "ended its own process"),
        TestResult(False, "", "not reached: an earlier call ended its own process"),
    )


def test_calls_see_what_earlier_calls_left_but_runs_do_not(sandbox):
    code = "n = 0\ndef f():\n    global n\n    n += 1\n    return n"
    tests = [TestCase("f()", "1"), TestCase("f()", "2")]
    for _ in range(2):
        assert all(r.passed for r in sandbox.run_tests(code, tests).results)
    spoil = "import builtins, math\nbuiltins.mark = math.floor = 1\ndef f(): pass"
    assert value(sandbox, spoil).passed
    fair = "import math\ndef f(): return [math.floor(1.5), 'mark' in dir(__builtins__)]"
    assert value(sandbox, fair, expected="[1, False]").passed


def test_each_run_has_an_empty_folder_of_its_own(sandbox):
    if sandbox.isolation != "namespaces":
        pytest.skip("every file is read-only without namespaces")
    code = """
import os
def f():
    before = os.listdir('.')
    with open('file', 'w') as file:
        file.write('text')
    return before, os.listdir('.'), open('file').read()
"""
    for _ in range(2):
        assert value(sandbox, code, expected="([], ['file'], 'text')").passed


def test_the_same_run_gives_the_same_result(sandbox):
    code = (
        "import random, os\n"
        "def f(): return [list({'a', 'b', 'c', 'd', 'e'}), random.random(), "
        "hash('x'), os.getcwd(), os.listdir('.')]"
    )
    with Sandbox(sandbox.limits, isolation=sandbox.isolation) as other:
        texts = {value(s, code).got for s in (sandbox, sandbox, other)}
    assert len(texts) == 1 and texts != {""}


def test_modules_and_classes_work_as_in_a_file(sandbox):
    code = """
from __future__ import annotations
import dataclasses, typing, json, itertools, zlib

@dataclasses.dataclass
class Point:
    x: int
    y: typing.ClassVar[int] = 2

def f():
    assert typing.get_type_hints(Point)['x'] is int
    return json.loads(json.dumps([Point(3).x, __name__, zlib.crc32(b'a') > 0]))

if __name__ == '__main__':
    raise SystemExit('not a script')
"""
    assert value(sandbox, code, expected="[3, 'solution', True]").passed


def test_input_ends_at_once(sandbox):
    assert "EOFError" in value(sandbox, "def f(): return input()").error


@pytest.mark.parametrize(
    "body",
    [
        "class Yes:\n    __eq__ = lambda a, b: True\n    __repr__ = lambda a: '9'",
        "class Yes(int):\n    __eq__ = lambda a, b: True\n    __repr__ = lambda a: '9'",
        "class Yes(str):\n    __eq__ = lambda a, b: True\n    __repr__ = lambda a: '9'",
        "class Yes(list):\n    __repr__ = lambda a: '9'",
        "class Yes:\n    __class__ = int\n    __repr__ = lambda a: '9'",
        "import builtins\nbuiltins.repr = lambda x: '9'\nYes = object",
        "import builtins\nbuiltins.isinstance = lambda *x: True\nYes = object",
    ],
)
def test_overridden_equality_or_repr_has_no_say(sandbox, body):
    assert not value(sandbox, f"{body}\ndef f(): return Yes()", expected="9").passed


def test_subclasses_count_as_their_base_type(sandbox):
    code = """
import collections, enum
Pair = collections.namedtuple('Pair', 'a b')
class Color(enum.IntEnum):
    RED = 1
def f():
    return [collections.Counter('aab'), Pair(1, 2), Color.RED, frozenset({1}), set()]
"""
    expected = "[{'a': 2, 'b': 1}, (1, 2), 1, {1}, set()]"
    assert value(sandbox, code, expected=expected).passed


def test_a_sleep_ends_at_the_wall_limit():
    with Sandbox(Limits(wall_seconds=1.5)) as sandbox:
        report = sandbox.run_tests("import time\ndef f(x): time.sleep(60)", TESTS[:1])
        assert report.status == "timeout"
        assert report.results[0].error == "ran out of time"
        assert sandbox.run_tests(SQUARE, TESTS[:1]).status == "ok"


def test_a_loop_that_ignores_the_limit_of_processor_time_ends(sandbox):
    code = """
import signal
signal.signal(signal.SIGXCPU, signal.SIG_IGN)
while True:
    pass
"""
    assert sandbox.run_tests(code, []).status == "timeout"


def test_limits_are_the_ones_given():
    code = """
import resource
def f(name): return resource.getrlimit(getattr(resource, name))[0]
"""
    limits = Limits(cpu_seconds=3, memory_mib=128, files_mib=2, open_files=9)
    wanted = {"CPU": 3, "AS": 128 << 20, "FSIZE": 2 << 20, "NOFILE": 9, "CORE": 0}
    tests = [TestCase(f"f('RLIMIT_{k}')", str(v)) for k, v in wanted.items()]
    with Sandbox(limits) as sandbox:
        assert sandbox.run_tests(code, tests).status == "ok"
        assert all(r.passed for r in sandbox.run_tests(code, tests).results)


def test_output_and_result_limits_change_the_verdict():
    code = "def f(n):\n    print('x' * n)\n    return 'y' * n"
    tests = [TestCase("f(3000)", repr("y" * 3000))]
    for limits, status, passed in (
        (Limits(), "ok", True),
        (Limits(output_kib=2), "output_limit", False),
        (Limits(result_chars=3000), "ok", False),
        (Limits(result_chars=3002), "ok", True),
    ):
        with Sandbox(limits) as sandbox:
            report = sandbox.run_tests(code + "\nprint(flush=True)", tests)
            assert (report.status, report.results[0].passed) == (status, passed)


@pytest.mark.parametrize(
    ("name", "number"), [("cpu_seconds", 0), ("memory_mib", 16), ("wall_seconds", 0)]
)
def test_senseless_limits_are_refused(name, number):
    with pytest.raises(ConfigError, match=f"{name}: expected >= .*, got {number}"):
        Limits(**{name: number})


def test_an_expected_value_must_be_a_literal():
    with pytest.raises(ConfigError, match=r"expected: want a Python literal.*f\(1\)"):
        TestCase("f(1)", "g(1)")


def test_an_unknown_isolation_is_refused():
    with pytest.raises(UnknownNameError, match="did you mean 'filter'"):
        Sandbox(isolation="filters")  # pyright: ignore[reportArgumentType]


def test_threads_share_a_sandbox(sandbox):
    def judge(n):
        code = f"def f(): return {n}"
        return sandbox.run_tests(code, [TestCase("f()", str(n)), TestCase("f()", "-1")])

    with ThreadPoolExecutor(4) as pool:
        reports = list(pool.map(judge, range(60)))
    assert [r.results[0].got for r in reports] == [str(n) for n in range(60)]
    assert all([r.passed for r in x.results] == [True, False] for x in reports)
