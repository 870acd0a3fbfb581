"""A tokenizer rebuilt from a vocabulary and merges."""

import pytest

from jerp.storage.tokenizer import byte_level_tokenizer
from tests.bridge.tiny_model import SPECIAL, TOKENS

VOCABULARY = [*TOKENS, "ab", "abc", "Ġa", "12"]
MERGES = ["a b", "ab c", "Ġ a", "1 2"]


def ids(text, **changes):
    tokenizer = byte_level_tokenizer(VOCABULARY, MERGES, special=SPECIAL, **changes)
    return tokenizer.encode(text, add_special_tokens=False).ids


def number(*tokens):
    return [VOCABULARY.index(t) for t in tokens]


@pytest.mark.parametrize(
    ("text", "tokens"),
    [
        ("abc", ["abc"]),
        ("cab", ["c", "ab"]),
        ("b a", ["b", "Ġa"]),
        ("12", ["12"]),
        ("é", ["Ã", "©"]),
        ("ab<|end|>c", ["ab", "<|end|>", "c"]),
        ("<|en", ["<", "|", "e", "n"]),
        ("", []),
    ],
)
def test_by_hand(text, tokens):
    assert ids(text) == number(*tokens)


def test_digits_are_split_on_demand():
    assert ids("a12", split_digits=True) == number("a", "1", "2")


@pytest.mark.parametrize("text", ["naïve 😀\u2028x\n\t", "  two  spaces ", "\x00\x7f"])
def test_decoding_undoes_encoding(text):
    tokenizer = byte_level_tokenizer(VOCABULARY, MERGES, special=SPECIAL)
    assert tokenizer.decode(tokenizer.encode(text).ids) == text


def test_a_merge_outside_the_vocabulary_is_refused():
    with pytest.raises(ValueError, match="merge 'b c': expected tokens"):
        byte_level_tokenizer(VOCABULARY, ["b c"])
