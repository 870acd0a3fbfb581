"""Calls of BFCL as text and back; what a model wrote stays a literal in it."""

import ast

import pytest

from jerp.domains.benchmark import Call
from jerp.domains.bfcl.calls import call_from_text, call_to_text
from jerp.errors import InputError

NAMES = {"sort": ["file_name"], "mv": ["source", "destination"]}


def test_calls_by_hand():
    call = Call("book", {"a": "x'y", "b": [1, 2.5, None], "c": {"k": True}})
    assert call_to_text(call) == """book(a="x'y",b=[1, 2.5, None],c={'k': True})"""
    assert call_from_text(" sort('a.txt')", NAMES) == Call(
        "sort", {"file_name": "a.txt"}
    )
    found = call_from_text("mv('a', destination=['b', -1])", NAMES)
    assert found == Call("mv", {"source": "a", "destination": ["b", -1]})


@pytest.mark.parametrize("text", ["') or exit('", "\\", "\n#", "f(x)", "{}", "\ud800"])
def test_words_of_a_model_are_one_literal(text):
    node = ast.parse(call_to_text(Call("mv", {"source": text})), mode="eval").body
    assert isinstance(node, ast.Call) and len(node.keywords) == 1 and not node.args
    assert ast.literal_eval(node.keywords[0].value) == text


class Evil(str):
    def __repr__(self):
        return "exit()"


def test_values_are_taken_for_what_they_are_in_json():
    assert call_to_text(Call("mv", {"source": Evil("a")})) == "mv(source='a')"


@pytest.mark.parametrize("name", ["a b", "", "x=1) or exit(", "lambda", "*a", "a.b"])
def test_names_that_are_none_are_refused(name):
    with pytest.raises(InputError, match="expected names of parameters"):
        call_to_text(Call("mv", {name: 1}))


def deep(levels=100_000):
    value = []
    for _ in range(levels):
        value = [value]
    return value


@pytest.mark.parametrize("value", [object(), {1, 2}, b"a", deep()])
def test_values_that_json_cannot_say_are_refused(value):
    with pytest.raises(InputError, match="expected values of JSON"):
        call_to_text(Call("mv", {"source": value}))


@pytest.mark.parametrize(
    "text",
    [
        "sort(",
        "1",
        "a.sort()",
        "sort(open())",
        "new('a')",
        "sort(**{'a': 1})",
        "sort(1, 2)",
    ],
)
def test_references_that_are_no_calls_are_refused(text):
    with pytest.raises(InputError, match="reference call"):
        call_from_text(text, NAMES)
