"""A customer's way through the shop, from the search to what is bought."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence

from jerp.domains.commands import Outcome
from jerp.domains.webshop.pages import (
    BACK,
    BUY,
    NEXT,
    PREVIOUS,
    SUB_PAGES,
    Page,
    item_page,
    results_page,
    start_page,
    sub_page,
)
from jerp.domains.webshop.products import Product

__all__ = ["LONGEST_SEARCH", "Visit", "label_of"]

_COMMAND = re.compile(r"(search|click)\[(.+)\]")
LONGEST_SEARCH = 900


class Visit:
    """One episode.

    Commands are `search[words]`, on every page, and `click[label]`, of what the page
    shows; upper and lower case are the same. Something bought ends it.

    Args:
      instruction: what is wanted.
      find: products for some words, best first.
      judge: the score of a product with the values of its options that were chosen.
      max_steps: commands, also those that do nothing, after which it is over.
    """

    def __init__(
        self,
        instruction: str,
        find: Callable[[str], Sequence[Product]],
        judge: Callable[[Product, Sequence[str]], float],
        max_steps: int,
    ):
        self._instruction, self._find, self._judge = instruction, find, judge
        self._left = max_steps
        self._found: Sequence[Product] = ()
        self._number = 1
        self._item: Product | None = None
        self._chosen: dict[str, str] = {}
        self._page = start_page(instruction)
        self._score: float | None = None

    @property
    def page(self) -> Page:
        """What is seen now."""
        return self._page

    def admissible(self) -> tuple[str, ...]:
        """Clicks that the page has; where it has none a search for the instruction."""
        labels = dict.fromkeys(map(label_of, self._page.labels))
        if not labels:
            return (f"search[{label_of(self._instruction)[:LONGEST_SEARCH]}]",)
        return tuple(f"click[{label}]" for label in labels)

    def act(self, line: str) -> Outcome:
        """Carries a command out; one that is none shows the same page."""
        self._left -= 1
        command = _COMMAND.fullmatch(line)
        known = command is not None and self._do(command[1], label_of(command[2]))
        if self._score is not None:
            text = f"Bought, with a score of {self._score:.2f} of 1"
            return Outcome(text, self._score, self._score == 1, ended=True)
        text = str(self._page) if known else f"Not possible here: {line}\n{self._page}"
        return Outcome(text, 0.0, False, ended=self._left <= 0, known=known)

    def _do(self, verb: str, what: str) -> bool:
        if verb == "search":
            self._found = self._find(what)
            self._show_results(1)
            return True
        # Buttons come before options that are called like them, as officially.
        for name, click in {**self._options(), **self._buttons()}.items():
            if name == what:
                click()
                return True
        return False

    def _buttons(self) -> Mapping[str, Callable[[], None]]:
        """What happens on a click of each label of the page but options."""
        shown = set(self._page.labels)
        clicks: dict[str, Callable[[], None]] = {
            BACK: self._start_again,
            PREVIOUS: self._back,
            NEXT: lambda: self._show_results(self._number + 1),
            BUY: self._buy,
        }
        for name in SUB_PAGES:
            clicks[name] = lambda name=name: self._show_more(name)
        if self._item is None:
            for product in self._found:
                clicks[product.asin] = lambda product=product: self._show_item(product)
        return {label_of(k): click for k, click in clicks.items() if k in shown}

    def _options(self) -> Mapping[str, Callable[[], None]]:
        """Of values that two options share the later one is chosen, as officially."""
        item = self._item
        if item is None or BUY not in self._page.labels:
            return {}
        return {
            label_of(value): lambda name=name, value=value: self._choose(name, value)
            for name, values in item.options.items()
            for value in values
        }

    def _start_again(self) -> None:
        self._found, self._item, self._chosen = (), None, {}
        self._page = start_page(self._instruction)

    def _show_results(self, number: int) -> None:
        self._number, self._item, self._chosen = number, None, {}
        self._page = results_page(self._instruction, self._found, number)

    def _back(self) -> None:
        if self._item is None:
            self._show_results(self._number - 1)
        elif BUY in self._page.labels:
            self._show_results(self._number)
        else:
            self._page = item_page(self._instruction, self._item, self._chosen)

    def _show_item(self, product: Product) -> None:
        self._item, self._chosen = product, {}
        self._page = item_page(self._instruction, product, {})

    def _choose(self, name: str, value: str) -> None:
        self._chosen[name] = value
        self._page = item_page(self._instruction, self._shown(), self._chosen)

    def _show_more(self, name: str) -> None:
        self._page = sub_page(self._instruction, self._shown(), name)

    def _buy(self) -> None:
        self._score = self._judge(self._shown(), tuple(self._chosen.values()))

    def _shown(self) -> Product:
        assert self._item is not None, "only the page of a product has its buttons"
        return self._item


def label_of(text: str) -> str:
    """A label as commands name it: in lower case, on one line, without odd characters.

    Args:
      text: as the page shows it.
    """
    kept = (c for c in text.lower() if c.isprintable() or c.isspace())
    return " ".join("".join(kept).split())
