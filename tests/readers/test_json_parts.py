import json

import pytest

from jerp.errors import StorageError
from jerp.readers import json_parts
from jerp.readers.json_parts import json_elements, json_keys, json_rest

VALUE = {
    "a": [1, 2.5, -3e4, {"b": [None, True]}],
    "list": [{"n": i, "text": 'é "\\ \n' * i} for i in range(5)] + [17, "x", []],
    "tail": {"list": [3]},
    "n": 12345,
}


@pytest.fixture(params=[1, 2, 7, 64, 2**20])
def window(request, monkeypatch):
    """Reads so many signs at first."""
    monkeypatch.setattr(json_parts, "CHUNK", request.param)


@pytest.mark.parametrize("indent", [None, 2])
@pytest.mark.parametrize("ascii_only", [True, False])
def test_parts_are_those_of_the_whole(tmp_path, window, indent, ascii_only):
    path = tmp_path / "v.json"
    text = json.dumps(VALUE, indent=indent, ensure_ascii=ascii_only)
    path.write_text(text, encoding="utf-8")
    assert list(json_elements(path, "list")) == VALUE["list"]
    rest = {name: value for name, value in VALUE.items() if name != "list"}
    assert json_rest(path, "list") == rest
    assert list(json_elements(path, "none")) == []
    assert json_keys(path, ("list",)) == ["a", "list"]


def test_no_more_is_kept_than_an_element(tmp_path, monkeypatch):
    monkeypatch.setattr(json_parts, "CHUNK", 64)
    path = tmp_path / "v.json"
    path.write_text(json.dumps({"list": ["x" * 50] * 2000}))
    sizes = []
    value = json_parts._Window.value

    def watched(window):
        sizes.append(len(window.text))
        return value(window)

    monkeypatch.setattr(json_parts._Window, "value", watched)
    assert len(list(json_elements(path, "list"))) == 2000
    assert max(sizes) < 500


@pytest.mark.parametrize("end", range(1, len(json.dumps(VALUE)), 3))
def test_every_beginning_is_refused(tmp_path, end):
    path = tmp_path / "v.json"
    path.write_text(json.dumps(VALUE)[:end])
    with pytest.raises(StorageError):
        list(json_elements(path, "list"))


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "ends in the middle of a value"),
        ('{"a": 1', "ends in the middle of a value"),
        ('{"a": "b', "ends in the middle of a value"),
        ("[1]", "not JSON .expected {, got '\\['"),
        ('{"a" 1}', "not JSON .expected :, got '1'"),
        ('{"a": 1; "b": 2}', "not JSON .expected , or }, got ';'"),
        ('{"a": [1 2], "b": "' + "x" * 40 + '"}', "not JSON .Expecting ',' delimiter"),
        ('{"list": {}}', "not JSON .expected \\[, got '{'"),
        ('{"list": [1; 2]}', "not JSON .expected , or \\], got ';'"),
        ('{"a": ' + "[" * 100_000, "not JSON .too many values inside of each other"),
    ],
)
def test_what_is_no_json_is_refused(tmp_path, text, message):
    path = tmp_path / "v.json"
    path.write_text(text)
    with pytest.raises(StorageError, match=message):
        list(json_elements(path, "list"))
