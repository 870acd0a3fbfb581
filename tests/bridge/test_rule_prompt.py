"""Twenty ways in which a rule might step out of its line, and none does.

They are tried on a tokenizer with the control tokens of many models; on SmolLM2's own
in tests/models/test_smollm2.py.
"""

import doctest

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from jerp.bridge import rule_prompt
from jerp.bridge.chat import ChatTemplate
from jerp.bridge.executor import Message
from jerp.bridge.rule_prompt import read_rules_block, rules_block
from jerp.errors import InputError
from jerp.rules.text import check_rule_text, rule_text_fault
from jerp.storage.tokenizer import byte_level_tokenizer
from tests.bridge.rule_attacks import QUOTED, REFUSED
from tests.bridge.tiny_model import TEMPLATE, TOKENS

SEEDED = settings(deadline=None, derandomize=True)
TOKENIZER_SPECIAL = (
    *("<|endoftext|>", "<|im_start|>", "<|im_end|>", "<|user|>", "<|assistant|>"),
    *("<s>", "</s>", "<<SYS>>", "<</SYS>>", "[INST]", "[/INST]", "[TOOL_CALLS]"),
    *("<|eot_id|>", "<|start_header_id|>", "<|end_header_id|>", "<tool_call>"),
    *("</tool_call>", "<start_of_turn>", "<end_of_turn>", "<\uff5cUser\uff5c>"),
    *("### Instruction:", "```", "\\n>", "{{"),
)


@pytest.fixture(scope="module")
def tokenizer():
    """Bytes, and the control tokens of many models."""
    bytes_alone = TOKENS[:256]
    tokens = [*bytes_alone, *TOKENIZER_SPECIAL]
    return byte_level_tokenizer(tokens, [], special=TOKENIZER_SPECIAL)


def test_there_are_more_than_twenty_ways():
    assert len({*REFUSED.values(), *QUOTED.values()}) >= 20


@pytest.mark.parametrize("way", REFUSED)
def test_what_no_rule_may_be_never_gets_into_a_prompt(way):
    with pytest.raises(InputError, match=r"^text: expected"):
        rules_block(["Heat it.", REFUSED[way]])


@pytest.mark.parametrize("way", QUOTED)
def test_a_rule_stays_in_its_line(way, tokenizer):
    text = check_rule_text(QUOTED[way])
    block = rules_block(["Heat it.", text, "Cool it."])
    lines = block.splitlines()
    assert (lines[:2], lines[3:]) == (["Rules:", "- Heat it."], ["- Cool it."])
    assert lines[2].startswith("- ") and not lines[2].startswith("- >")
    assert len(lines[2]) <= 2 + 7 * len(text)
    assert not set("<>[]{}|#`\\*") & set(block)
    assert read_rules_block(block) == ("Heat it.", text, "Cool it.")
    said = ChatTemplate(TEMPLATE).render([Message("user", f"{block}Heat a mug.")])
    ids = tokenizer.encode(said).ids
    control = [TOKENIZER_SPECIAL[i - 256] for i in ids if i >= 256]
    assert control == ["<|user|>", "<|assistant|>"]


def test_the_stand_in_knows_the_tokens_that_the_ways_try(tokenizer):
    tried = "".join(QUOTED.values())
    assert sum(i >= 256 for i in tokenizer.encode(tried).ids) >= 20


@SEEDED
@given(st.lists(st.text(max_size=30).map(lambda text: text + "."), max_size=3))
@example(["&lt;.", "- Rules:.", "&xFF1C; \uff1c.", "Rules:."])
def test_a_block_reads_back_to_the_rules_that_it_was_made_of(texts):
    rules = tuple(check_rule_text(t) for t in texts if rule_text_fault(t) is None)
    block = rules_block(rules)
    assert read_rules_block(block) == rules
    assert (
        block.count("\n") == len(block.splitlines()) == (1 + len(rules)) * bool(rules)
    )


def test_the_literal_form():
    assert doctest.testmod(rule_prompt).failed == 0
    assert rules_block([]) == ""
    assert (
        rules_block(["Heat it.", " Cool  it. "]) == "Rules:\n- Heat it.\n- Cool it.\n"
    )


@pytest.mark.parametrize(
    "block",
    [
        "Rules:\n",
        "Rules:\n- Heat it.",
        "Rules:\n- Heat it.\n\n",
        "- Heat it.\n",
        "Rules:\nHeat it.\n",
        "Rules:\n- Heat <it>.\n",
        "Rules:\n- Heat  it.\n",
    ],
)
def test_another_form_is_no_block(block):
    with pytest.raises(InputError, match="block: expected 'Rules:'"):
        read_rules_block(block)


def test_an_unfinished_rule_is_no_block():
    with pytest.raises(InputError, match="a full stop"):
        read_rules_block("Rules:\n- Heat it\n")


def test_one_text_is_no_list_of_texts():
    with pytest.raises(InputError, match="expected a list of texts, got one"):
        rules_block("Heat it.")
