"""Files of pools: both forms say the same, and a mistake is named with its line."""

import dataclasses
import doctest
import importlib
import json
import re
from pathlib import Path

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from jerp.errors import ConfigError, InputError, StorageError, UnknownNameError
from jerp.rules.text import check_rule_text, rule_text_fault
from jerp.storage.located_json import read_located
from jerp.storage.rule_documents import PoolDocument, PoolRule, pool_hash
from jerp.storage.rule_files import pool_text, read_pool, write_pool
from jerp.storage.rule_json import pool_from_json, pool_to_json
from jerp.storage.rule_markdown import pool_from_markdown, pool_to_markdown

SEEDED = settings(deadline=None, derandomize=True)
DOCUMENT = PoolDocument(
    {
        "put hot": (
            PoolRule("When it is cold, heat it.", 3, 10, 5, 3, ("a1", "b2"), "by hand"),
            PoolRule("Use a <b> | *c*.", 2.5),
        ),
        "look": (),
    }
)
MARKDOWN = """\
# jerp rules, version 1

## put hot

- **3** When it is cold, heat it.
  - born 10, uses 5, wins 3
  - learned from a1 b2
  - note: by hand
- **2.5** Use a &lt;b&gt; &vert; &ast;c&ast;.
  - born 0, uses 0, wins 0

## look
"""
JSON = pool_to_json(DOCUMENT)


@pytest.mark.parametrize("suffix", [".json", ".md"])
def test_a_file_comes_back_and_is_written_alike(tmp_path, suffix):
    path = tmp_path / f"pool{suffix}"
    write_pool(path, DOCUMENT)
    assert read_pool(path) == DOCUMENT
    assert list(read_pool(path).pools) == ["put hot", "look"]
    text = path.read_text()
    assert text == pool_text(path, read_pool(path))
    for change in (("\n", "\r\n"), ("\n", "\n\n"), ("\n", " \n")):
        path.write_bytes(b"\xef\xbb\xbf" + text.replace(*change).encode())
        found = read_pool(path)
        assert found == DOCUMENT and pool_hash(found) == pool_hash(DOCUMENT)


def test_the_literal_forms():
    assert pool_to_markdown(DOCUMENT) == MARKDOWN
    assert pool_from_markdown(MARKDOWN) == DOCUMENT
    content = json.loads(JSON)
    assert (content["format"], content["version"]) == ("jerp rules", 1)
    assert content["pools"]["put hot"][0] == {
        **dict(text="When it is cold, heat it.", score=3.0, born=10, uses=5, wins=3),
        **dict(sources=["a1", "b2"], note="by hand"),
    }


def test_what_a_person_may_leave_out():
    text = "# jerp rules, version 1\n<!-- by hand -->\n##  k \n* **2** Heat  it.\n"
    expected = PoolDocument({"k": (PoolRule("Heat it.", 2),)})
    assert pool_from_markdown(text) == expected
    rule = '{"text": "Heat it.", "score": 2}'
    text = '{"pools": {"k": [' + rule + ']}, "version": 1, "format": "jerp rules"}'
    assert pool_from_json(text) == expected
    details = "\t* note:  by  hand\n   -  learned from a1,  b2\n"
    found = pool_from_markdown(f"# jerp rules, version 1\n## k\n- **2** a.\n{details}")
    assert found.pools["k"][0] == PoolRule(
        "a.", 2, sources=("a1", "b2"), note="by hand"
    )


def rule_texts():
    texts = st.text(max_size=20).map(lambda text: f"{text}.")
    return texts.filter(lambda text: rule_text_fault(text) is None).map(check_rule_text)


@SEEDED
@given(
    st.lists(rule_texts(), unique=True, max_size=3),
    st.floats(width=32, allow_nan=False, allow_infinity=False),
)
@example(["- **2** a.", "## k.", "<!-- a -->.", "&lt;&amp;.", "note: a."], 1e30)
@example(["# jerp rules, version 1."], 1e-45)
def test_any_rule_survives_both_forms(texts, score):
    rules = tuple(PoolRule(text, score, note=text) for text in texts)
    document = PoolDocument({"k": rules, "## <!-- & \\": ()})
    assert pool_from_markdown(pool_to_markdown(document)) == document
    assert pool_from_json(pool_to_json(document)) == document


