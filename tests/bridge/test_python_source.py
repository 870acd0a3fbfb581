"""Parsing from several threads at once, which CPython 3.11 alone does not survive."""

import ast
from concurrent.futures import ThreadPoolExecutor

import pytest

from jerp.bridge.python_source import parse_python


def test_it_is_the_tree_of_the_standard_library():
    source = "def f(x):\n    return x + 1\n"
    assert ast.dump(parse_python(source)) == ast.dump(ast.parse(source))
    assert ast.dump(parse_python("[1]", mode="eval")) == ast.dump(
        ast.parse("[1]", mode="eval")
    )


def test_threads_parse_at_once():
    sources = [f"[{'(' * 30}x{')' * 30} for x in range({i})]\n" * 40 for i in range(64)]
    with ThreadPoolExecutor(4) as pool:
        trees = list(pool.map(parse_python, sources * 4))
    assert [ast.dump(t) for t in trees[:64]] == [ast.dump(t) for t in trees[64:128]]


def test_a_dubious_literal_warns_nobody(recwarn):
    parse_python('"\\d"')
    assert not recwarn.list


def test_what_does_not_parse_raises():
    with pytest.raises(SyntaxError):
        parse_python("def f(:")
