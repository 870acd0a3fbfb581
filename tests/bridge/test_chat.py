"""Prompts out of messages, and text out of tokens cut anywhere."""

import pytest

from jerp.bridge.chat import ChatTemplate, before_stop, visible_text
from jerp.bridge.executor import Message
from jerp.errors import ExecutorError
from tests.bridge.tiny_model import TEMPLATE, tokenizer

USER, ASSISTANT = Message("user", "hi"), Message("assistant", "so")


@pytest.mark.parametrize(
    ("messages", "expected"),
    [
        ([USER], "<|user|>hi<|assistant|>"),
        ([USER, ASSISTANT], "<|user|>hi<|assistant|>so"),
        ([USER, ASSISTANT, USER], "<|user|>hi<|assistant|>so<|user|>hi<|assistant|>"),
    ],
)
def test_an_assistant_message_at_the_end_is_left_open(messages, expected):
    assert ChatTemplate(TEMPLATE).render(messages) == expected


@pytest.mark.parametrize("messages", [[], [ASSISTANT]])
def test_nothing_to_answer_is_refused(messages):
    with pytest.raises(ValueError, match="expected a system or user message"):
        ChatTemplate(TEMPLATE).render(messages)


def test_variables_reach_the_template():
    template = ChatTemplate(
        "{{ bos_token }}{{ messages[0].content }}", {"bos_token": "<s>"}
    )
    assert template.render([USER]) == "<s>hi"


def test_what_the_template_refuses_is_a_value_error():
    template = ChatTemplate("{{ raise_exception('roles must alternate') }}")
    with pytest.raises(ValueError, match="roles must alternate"):
        template.render([USER])


def test_a_template_cannot_reach_python():
    template = ChatTemplate("{{ messages.__class__.__mro__ }}{{ messages.append(1) }}")
    with pytest.raises(ValueError, match="refuses"):
        template.render([USER])


def test_a_broken_template_says_so():
    with pytest.raises(ExecutorError, match="chat template is broken"):
        ChatTemplate("{% for %}")


@pytest.mark.parametrize(
    ("data", "expected"),
    [
        ("héllo".encode(), "héllo"),
        ("😀".encode()[:3], ""),
        (b"ab" + "é".encode()[:1], "ab"),
        ("a\u2028b\u0085".encode(), "a\u2028b\u0085"),
        (b"a\xffb", "a\N{REPLACEMENT CHARACTER}b"),  # wrong, but not for want of more
        ("x\N{REPLACEMENT CHARACTER}".encode(), "x\N{REPLACEMENT CHARACTER}"),
        (b"", ""),
    ],
)
def test_a_character_cut_in_the_middle_is_left_out(data, expected):
    assert visible_text(tokenizer(), list(data)) == expected


def test_control_tokens_are_not_text():
    assert visible_text(tokenizer(), [*b"ok", 257, *b"!", 256]) == "ok!"


@pytest.mark.parametrize(
    ("text", "stops", "expected"),
    [
        ("one\ntwo", ["\n"], "one"),
        ("one two three", ["three", "two"], "one "),
        ("one", ["x"], None),
        ("one", [], None),
        ("one", [""], None),
        ("stop", ["stop"], ""),
    ],
)
def test_text_ends_before_the_first_stop_string(text, stops, expected):
    assert before_stop(text, stops) == expected
