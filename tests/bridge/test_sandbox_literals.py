"""Comparing literals: hand cases, Python's equality as the reference, hostile text."""

import math

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from jerp.bridge.sandbox_code import literal_text
from jerp.bridge.sandbox_literals import literals_match, read_literal

PLAIN = st.one_of(
    st.none(), st.integers(), st.text(max_size=5), st.binary(max_size=5), st.booleans()
)
VALUES = st.recursive(
    PLAIN | st.floats(),
    lambda inner: st.one_of(
        st.lists(inner, max_size=3),
        st.lists(inner, max_size=3).map(tuple),
        st.dictionaries(PLAIN, inner, max_size=3),
        st.sets(PLAIN, max_size=3),
    ),
    max_leaves=8,
)


@pytest.mark.parametrize(
    ("expected", "got", "same"),
    [
        ("1", "1", True),
        ("1", "1.0", True),
        ("1", "True", False),
        ("True", "1", False),
        ("True", "True", True),
        ("0", "False", False),
        ("None", "False", False),
        ("0.3", "0.30000000000000004", True),
        ("0.3", "0.3000001", False),
        ("1e-13", "0.0", True),
        ("1e-11", "0.0", False),
        ("10**400", "1.0", None),
        ("1" + "0" * 400, "1.0", False),
        ("123456789012345678", "123456789012345679", False),
        ("nan", "nan", True),
        ("nan", "0.0", False),
        ("inf", "inf", True),
        ("inf", "-inf", False),
        ("inf", "1e308", False),
        ("(1+2j)", "(1+2.0000000000000004j)", True),
        ("(1+2j)", "1", False),
        ("'1'", "1", False),
        ("'a'", "b'a'", False),
        ("[1, 2]", "(1, 2)", False),
        ("[1, 2]", "[2, 1]", False),
        ("[1, 2]", "[1, 2, 3]", False),
        ("[1, [0.1]]", "[1.0, [0.1]]", True),
        ("{1, 2}", "{2, 1}", True),
        ("{1}", "{True}", False),
        ("{(1,)}", "{(True,)}", False),
        ("set()", "set()", True),
        ("set()", "{}", False),
        ("{1: 'a', 2: [0.5]}", "{2: [0.5], 1: 'a'}", True),
        ("{1: 'a'}", "{True: 'a'}", False),
        ("{1: 'a'}", "{1: 'a', 2: 'b'}", False),
        ("{1: 1}", "{1: True}", False),
        ("{'a': nan}", "{'a': nan}", True),
    ],
)
def test_by_hand(expected, got, same):
    if same is None:
        with pytest.raises(ValueError, match="not a Python literal"):
            read_literal(expected)
        return
    assert literals_match(read_literal(expected), read_literal(got)) is same


@settings(max_examples=80, deadline=None, derandomize=True)
@given(VALUES)
def test_a_value_survives_its_text_and_matches_itself(value):
    again = read_literal(literal_text(value))
    assert literals_match(value, again)
    assert repr(again) == repr(value) or isinstance(value, (list, tuple, dict, set))


@settings(max_examples=100, deadline=None, derandomize=True)
@given(PLAIN, PLAIN)
def test_without_floats_and_booleans_it_is_equality(left, right):
    if isinstance(left, bool) or isinstance(right, bool):
        assert literals_match(left, right) == (left is right)
    else:
        assert literals_match(left, right) == (left == right)


@pytest.mark.parametrize(
    "text",
    [
        "__import__('os').system('true')",
        "f(1)",
        "x",
        "[x for x in (1, 2)]",
        "lambda: 1",
        "",
        "1 2",
        "\x00",
        "9**9**9",
        "frozenset({1})",
        "f'{1}'",
        "'a'.b",
        "-'a'",
    ],
)
def test_other_source_is_no_literal(text):
    with pytest.raises(ValueError, match="not a Python literal"):
        read_literal(text)


@pytest.mark.parametrize("size", [300, 20_000])
@pytest.mark.parametrize("part", ["-", "+1", "[", "(", "not ", "{1:", "a.", "f(", "1<"])
def test_endless_nesting_is_no_literal(part, size):
    for text in (part * size, "1" + part * size, part * size + "1"):
        if part != "+1" or not text.endswith("+11"):
            with pytest.raises(ValueError, match="not a Python literal"):
                read_literal(text)


def test_special_floats_are_floats_wherever_they_stand():
    value = read_literal("[inf, -inf, {'nan': nan}, 'inf']")
    assert value[:2] == [math.inf, -math.inf] and value[3] == "inf"
    assert math.isnan(value[2]["nan"])


def test_what_is_not_a_literal_has_no_text():
    for value in (object(), range(3), iter([]), {1: print}, [bytearray(b"a")], type):
        with pytest.raises(TypeError, match="is not a literal"):
            literal_text(value)
