"""A tokenizer rebuilt from a vocabulary and merges."""

import inspect

import pytest
from tokenizers import Regex, pre_tokenizers

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
    assert ids("a12", split="gpt2_digits") == number("a", "1", "2")


@pytest.mark.parametrize("text", ["naïve 😀\u2028x\n\t", "  two  spaces ", "\x00\x7f"])
def test_decoding_undoes_encoding(text):
    tokenizer = byte_level_tokenizer(VOCABULARY, MERGES, special=SPECIAL)
    assert tokenizer.decode(tokenizer.encode(text).ids) == text


def test_a_merge_outside_the_vocabulary_is_refused():
    with pytest.raises(ValueError, match="merge 'b c': expected tokens"):
        byte_level_tokenizer(VOCABULARY, ["b c"])


@pytest.mark.parametrize(
    ("split", "text", "tokens"),
    [
        ("llama3", "a12", ["a", "12"]),
        ("llama3", "1212", ["12", "1", "2"]),  # three digits, then one
        ("qwen2", "a12", ["a", "1", "2"]),
        ("llama3", "c a", ["c", "Ġa"]),
        ("qwen2", "a\n\nb", ["a", "Ċ", "Ċ", "b"]),
        ("qwen2", "e\u0301", ["Ã", "©"]),  # composed to é
        ("llama3", "e\u0301", ["e", "Ì", "ģ"]),
    ],
)
def test_cuts_by_hand(split, text, tokens):
    assert ids(text, split=split) == number(*tokens)


def test_a_whole_token_needs_no_merges_in_llama_3():
    """`cab` cannot be reached by merges: of c, a, b come `c` and `ab`."""
    for split, tokens in (("llama3", ["cab"]), ("qwen2", ["c", "ab"])):
        tokenizer = byte_level_tokenizer([*TOKENS, "ab", "cab"], ["a b"], split=split)
        assert tokenizer.encode("cab").tokens == tokens


def test_added_tokens_are_wholes_that_decoding_keeps():
    tokenizer = byte_level_tokenizer(
        VOCABULARY, MERGES, special=SPECIAL[:1], added=SPECIAL[1:]
    )
    found = tokenizer.encode("a<|user|>b<|end|>").ids
    assert found == number("a", "<|user|>", "b", "<|end|>")
    assert tokenizer.decode(found) == "a<|user|>b"


TEXTS = (
    "It's  I'LL they've\u2019s 1234567 x1y22 \t\n\n  a",
    "naïve 😀!!?\r\n -- e\u0301 ١٢٣ ǅ \u2028\u00a0x",
    "  def f(x):\n        return x**2  # done\n",
)


@pytest.mark.parametrize("text", TEXTS)
def test_cuts_are_those_of_transformers(text):
    from transformers import Qwen2Tokenizer
    from transformers.convert_slow_tokenizer import TikTokenConverter

    vocabulary = {token: i for i, token in enumerate(VOCABULARY)}
    merges = [tuple(merge.split()) for merge in MERGES]
    qwen = Qwen2Tokenizer(vocab=vocabulary, merges=merges)
    assert qwen.encode(text, add_special_tokens=False) == ids(text, split="qwen2")
    pattern = inspect.signature(TikTokenConverter).parameters["pattern"].default
    tokenizer = byte_level_tokenizer(VOCABULARY, MERGES, split="llama3")
    ours = tokenizer.pre_tokenizer.pre_tokenize_str(text)
    cut = pre_tokenizers.Split(Regex(pattern), behavior="isolated")
    assert [place for _, place in ours] == [
        place for _, place in cut.pre_tokenize_str(text)
    ]
