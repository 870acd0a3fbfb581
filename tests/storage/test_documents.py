import pytest

from jerp.errors import StorageError
from jerp.storage.documents import difference, plain, read_json, write_json


def test_a_document_comes_back_plain(tmp_path):
    document = {"text": "a\u2028b\x85", "pair": (1, 2.5), "none": None}
    write_json(tmp_path / "d.json", document)
    assert read_json(tmp_path / "d.json") == plain(document)
    assert plain(document)["pair"] == [1, 2.5]


@pytest.mark.parametrize("value", [float("nan"), object(), {1, 2}])
def test_what_json_cannot_hold_is_refused_before_anything_is_written(tmp_path, value):
    with pytest.raises(StorageError, match="expected plain numbers"):
        write_json(tmp_path / "d.json", {"x": value})
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("content", ["", '{"a": 1', "[1]", "\xff\xfe"])
def test_a_damaged_document_is_named(tmp_path, content):
    path = tmp_path / "d.json"
    path.write_text(content, encoding="latin-1")
    with pytest.raises(StorageError, match=r"d\.json"):
        read_json(path)


@pytest.mark.parametrize(
    ("kept", "given", "expected"),
    [
        ({"a": 1}, {"a": 1}, None),
        ({"a": 1, "b": 2}, {"a": 1, "b": 3}, "b: 2 there, 3 here"),
        ({"a": {"b": [1]}}, {"a": {"b": [2]}}, "a.b[0]: 1 there, 2 here"),
        ({"a": [1]}, {"a": [1, 2]}, "a: 1 entries there, 2 here"),
        ({"a": 1}, {}, "a: 1 there, absent here"),
        ({}, {"a": 1}, "a: absent there, 1 here"),
        ({"a": [1]}, {"a": {"b": 1}}, 'a: [1] there, {"b": 1} here'),
        ({"a": "x" * 99}, {"a": ""}, f'a: "{"x" * 56}... there, "" here'),
    ],
)
def test_the_first_difference_is_named(kept, given, expected):
    assert difference(kept, given) == expected
