"""A catalogue of our own, for whoever has not the official files.

Forty kinds of things with invented makers, attributes, options and prices, and wishes
for them in words. It is no part of WebShop: scores on it are not comparable with those
on the official files, however alike its pages and its rules are.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from random import Random

from jerp.domains.webshop.kinds import AXES, Department, Kind
from jerp.domains.webshop.products import Catalogue, Goal, Product, price_limit
from jerp.domains.webshop.things import DEPARTMENTS

__all__ = ["VERSION", "generate_catalogue"]

VERSION = "generated-1"
"""Raised when the same numbers would bring another catalogue."""

PRODUCTS, GOALS = 1000, 500
TEST, EVAL = 100, 200
"""Where the parts for tests and evaluation end; the others are for training."""

_ONSETS = "Bra Cal Dor El Fen Gil Hov Jor Kel Lum Mar Nor Osk Pel Quin Ros Sel Tor Vel"
_ENDINGS = "berg dane feld gate holm lund mark nell ora quist ridge stad thorpe vik wen"
_RANGES = 0.2
_WISHES = (
    "I am looking for {thing} that is {attributes}{options}",
    "Please find {thing}. It should be {attributes}{options}",
    "I need {thing} for {use}, {attributes}{options}",
    "Buy {thing} which is {attributes}{options}",
    "My old one broke: get me {thing}, {attributes}{options}",
)


def generate_catalogue() -> Catalogue:
    """A thousand products, and goals for half of them; always the same ones."""
    random = Random(f"webshop/{VERSION}")
    kinds = [(own, kind) for own in DEPARTMENTS for kind in own.kinds]
    made = [
        _product(number, *kinds[number % len(kinds)], random)
        for number in range(PRODUCTS)
    ]
    wanted = random.sample(range(PRODUCTS), GOALS)
    goals = [_goal(made[i], kinds[i % len(kinds)][1], random) for i in wanted]
    splits = {"train": range(EVAL, GOALS), "eval": range(TEST, EVAL)}
    splits["test"] = range(TEST)
    return Catalogue(VERSION, {p.asin: p for p in made}, tuple(goals), splits)


def _product(
    number: int, department: Department, kind: Kind, random: Random
) -> Product:
    maker = random.choice(_ONSETS.split()) + random.choice(_ENDINGS.split())
    model = f"{random.choice('ABCDEFGH')}{random.randint(10, 99)}"
    attributes = _some(kind.attributes.split(", "), 2, random)
    attributes += _some(department.attributes.split(", "), 2, random)
    random.shuffle(attributes)
    features = (
        *(f"This {kind.query} is {attribute}." for attribute in attributes),
        f"Made for {kind.use}.",
        f"Model {model} of {maker}.",
    )
    return Product(
        asin=f"G{number:05d}{model}",
        category=department.name,
        query=kind.query,
        product_category=f"{department.shelf} › {kind.query.title()}",
        title=f"{maker} {model} {kind.query.title()}, {attributes[0].capitalize()}",
        description=f"{_thing(kind.query).capitalize()} for {kind.use}, by {maker}.",
        features=features,
        attributes=tuple(attributes),
        options=dict(_options(kind, random)),
        pricing=_pricing(kind, random),
    )


def _options(kind: Kind, random: Random) -> Iterator[tuple[str, tuple[str, ...]]]:
    for axis in kind.axes.split():
        name = axis.replace("-", " ")
        values = AXES[name].split(", ")
        yield name, tuple(_some(values, random.randint(2, len(values)), random))


def _pricing(kind: Kind, random: Random) -> tuple[float, ...]:
    price = round(random.uniform(kind.low, kind.high), 2)
    if random.random() < _RANGES:
        return price, round(price * random.uniform(1.1, 1.6), 2)
    return (price,)


def _goal(product: Product, kind: Kind, random: Random) -> Goal:
    attributes = _some(product.attributes, random.randint(1, 3), random)
    axes = _some(
        tuple(product.options), random.randint(0, len(product.options)), random
    )
    options = {axis: random.choice(product.options[axis]) for axis in axes}
    instruction = random.choice(_WISHES).format(
        thing=_thing(kind.query),
        use=kind.use,
        attributes=_listed(attributes),
        options="".join(f", with {axis}: {value}" for axis, value in options.items()),
    )
    return Goal.of(
        product,
        instruction=instruction,
        attributes=tuple(attributes),
        options=tuple(options.values()),
        limit=price_limit(product.price(), random),
    )


def _some(values: Sequence[str], number: int, random: Random) -> list[str]:
    """Some of the values, in their order."""
    return [values[i] for i in sorted(random.sample(range(len(values)), number))]


def _thing(query: str) -> str:
    if query.endswith("s"):
        return query
    return f"{'an' if query[0] in 'aeiou' else 'a'} {query}"


def _listed(words: Iterable[str]) -> str:
    *first, last = words
    return f"{', '.join(first)} and {last}" if first else last