def broken(old, new, source=JSON):
    assert source.count(old) >= 1
    return source.replace(old, new, 1)


@pytest.mark.parametrize(
    ("text", "line", "message"),
    [
        ("", 1, "expected JSON"),
        ("[]", 1, "expected an object with format, version, pools, got "),
        ("[" * 10**5, 1, "expected JSON"),
        ('{"a": 1' + "0" * 5000 + "}", 1, "expected JSON"),
        (JSON[:-3], 29, "expected JSON, got something else at column"),
        (broken('"jerp rules"', '"rules"'), 2, "format: expected 'jerp rules'"),
        (broken('"pools"', '"pool"'), 4, "unknown field 'pool'; did you mean 'pools'"),
        (broken(' "version": 1,\n', ""), 1, "expected the field 'version'"),
        (
            broken('"pools"', '"xyz"'),
            4,
            "expected the fields format, version, pools and no others, got 'xyz'",
        ),
        (broken("3.0", "1e-60"), 8, "score: expected 0 or a number of float32, got 1e"),
        (broken('"version"', '"format"'), 3, "expected 'format' once, got it again"),
        (broken('"look": []', '"look": {}'), 28, "expected a list of rules"),
        (broken('"look"', '"put  hot"'), 28, "task key: expected 'put hot' once"),
        (broken('"look"', '"put hot"'), 28, "expected 'put hot' once, got it again"),
        (broken('"look"', '""'), 28, "task key: expected a name"),
        (broken('"look"', '"lo\\nok"'), 28, "task key: expected one line"),
        (broken("heat it.", "heat it"), 7, "text: expected a full stop"),
        (broken("heat it.", "heat\\u202e it."), 7, "text: expected characters"),
        (
            broken("3.0", "NaN"),
            8,
            "score: expected a finite number of float32, got nan",
        ),
        (broken("3.0", "1e999"), 8, "score: expected a finite"),
        (broken("3.0", "true"), 8, "score: expected a finite"),
        (broken('"born": 10', '"born": -1'), 9, "born: expected a whole number >= 0"),
        (broken('"wins": 3', '"wins": 6'), 11, "wins: expected at most the 5 uses"),
        (broken('"sources": [', '"source": ['), 12, "unknown field 'source'; did you"),
        (broken('"a1"', "1"), 12, "sources: expected digests"),
        (broken('"by hand"', "null"), 16, "note: expected a text, got NoneType"),
        (broken('   "score": 3.0,\n', ""), 6, "expected the field 'score', got text"),
        (
            broken("Use a <b> | *c*.", " When it is  cold, heat it."),
            19,
            "text: expected each once in 'put hot', got 'When it is cold, heat it.'",
        ),
    ],
)
def test_a_mistake_in_json_is_named_with_its_line(tmp_path, text, line, message):
    path = tmp_path / "p.json"
    path.write_text(text)
    with pytest.raises(InputError) as caught:
        read_pool(path)
    start = f"{path}: line {line}: "
    assert str(caught.value).startswith(start), caught.value
    assert str(caught.value).removeprefix(start).startswith(message.split(", got")[0])
    assert message in str(caught.value) and "\n" not in str(caught.value)


def changed(old, new):
    return broken(old, new, MARKDOWN)


