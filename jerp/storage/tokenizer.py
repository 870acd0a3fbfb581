"""Builds byte-level BPE tokenizers from a vocabulary and its merges.

GGUF files carry the vocabulary, the merges and the name of a pre-tokenizer; the
tokenizer is put together from these with the `tokenizers` package, so that neither
torch nor a model hub is needed. A Hugging Face folder brings its own tokenizer.json.
"""

from __future__ import annotations

from collections.abc import Sequence

from tokenizers import AddedToken, Tokenizer, decoders, models, pre_tokenizers

__all__ = ["byte_level_tokenizer"]


def byte_level_tokenizer(
    tokens: Sequence[str],
    merges: Sequence[str],
    *,
    special: Sequence[str] = (),
    split_digits: bool = False,
) -> Tokenizer:
    """A GPT-2 style tokenizer.

    Args:
      tokens: the vocabulary; a token's place is its id.
      merges: `"left right"`, most frequent first.
      special: control tokens, matched as wholes and never produced from parts.
      split_digits: every digit is a token of its own.

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
    tokenizer = Tokenizer(models.BPE(vocab=vocabulary, merges=pairs))
    byte_level = pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=True)
    digits = [pre_tokenizers.Digits(individual_digits=True)] if split_digits else []
    tokenizer.pre_tokenizer = pre_tokenizers.Sequence([*digits, byte_level])  # pyright: ignore[reportAttributeAccessIssue]
    tokenizer.decoder = decoders.ByteLevel()  # pyright: ignore[reportAttributeAccessIssue]
    tokenizer.add_special_tokens(
        [AddedToken(token, special=True, normalized=False) for token in special]
    )
    return tokenizer
