"""The texts of rules by number: arrays hold the numbers, the book the texts."""

from __future__ import annotations

from collections.abc import Callable, Iterable

from jerp.errors import InputError
from jerp.rules.text import check_rule_text

__all__ = ["RuleBook", "count_words"]


def count_words(text: str) -> int:
    """How many parts between blanks a text has.

    Args:
      text: any.

    Example:
      >>> count_words("When it is cold, heat it.")
      6
    """
    return len(text.split())


class RuleBook:
    """Gives every text of a rule a number, once: same text, same number, in any pool.

    Nothing is ever taken out, so that a number of an old trajectory still has its text.

    Args:
      texts: of an earlier book, in its order.
      count_tokens: how long a text is; a tokenizer's length where there is one.

    Raises:
      InputError: a text that no rule may be (see `check_rule_text`), or that is there
        twice.

    Example:
      >>> book = RuleBook()
      >>> book.intern("Heat it."), book.intern("Cool it."), book.intern(" Heat it. ")
      (0, 1, 0)
      >>> book[1], len(book), book.num_tokens(1)
      ('Cool it.', 2, 2)
    """

    def __init__(
        self,
        texts: Iterable[str] = (),
        *,
        count_tokens: Callable[[str], int] = count_words,
    ):
        self._count_tokens = count_tokens
        self._texts: list[str] = []
        self._tokens: list[int] = []
        self._ids: dict[str, int] = {}
        for number, text in enumerate(texts):
            if self.intern(text) != number:
                raise InputError(
                    f"texts: expected each once, got number {number} again: {text!r}"
                )

    @property
    def texts(self) -> tuple[str, ...]:
        """All texts in the order of their numbers."""
        return tuple(self._texts)

    def intern(self, text: str) -> int:
        """The number of a text, a new one if the book has not got it.

        Args:
          text: of a rule; it is brought into its one form first.

        Raises:
          InputError: no rule may be like this.
        """
        text = check_rule_text(text)
        number = self._ids.setdefault(text, len(self._texts))
        if number == len(self._texts):
            self._texts.append(text)
            self._tokens.append(self._count_tokens(text))
        return number

    def num_tokens(self, rule_id: int) -> int:
        """The length of a text by `count_tokens`.

        Args:
          rule_id: of a text of the book.

        Raises:
          InputError: the book has no such text.
        """
        return self._tokens[self._known(rule_id)]

    def __getitem__(self, rule_id: int) -> str:
        return self._texts[self._known(rule_id)]

    def __len__(self) -> int:
        return len(self._texts)

    def __contains__(self, text: object) -> bool:
        return text in self._ids

    def _known(self, rule_id: int) -> int:
        if not 0 <= rule_id < len(self._texts):
            raise InputError(
                f"rule_id: expected 0 to {len(self._texts) - 1}, got {rule_id}; -1 "
                "stands for no rule, and other numbers are of another book"
            )
        return int(rule_id)
