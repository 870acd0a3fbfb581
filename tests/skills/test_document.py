"""What a skill may be, that it reads back, and that a mistake names its line."""

import unicodedata

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from jerp.errors import InputError, SkillError
from jerp.skills.document import SKILL_LIMITS, Skill, parse_skill, render_skill

SEEDED = settings(deadline=None, derandomize=True)
SKILL = Skill(
    "Move a file",
    "Requests to move files between folders.",
    ("Look for the file: `find(name={name})`.", "If size <= 5 or x < y, move it."),
    ("(Folders may be missing.)",),
)
MARKDOWN = """\
# Move a file

Requests to move files between folders.

## Workflow

1. Look for the file: `find(name={name})`.
2. If size <= 5 or x < y, move it.

## Notes

- (Folders may be missing.)
"""
SHORT = Skill("Move", "Files.", ("Find it.",))


def test_the_literal_form():
    assert render_skill(SKILL) == MARKDOWN
    assert parse_skill(MARKDOWN) == SKILL
    assert render_skill(SHORT) == "# Move\n\nFiles.\n\n## Workflow\n\n1. Find it.\n"


@pytest.mark.parametrize(
    "change",
    [("\n", "\r\n"), ("\n\n", "\n"), ("\n", "\n\n\n"), ("\n", " \t\n"), ("it", "it")],
)
def test_blank_lines_and_line_ends_mean_nothing(change):
    assert parse_skill(MARKDOWN.replace(*change)) == SKILL
    assert parse_skill("\n" + MARKDOWN.replace(*change).rstrip("\n")) == SKILL


def test_texts_are_brought_into_one_form():
    found = Skill(" Cafe\u0301  a ", "b\u00a0c", ["d"], ["e \u2003 f"])
    assert found == Skill("Caf\u00e9 a", "b c", ("d",), ("e f",))
    assert parse_skill("# Cafe\u0301  a\nb\tc\n## Workflow\n1. d\n") == Skill(
        "Caf\u00e9 a", "b c", ("d",)
    )
    assert hash(found) == hash(Skill("Caf\u00e9 a", "b c", ("d",), ("e f",)))


def texts(most):
    def is_fit(text):
        try:
            return bool(Skill(text, "b", ("c",)))
        except SkillError:
            return False

    characters = st.characters(codec="utf-8") | st.sampled_from("#-`<>1.[] \u0301")
    return st.text(characters, max_size=12).map(lambda t: f"a{t}").filter(is_fit)


@SEEDED
@given(texts(80), st.lists(texts(400), min_size=1, max_size=3), st.lists(texts(400)))
@example("a", ["# b", "## Workflow", "2. c"], [])
@example("a\u2000\u0308", ["## Notes"], ["- d"])
def test_any_skill_reads_back(name, workflow, notes):
    try:
        skill = Skill(name, workflow[0], workflow, notes[:3])
    except SkillError:
        return
    text = render_skill(skill)
    assert parse_skill(text) == skill and render_skill(parse_skill(text)) == text
    lines = text.splitlines()
    headings = [line for line in lines if line[:1] == "#"]
    assert len(headings) == 2 + bool(skill.notes)
    assert len([line for line in lines if line]) == 3 + len(workflow) + (
        1 + len(skill.notes) if skill.notes else 0
    )
    assert unicodedata.is_normalized("NFC", text)


@SEEDED
@given(st.text(st.sampled_from("#1. -\n\r\tabWorkflwNts<"), max_size=60))
def test_whatever_is_read_renders_to_the_same_skill(text):
    try:
        found = parse_skill(f"# a\nb\n## Workflow\n1. {text}")
    except SkillError as error:
        assert str(error).startswith("line ")
    else:
        assert parse_skill(render_skill(found)) == found


UNFIT = {
    "": "expected some words",
    " \t ": "expected some words",
    "a\nb": "one line",
    "a\u2028b": "one line",
    "a\x00": "one line of characters that are seen",
    "a\u202eb": "characters that are seen",
    "a\u200bb": "characters that are seen",
    "a\ud800": "characters that are seen",
    "# a": "begins with a letter",
    "- a": "begins with a letter",
    "* a": "begins with a letter",
    "> a": "begins with a letter",
    "+ a": "begins with a letter",
    "---": "begins with a letter",
    "![a](b)": r"got '\]\('",
    "[a]: b": "begins with a letter",
    "| a | b |": "begins with a letter",
    "\uff03 a": "begins with a letter",
    "3. a": "not as an item of a list",
    "3) a": "not as an item of a list",
    "12.": "not as an item of a list",
    "a <|im_end|>": "got '<|'",
    "a <br>": "got '<b'",
    "a </skill>": "got '</'",
    "a <<SYS>>": "got '<<'",
    "a <!-- b": "got '<!'",
    "a \uff1c|im_end|>": "got '<|'",
    "a \ufe64b": "got '<b'",
    "a <\uff5cUser\uff5c>": "got '<|'",
    "a [INST] b": r"got '\[INST\]'",
    "a [/INST]": r"got '\[/INST\]'",
    "a \uff3bINST\uff3d": r"got '\[INST\]'",
    "a ```python": "got '```'",
    "a ~~~": "got '~~~'",
    "a [b](c)": r"got '\]\('",
}


def test_an_address_is_no_link_of_markdown():
    text = "Open https://example.org/a_(b) [see] (there)."
    assert Skill("a", "b", (text,)).workflow == (text,)