@pytest.mark.parametrize(
    ("text", "line", "message"),
    [
        ("", 1, "expected '# jerp rules, version 1', got nothing"),
        ("hello", 1, "expected '# jerp rules, version 1' first, got 'hello'"),
        (changed("## put hot\n", ""), 4, "expected '## TASK KEY' before a rule"),
        (changed("## look", "## put hot"), 12, "task key: expected 'put hot' once"),
        (changed("## look", "##"), 12, "task key: expected a name"),
        (changed("## look", "### look"), 12, "expected '## TASK KEY', '- **SCORE**"),
        (changed("**3**", "**three**"), 5, "score: expected a number, got 'three'"),
        (changed("**3**", "**1_0**"), 5, "score: expected a number, got '1_0'"),
        (changed("**3**", "**nan**"), 5, "score: expected a finite number"),
        (changed("**3**", "**1e39**"), 5, "score: expected a finite number"),
        (changed("**3** ", ""), 5, "expected '## TASK KEY', '- **SCORE**"),
        (changed("heat it.", "heat it"), 5, "text: expected a full stop"),
        (changed("When it is cold, heat it.", ""), 5, "text: expected some words"),
        (changed("cold", "col\u2028d"), 5, "text: expected one line"),
        (changed("born 10", "born x"), 6, "expected '## TASK KEY', '- **SCORE**"),
        (changed("born 10", f"born {2**31}"), 6, "born: expected a whole number >= 0"),
        (changed("wins 3", "wins 6"), 6, "wins: expected at most the 5 uses, got 6"),
        (changed("a1 b2", "a1 b\u00e9"), 7, "sources: expected digests"),
        (changed("- note: by hand", "- learned from c3"), 8, "expected one such line"),
        (changed("- note: by hand", "a second line."), 8, "expected '## TASK KEY'"),
        (changed("by hand", "b\u200by"), 8, "note: expected one line"),
        (f"{MARKDOWN}  - note: alone\n", 13, "expected a rule before '- note: alone'"),
        (
            changed("Use a &lt;b&gt; &vert; &ast;c&ast;.", "When it is cold, heat it."),
            9,
            "text: expected each once in 'put hot'",
        ),
    ],
)
def test_a_mistake_in_markdown_is_named_with_its_line(tmp_path, text, line, message):
    path = tmp_path / "p.md"
    path.write_text(text)
    with pytest.raises(InputError) as caught:
        read_pool(path)
    assert str(caught.value).startswith(f"{path}: line {line}: {message}")
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("p.json", broken('"version": 1', '"version": 2')),
        ("p.md", changed("version 1", "version 2")),
    ],
)
def test_a_newer_version_is_told_apart_from_a_mistake(tmp_path, name, text):
    (tmp_path / name).write_text(text)
    with pytest.raises(
        StorageError, match=rf"{name}: version: expected 1, got 2; a new"
    ):
        read_pool(tmp_path / name)


@pytest.mark.parametrize("version", ["1.0", "true", '"1"', "0"])
def test_a_version_is_a_whole_number_and_no_newer_jerp_wrote_another(version):
    with pytest.raises(StorageError, match=r"^version: expected 1, got [^;]+$"):
        pool_from_json(broken('"version": 1', f'"version": {version}'))


@pytest.mark.parametrize(
    ("old", "new", "which"),
    [
        ("3.0", "null", "(rule 1 of 'put hot')"),
        ("Use a <b> | *c*.", "no stop", "(rule 2 of 'put hot')"),
        ('"note": "by hand"', '"nota": ""', "(rule 1 of 'put hot')"),
        ('"note": "by hand"', '"x": ""', "(rule 1 of 'put hot')"),
    ],
)
def test_a_mistake_in_json_of_one_line_is_named_with_its_rule(old, new, which):
    text = " ".join(broken(old, new).split())
    with pytest.raises(InputError) as caught:
        pool_from_json(text)
    assert str(caught.value).startswith("line 1: ")
    assert str(caught.value).endswith(which), caught.value


def test_other_files_are_told_apart(tmp_path):
    with pytest.raises(ConfigError, match=r"ends with \.json or \.md"):
        read_pool(tmp_path / "pool.txt")
    with pytest.raises(ConfigError, match=r"ends with \.json or \.md"):
        write_pool(tmp_path / "pool", DOCUMENT)
    with pytest.raises(StorageError, match="no such file"):
        read_pool(tmp_path / "pool.md")
    (tmp_path / "pool.md").write_bytes(b"# jerp rules, version 1\n## k\xff\n")
    with pytest.raises(InputError, match="line 2: expected text in UTF-8"):
        read_pool(tmp_path / "pool.md")


