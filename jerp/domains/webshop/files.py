"""WebShop's official files, read from a folder.

The folder is named by whoever runs it, or by the variable `JERP_WEBSHOP`; it holds the
products, their attributes and the instructions that people wrote. Nothing of it comes
with jerp. The file of all products is read piece by piece, and what is needed is kept.
"""

from __future__ import annotations

import hashlib
import os
import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from random import Random
from typing import Any

from jerp.domains.webshop.json_files import read_mapping, read_records
from jerp.domains.webshop.products import Catalogue, Goal, Product, price_limit
from jerp.errors import InputError, StorageError

__all__ = ["VARIABLE", "data_folder", "read_catalogue"]

VARIABLE = "JERP_WEBSHOP"
HUMAN = "items_human_ins.json"
ALL = ("items_shuffle.json", "items_ins_v2.json")
THOUSAND = ("items_shuffle_1000.json", "items_ins_v2_1000.json")
"""Products and their attributes."""

SHUFFLE = 233
"""Seed of the official order of goals."""

TEST, EVAL = 500, 1500
"""Where the parts for tests and evaluation end."""

_LONGEST_KEY = 10


def data_folder(data: Path | None) -> Path | None:
    """The folder of the files: `data`, or what the variable names; None of neither.

    Args:
      data: as the caller names it.

    Raises:
      StorageError: there is no such folder.
    """
    named = data or Path(os.environ.get(VARIABLE) or "")
    if named == Path():
        return None
    if not named.is_dir():
        raise StorageError(f"data: expected the folder of WebShop's files, got {named}")
    return named


def read_catalogue(folder: Path) -> Catalogue:
    """The products and the goals, in the official order.

    The file of all products is taken where it is, else that of a thousand. The first
    500 goals are for tests, the next 1,000 for evaluation, the others for training.

    Deviations: the official code draws the limits of prices, and the prices of products
    that have a range, anew whenever it starts. Here they are the same each time.

    Args:
      folder: see `data_folder`.

    Raises:
      StorageError: a file is missing or cannot be read.
      InputError: a file, or a record of it, is not what it should be.
    """
    items, attributes = ALL if (folder / ALL[0]).is_file() else THOUSAND
    digest = hashlib.sha256()
    known = read_mapping(folder / attributes, digest.update)
    human = read_mapping(folder / HUMAN, digest.update)
    products: dict[str, Product] = {}
    for number, record in read_records(folder / items, digest.update):
        try:
            product = _product(record, known)
        except (KeyError, TypeError, ValueError, AttributeError) as error:
            raise _wrong(
                folder / items, f"record {number}", "product", error
            ) from error
        # As officially: such keys are none, and of equal ones the first counts.
        if product.asin != "nan" and len(product.asin) <= _LONGEST_KEY:
            products.setdefault(product.asin, product)
    goals: list[Goal] = []
    for product in products.values():
        try:
            goals += _goals(product, human.get(product.asin, ()))
        except (KeyError, TypeError, ValueError, AttributeError) as error:
            raise _wrong(folder / HUMAN, product.asin, "instruction", error) from error
    Random(SHUFFLE).shuffle(goals)
    version = f"{len(products)}-{digest.hexdigest()[:12]}"
    return Catalogue(version, products, tuple(goals), _splits(len(goals)))


def _splits(number: int) -> Mapping[str, range]:
    test, evaluation = min(TEST, number), min(EVAL, number)
    return {
        "train": range(evaluation, number),
        "eval": range(test, evaluation),
        "test": range(test),
    }


def _wrong(path: Path, where: str, what: str, error: Exception) -> InputError:
    return InputError(
        f"{path}, {where}: expected a {what} of WebShop, got another record "
        f"({type(error).__name__}: {error}); take the official file"
    )


def _product(record: Mapping[str, Any], known: Mapping[str, Any]) -> Product:
    asin = _text(record["asin"])
    features = record["small_description"] or ()
    if isinstance(features, str):
        features = (features,)
    # The official code gives this one to products of which no attributes are known.
    own = known.get(asin, {}).get("attributes", ("DUMMY_ATTR",))
    return Product(
        asin=asin,
        category=_text(record["category"]),
        query=_text(record["query"]).lower().strip(),
        product_category=_text(record["product_category"]),
        title=_text(record["name"]),
        description=_text(record["full_description"] or ""),
        features=tuple(map(_text, features)),
        attributes=tuple(map(_text, own)),
        options=dict(_options(record["customization_options"] or {})),
        pricing=_pricing(record.get("pricing")),
    )


def _options(record: Mapping[str, Any]) -> Iterator[tuple[str, tuple[str, ...]]]:
    for name, contents in record.items():
        if contents is not None:
            values = (_text(content["value"]) for content in contents)
            cleaned = (value.strip().replace("/", " | ").lower() for value in values)
            yield name.lower(), tuple(cleaned)


def _pricing(tag: Any) -> tuple[float, ...]:
    """A price, or the lowest and the highest: `$1,234.50 - $1,300`."""
    if not tag:
        return ()
    prices = [float(re.sub(r"[^\d.]", "", part)) for part in _text(tag).split("$")[1:]]
    if not prices:
        raise ValueError(f"pricing: expected $ and a price, got {tag!r}")
    return tuple(prices[:2])


def _goals(product: Product, records: Any) -> Iterator[Goal]:
    for number, record in enumerate(records):
        attributes = tuple(map(_text, record["instruction_attributes"]))
        if not attributes:
            continue
        draws = Random(f"webshop/limit/{product.asin}/{number}")
        limit = price_limit(product.price(), draws)
        options = record["instruction_options"]
        pairs = options.items() if isinstance(options, Mapping) else map(_text, options)
        yield Goal.of(
            product,
            instruction=_text(record["instruction"]).strip("."),
            attributes=attributes,
            options=tuple(pairs),
            limit=limit,
        )


def _text(value: Any) -> str:
    if not isinstance(value, str):
        raise TypeError(f"expected text, got {value!r}"[:120])
    return value
