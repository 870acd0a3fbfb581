"""Examples are found in docstrings however they are worded, or left out."""

import doctest

import pytest

from jerp.domains.humaneval import examples, harness
from jerp.domains.humaneval.examples import examples_of


def found(docstring, name="f"):
    cases = examples_of(f'def {name}(x):\n    """{docstring}\n    """\n', name)
    return [(case.call, case.expected) for case in cases]


@pytest.mark.parametrize(
    ("line", "value"),
    [
        ("f(1) == 2", "2"),
        ("f(1) = 2", "2"),
        ("f(1) => 2", "2"),
        ("f(1) ==> 2", "2"),
        ("f(1) -> 2", "2"),
        ("f(1) ➞ 2", "2"),
        ("f(1)   # returns 2", "2"),
        ("For example, f(1) should return 2.", "2"),
        ("f(1) must be [2, 3]; see above", "[2, 3]"),
        ("f(1) returns 'a b' # a comment", "'a b' # a comment"),
        ("f(1) => true", "True"),
        ("f(1) returns null", "None"),
        (">>> f(1)\n    (2, 'x')", "(2, 'x')"),
    ],
)
def test_wordings(line, value):
    assert found(f"Does it.\n    {line}") == [("f(1)", value)]


@pytest.mark.parametrize(
    "line",
    [
        "f(n) == 2",  # of no value
        "f(1) == 2 + 3",  # a sum
        "f(1) == 19 - 5 = 14",
        "f(1) returns two",
        "f(1), 2",
        "f(1 == 2",
        "ff(1) == 2",
        "f(g(1)) == 2",
        ">>> f(1)",
        ">>> g(1)\n    2",
        ">>>f(1)\n    2",
    ],
)
def test_what_is_left_out(line):
    assert found(f"Does it.\n    {line}") == []


def test_each_once_and_in_order():
    text = "f(2) == 1, f('(') -> 3 and f((1, 2))=0\n    f(2) == 1"
    assert found(text) == [("f(2)", "1"), ("f('(')", "3"), ("f((1, 2))", "0")]
    many = "\n    ".join(f"f({i}) == {i}" for i in range(20))
    assert found(many) == [(f"f({i})", f"{i}") for i in range(8)]


def test_the_last_function_of_the_name_has_the_docstring():
    helper = 'def g(x):\n    """g(1) == 2"""\n\n\n'
    prompt = helper + 'def f(x):\n    """f(1) == 3"""\n'
    assert [c.expected for c in examples_of(prompt, "f")] == ["3"]
    assert [c.expected for c in examples_of(prompt, "g")] == ["2"]
    assert examples_of(prompt, "h") == examples_of("def f(", "f") == ()
    assert examples_of("def f(x):\n    return 1", "f") == ()


@pytest.mark.parametrize("module", [examples, harness])
def test_the_modules_own_examples_print_what_they_say(module):
    result = doctest.testmod(module)
    assert result.attempted and not result.failed
