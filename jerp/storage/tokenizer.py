"""Builds byte-level BPE tokenizers from a vocabulary and its merges.

GGUF files carry the vocabulary, the merges and the name of a pre-tokenizer; the
tokenizer is put together from these with the `tokenizers` package, so that neither
torch nor a model hub is needed. A Hugging Face folder brings its own tokenizer.json.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal

from tokenizers import (
    AddedToken,
    Regex,
    Tokenizer,
    decoders,
    models,
    normalizers,
    pre_tokenizers,
)

__all__ = ["Split", "byte_level_tokenizer"]

Split = Literal["gpt2", "gpt2_digits", "llama3", "qwen2"]
"""How text is cut before merges: GPT-2's way, the same with every digit alone, up to
three digits together (Llama 3), every digit alone and NFC first (Qwen2)."""

_LLAMA3_DIGITS, _QWEN2_DIGITS = r"\p{N}{1,3}", r"\p{N}"


def byte_level_tokenizer(
    tokens: Sequence[str],
    merges: Sequence[str],
    *,
    special: Sequence[str] = (),
    added: Sequence[str] = (),
    split: Split = "gpt2",
) -> Tokenizer:
    """A tokenizer of bytes and merges, as GPT-2, SmolLM2, Llama 3 and Qwen2 have it.

    Args:
      tokens: the vocabulary; a token's place is its id.
      merges: `"left right"`, most frequent first.
      special: control tokens, matched as wholes and never produced from parts.
      added: tokens matched as wholes that are not control tokens.
      split: how text is cut before merges.

    Returns:
      The tokenizer; it adds no special tokens by itself.

    Raises:
      ValueError: a merge makes a token that is not in the vocabulary.
    """
    vocabulary = {token: index for index, token in enumerate(tokens)}
    pairs: list[tuple[str, str]] = []
    for merge in merges:
        left, _, right = merge.partition(" ")
        if not {left, right, left + right} <= vocabulary.keys():
            raise ValueError(f"merge {merge!r}: expected tokens of the vocabulary")
        pairs.append((left, right))
    # Llama 3 takes a piece that is a token as it is, whatever its merges would make.
    whole = split == "llama3"
    tokenizer = Tokenizer(
        models.BPE(vocab=vocabulary, merges=pairs, ignore_merges=whole)
    )
    if split == "qwen2":
        tokenizer.normalizer = normalizers.NFC()  # pyright: ignore[reportAttributeAccessIssue]
    tokenizer.pre_tokenizer = _pre_tokenizer(split)  # pyright: ignore[reportAttributeAccessIssue]
    tokenizer.decoder = decoders.ByteLevel()  # pyright: ignore[reportAttributeAccessIssue]
    tokenizer.add_special_tokens(
        [AddedToken(token, special=True, normalized=False) for token in special]
    )
    tokenizer.add_tokens([AddedToken(token, normalized=False) for token in added])
    return tokenizer


def _pre_tokenizer(split: Split) -> pre_tokenizers.Sequence:
    if split in ("gpt2", "gpt2_digits"):
        digits = [pre_tokenizers.Digits(individual_digits=True)]
        byte_level = pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=True)
        return pre_tokenizers.Sequence(
            [*(digits if split == "gpt2_digits" else []), byte_level]
        )
    pieces = (
        r"(?i:'(?:s|t|re|ve|m|ll|d))",  # endings of contractions
        r"[^\r\n\p{L}\p{N}]?\p{L}+",  # a word, and one sign before it
        _LLAMA3_DIGITS if split == "llama3" else _QWEN2_DIGITS,
        r" ?[^\s\p{L}\p{N}]+[\r\n]*",  # signs, and line ends behind them
        r"\s*[\r\n]+",
        r"\s+(?!\S)|\s+",  # all blanks but the last one before a word
    )
    return pre_tokenizers.Sequence(
        [
            pre_tokenizers.Split(Regex("|".join(pieces)), behavior="isolated"),
            pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False),
        ]
    )
