"""Which rules a reader is shown: by what they are about, and as many as have room."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any

import jax.numpy as jnp
import numpy as np

from jerp.bridge.embedding import TextEmbedder, centred
from jerp.bridge.rule_prompt import rules_block
from jerp.rules.book import RuleBook
from jerp.rules.pool import RulePool
from jerp.rules.selection import select_similar
from jerp.typing import Array

__all__ = ["Lines", "Similar"]


class Lines:
    """Counts the tokens of a rule as a prompt has it, in a line of its own."""

    def __init__(self, tokenizer: Any):
        self._tokenizer = tokenizer

    def __call__(self, text: str) -> int:
        """Of one rule."""
        return len(self._tokenizer.encode(rules_block([text])).ids)


@dataclass(frozen=True, eq=False)
class Similar:
    """Chooses working sets by what rules are about, and not by score.

    Attributes:
      embedder: of texts.
      words: what each of N tasks asks for.
      kinds: `[N]` int32, whose pool.
      num_rules: R.
      tokens: of a working set, at most.
    """

    embedder: TextEmbedder
    words: tuple[str, ...]
    kinds: np.ndarray
    num_rules: int
    tokens: int

    @cached_property
    def queries(self) -> np.ndarray:
        """`[N, D]`."""
        vectors = self.embedder.embed(self.words)
        return centred(vectors, vectors)

    def __call__(self, pool: RulePool, book: RuleBook) -> Array:
        """`[N, R]` rule ids."""
        if not len(book):
            return jnp.full((len(self.words), self.num_rules), -1, jnp.int32)
        vectors = self.embedder.embed(book.texts)
        return select_similar(
            pool,
            self.kinds,
            self.queries,
            centred(vectors, vectors),
            num_rules=self.num_rules,
            token_budget=self.tokens,
        )