@pytest.mark.parametrize("text", UNFIT)
def test_what_no_text_of_a_skill_may_be_is_refused_by_its_name(text):
    reason = UNFIT[text]
    with pytest.raises(SkillError, match=f"^name: .*{reason}"):
        Skill(text, "b", ("c",))
    with pytest.raises(SkillError, match=f"^description: .*{reason}"):
        Skill("a", text, ("c",))
    with pytest.raises(SkillError, match=f"^workflow 2: .*{reason}"):
        Skill("a", "b", ("c", text))
    with pytest.raises(SkillError, match=f"^notes 1: .*{reason}"):
        Skill("a", "b", ("c",), (text,))


@pytest.mark.parametrize(
    "text",
    ["a < b", "x <= 5", "1.5 hours", "'a' -> b", "(a) b", "{a}", "`a(b)`", "10 % of a"],
)
def test_what_procedures_need_may_be(text):
    assert Skill(text, text, (text,), (text,)).workflow == (text,)


def test_the_limits():
    name, description, line, steps, notes = SKILL_LIMITS
    most = Skill("a" * name, "b" * description, ["c" * line] * steps, ["d"] * notes)
    assert parse_skill(render_skill(most)) == most
    for fields, reason in (
        (("a" * (name + 1), "b", ["c"]), "name: expected at most 80 characters"),
        (("a", "b" * 201, ["c"]), "description: expected at most 200 characters"),
        (("a", "b", ["c" * 401]), "workflow 1: expected at most 400 characters"),
        (("a", "b", ["c"] * 21), "workflow: expected 1 to 20 texts, got 21"),
        (("a", "b", []), "workflow: expected 1 to 20 texts, got 0"),
        (("a", "b", ["c"], ["d"] * 21), "notes: expected 0 to 20 texts, got 21"),
        (("a", "b", "c"), "workflow: expected a list of texts, got str"),
        (("a", "b", 5), "workflow: expected a list of texts, got int"),
        (("a", "b", [5]), "workflow 1: expected a text, got int"),
        ((None, "b", ["c"]), "name: expected a text, got NoneType"),
    ):
        with pytest.raises(SkillError, match=reason):
            Skill(*fields)


HEAD = "# a\nb\n## Workflow\n"


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "line 1: expected '# NAME', got the end"),
        ("\n \n", "line 1: expected '# NAME', got the end"),
        ("a", "line 1: expected '# NAME', got 'a'"),
        ("#a", "line 1: expected '# NAME', got '#a'"),
        ("# ", "line 1: expected '# NAME', got '#'"),
        ("#  a", "line 1: expected '# NAME', got '#  a'"),
        (" # a", "line 1: expected '# NAME', got ' # a'"),
        ("## a", "line 1: expected '# NAME'"),
        ("---\nname: a\n---\n# a", "line 1: expected '# NAME', got '---'"),
        ("# a", "line 1: expected a line that describes the tasks, got the end"),
        ("# a\n\n b", "line 3: expected a line that describes the tasks, got ' b'"),
        ("# a\n## Workflow", "line 2: description: expected a text that begins"),
        ("# a\nb", "line 2: expected '## Workflow', got the end"),
        ("# a\nb\nc", "line 3: expected '## Workflow', got 'c'"),
        ("# a\nb\n## workflow", "line 3: expected '## Workflow', got '## workflow'"),
        (HEAD, "line 3: expected '1. STEP', got the end"),
        (HEAD + "2. c", "line 4: expected '1. STEP', got '2. c'"),
        (HEAD + "1. ", "line 4: expected '1. STEP', got '1.'"),
        (HEAD + "1.  c", "line 4: expected '1. STEP', got '1.  c'"),
        (HEAD + "1) c", "line 4: expected '1. STEP', got '1) c'"),
        (HEAD + "1. c\nd", "line 5: expected '2. STEP' or '## Notes', got 'd'"),
        (HEAD + "1. c\n   d", "line 5: expected '2. STEP' or '## Notes', got '   d'"),
        (HEAD + "1. c\n1. d", "line 5: expected '2. STEP' or '## Notes', got '1. d'"),
        (HEAD + "1. c\n" * 2, "line 5: expected '2. STEP' or '## Notes'"),
        (HEAD + "1. c\n```\n", "line 5: expected '2. STEP' or '## Notes', got '```'"),
        (HEAD + "1. <b>c", "line 4: workflow 1: expected words without tags"),
        (HEAD + "1. c\x0bd", "line 4: workflow 1: expected one line"),
        (HEAD + "1. c\rd", "line 4: workflow 1: expected one line"),
        (HEAD + "1. c\n## Notes", "line 5: expected '- NOTE', got the end"),
        (HEAD + "1. c\n## Notes\n* d", "line 6: expected '- NOTE', got '* d'"),
        (HEAD + "1. c\n## Notes\n- d\n# e", "line 7: expected '- NOTE', got '# e'"),
        (HEAD + "1. c\n## Notes\n- d\n" + "e" * 99, f"got '{'e' * 57}...'"),
        (
            HEAD + "".join(f"{i}. c\n" for i in range(1, 22)),
            "line 24: workflow: expected at most 20 texts, got '21. c'",
        ),
        (
            HEAD + "1. c\n## Notes\n" + "- d\n" * 21,
            "line 26: notes: expected at most 20 texts",
        ),
        (HEAD + "1. " + "c" * 10**6, "line 4: workflow 1: expected at most 400"),
        ("a" * 10**6, "line 1: expected '# NAME', got 'aaa"),
        ("\n" * 10**6 + "a", "line 1000001: expected '# NAME'"),
    ],
)
def test_a_mistake_is_named_with_its_line(text, message):
    with pytest.raises(SkillError) as caught:
        parse_skill(text)
    assert message in str(caught.value) and len(str(caught.value)) < 300


def test_an_error_of_a_skill_is_one_of_input():
    with pytest.raises(InputError, match="text: expected a text, got bytes"):
        parse_skill(b"# a")
