"""The goals of WebShop and how to reach them, on official files or on our own."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from functools import cached_property
from pathlib import Path

from jerp.domains.benchmark import Move
from jerp.domains.commands import CommandSession, command
from jerp.domains.webshop.files import data_folder, read_catalogue
from jerp.domains.webshop.generated import generate_catalogue
from jerp.domains.webshop.pages import BUY, NEXT, PER_PAGE
from jerp.domains.webshop.products import SPLITS, Catalogue, Goal, Product
from jerp.domains.webshop.reward import ALIKE, NounsOf, purchase_reward
from jerp.domains.webshop.search import Search
from jerp.domains.webshop.visit import LONGEST_SEARCH, Visit, label_of
from jerp.domains.webshop.words import coloured, nouns_of, similar
from jerp.errors import ConfigError, UnknownNameError
from jerp.records import Task

__all__ = ["WebShop"]

OPENING = "You shop by search[words] and by click[something that the page shows].\n"


class WebShop:
    """Goals in the official order; success is a score of 1.

    Attributes:
      name: see `jerp.domains.benchmark.Benchmark`.

    Args:
      data: folder with the official files, see `jerp.domains.webshop.files`; None takes
        what the variable `JERP_WEBSHOP` names, and else the generated catalogue, whose
        version begins with "generated".
      max_steps: commands of an episode; 100 in the official baselines.
      nouns: of a title; see `jerp.domains.webshop.reward.type_reward`.

    Raises:
      ConfigError: no step is allowed.
      StorageError: there is no such folder; or, when it is used, no such file.
      InputError: when it is used, a file is not what it should be.

    Reference:
      Yao et al., "WebShop: Towards Scalable Real-World Web Interaction with Grounded
      Language Agents", arXiv 2207.01206.
    """

    name = "webshop"

    def __init__(
        self,
        data: Path | None = None,
        *,
        max_steps: int = 100,
        nouns: NounsOf = nouns_of,
    ):
        if max_steps < 1:
            raise ConfigError(f"max_steps: expected at least 1, got {max_steps}")
        self._folder = data_folder(data)
        self._max_steps, self._nouns = max_steps, nouns

    @property
    def version(self) -> str:
        """Of the generated catalogue; else the number of products and a hash."""
        return self._catalogue.version

    @property
    def splits(self) -> tuple[str, ...]:
        """Those of train, eval and test that have goals; few goals leave some empty."""
        return tuple(name for name in SPLITS if self._catalogue.splits[name])

    @property
    def broken(self) -> Mapping[str, str]:
        """Goals of which their own product does not get a score of 1, and what it gets.

        Such as with an option that the product does not have.
        """
        return self._broken

    def tasks(self, split: str) -> tuple[Task, ...]:
        """Goals; their kind is the category, their difficulty the options, up to 2.

        Raises:
          UnknownNameError: no such split.
        """
        if split not in SPLITS:
            raise UnknownNameError("split", split, SPLITS)
        catalogue = self._catalogue
        return tuple(
            Task(
                key=self._key(number),
                domain=self.name,
                difficulty=min(len(goal.options), 2),
                prompt=goal.instruction,
                payload={"kind": goal.category, "goal": number},
            )
            for number in catalogue.splits[split]
            for goal in (catalogue.goals[number],)
        )

    def start(self, task: Task, *, seed: int = 0) -> CommandSession:
        """A visit of the shop; nothing in it depends on the seed."""
        goal = self._goal(task)
        products = self._catalogue.products
        visit = Visit(
            goal.instruction,
            lambda words: [products[asin] for asin in self._search.top(words)],
            lambda bought, chosen: purchase_reward(
                bought, chosen, goal, nouns=self._nouns
            ),
            self._max_steps,
        )
        return CommandSession(
            OPENING + str(visit.page),
            visit.act,
            lambda: None,
            admissible=visit.admissible,
        )

    def oracle(self, task: Task) -> tuple[Move, ...]:
        """A search for the title of the goal's product, its options, and the purchase.

        Where other products with nearly that title hide it, the search alone.
        """
        return tuple(command(line) for line in self._path(self._goal(task)))

    def close(self) -> None:
        """Nothing is held."""

    def _path(self, goal: Goal) -> Iterator[str]:
        words = label_of(goal.title)[:LONGEST_SEARCH] or goal.query
        yield f"search[{words}]"
        found = self._search.top(words)
        if goal.asin not in found:
            return
        for _ in range(found.index(goal.asin) // PER_PAGE):
            yield _click(NEXT)
        yield _click(goal.asin)
        for value in _fitting(self._catalogue.products[goal.asin], goal).values():
            yield _click(value)
        yield _click(BUY)

    def _goal(self, task: Task) -> Goal:
        number, goals = task.payload["goal"], self._catalogue.goals
        if not 0 <= number < len(goals):
            last = self._key(len(goals) - 1)
            raise UnknownNameError("task", task.key, (self._key(0), "…", last))
        return goals[number]

    def _key(self, number: int) -> str:
        return f"{self.name}/{number}"

    @cached_property
    def _catalogue(self) -> Catalogue:
        if self._folder is None:
            return generate_catalogue()
        return read_catalogue(self._folder)

    @cached_property
    def _broken(self) -> Mapping[str, str]:
        catalogue = self._catalogue
        found = {}
        for number, goal in enumerate(catalogue.goals):
            product = catalogue.products[goal.asin]
            chosen = tuple(_fitting(product, goal).values())
            score = purchase_reward(product, chosen, goal, nouns=self._nouns)
            if score < 1:
                reason = f"its own product gets {score:.2f} by the official score"
                found[self._key(number)] = reason
        return found

    @cached_property
    def _search(self) -> Search:
        return Search(self._catalogue.products)


def _click(label: str) -> str:
    return f"click[{label_of(label)}]"


def _fitting(product: Product, goal: Goal) -> dict[str, str]:
    """Of a product's options the values that are most like the goal's, by option."""
    # Of values that two options share a click chooses the later one.
    names = {v: name for name, values in product.options.items() for v in values}
    chosen: dict[str, str] = {}
    for option in goal.options:
        said = option if isinstance(option, str) else option[1]
        likeness = {
            value: (value == said, similar(coloured(value), coloured(option)))
            for value, name in names.items()
            if name not in chosen
        }
        best = max(likeness, key=likeness.__getitem__, default=None)
        if best is not None and likeness[best][1] > ALIKE:
            chosen[names[best]] = best
    return chosen