def test_a_pool_over_capacity_is_refused_by_its_key(tmp_path):
    write_pool(tmp_path / "pool.md", DOCUMENT)
    assert read_pool(tmp_path / "pool.md", capacity=2) == DOCUMENT
    with pytest.raises(
        InputError, match=r"pool\.md: task key 'put hot': expected at mo"
    ):
        read_pool(tmp_path / "pool.md", capacity=1)


def test_nothing_is_lost_when_a_file_cannot_be_replaced(tmp_path, monkeypatch):
    path = tmp_path / "pool.json"
    write_pool(path, DOCUMENT)

    def refuse(*_):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("os.replace", refuse)
    with pytest.raises(StorageError, match="the disk or a quota is full"):
        write_pool(path, PoolDocument({}))
    assert read_pool(path) == DOCUMENT and list(tmp_path.iterdir()) == [path]


def test_an_error_of_a_field_keeps_its_offer_of_a_name():
    with pytest.raises(InputError, match="did you mean 'score'") as caught:
        pool_from_json(broken('"score": 3', '"scores": 3'))
    assert isinstance(caught.value.__cause__, UnknownNameError)


values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(st.text(max_size=3), inner, max_size=3)
    ),
    max_leaves=8,
)


@SEEDED
@given(values, st.sampled_from([None, 0, 2, "\t"]))
def test_values_are_read_as_by_json_with_the_line_of_each(value, indent):
    text = json.dumps(value, indent=indent)
    found, lines = read_located(text)
    assert found == value and lines[()] == 1
    for place, line in lines.items():
        inner = value
        for step in place:
            inner = inner[step]
        begun = json.dumps(inner)[0]
        assert begun in text.split("\n")[line - 1]


def test_every_field_of_a_rule_is_in_both_forms():
    names = [field.name for field in dataclasses.fields(PoolRule)]
    rule = PoolRule("a.", 1.5, 2, 5, 4, ("s",), "n")
    default = PoolRule("b.", 0)
    differ = [n for n in names if getattr(rule, n) != getattr(default, n)]
    assert differ == names
    document = PoolDocument({"k": (rule,)})
    for back in (
        pool_from_json(pool_to_json(document)),
        pool_from_markdown(pool_to_markdown(document)),
    ):
        assert back == document


def test_files_of_the_first_release_are_read():
    folder = Path(__file__).parent / "version1"
    found = [read_pool(folder / name) for name in ("pool.json", "pool.md")]
    assert found[0] == found[1]
    assert found[0].pools == {
        "put hot": (
            PoolRule(
                *("When it is cold, heat it.", 3, 10, 5, 3),
                ("0f3a91c2d4e5b687", "77ab01c2d4e5b687"),
                "by hand",
            ),
            PoolRule("Use a <b> | *c* for 2 caf\u00e9s.", 2.1),
        ),
        "look": (),
    }
    hash_then = (
        "sha256:fbe3b07d4c80b2dcf93bac4553367adfce6dfaa046d3f35a95afcf4e420d4325"
    )
    assert pool_hash(found[0]) == hash_then


@SEEDED
@given(
    st.sampled_from([JSON, MARKDOWN]),
    st.integers(0, 600),
    st.integers(0, 30),
    st.text(max_size=8)
    | st.sampled_from(["{", "]", "\n", "- **", "## ", "\\u0000", '"']),
)
def test_whatever_is_written_is_read_or_refused_with_its_line(text, start, cut, put):
    text = text[:start] + put + text[start + cut :]
    for read in (pool_from_json, pool_from_markdown):
        try:
            document = read(text)
        except InputError as error:
            assert re.match(r"line \d+: .*(expected|unknown)", str(error))
        except StorageError as error:
            assert str(error).startswith("version: expected 1, got ")
        else:
            assert pool_from_json(pool_to_json(document)) == document


MODULES = ("located_json", "rule_documents", "rule_history", "rule_json")
MODULES += ("rule_leaks", "rule_markdown")


@pytest.mark.parametrize("name", MODULES)
def test_examples_print_what_they_say(name):
    result = doctest.testmod(importlib.import_module(f"jerp.storage.{name}"))
    assert result.failed == 0 and result.attempted > 0
