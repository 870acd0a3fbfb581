"""WebShop's score of a purchase, as its code has it."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from jerp.domains.webshop.products import Goal, Product
from jerp.domains.webshop.words import coloured, nouns_of, similar

__all__ = [
    "ALIKE",
    "NounsOf",
    "attribute_matches",
    "option_matches",
    "purchase_reward",
    "type_reward",
]

NounsOf = Callable[[str], Sequence[str]]

ALIKE = 85
"""Attributes and options that are more alike match."""


def purchase_reward(
    bought: Product,
    chosen: Sequence[str],
    goal: Goal,
    *,
    nouns: NounsOf = nouns_of,
) -> float:
    """The score of a purchase, in [0, 1].

        r = r_type · (m_A + m_O + [price ≤ limit]) / (|A| + |O| + 1)

    with `m_A` of the goal's attributes `A` and `m_O` of its options `O` matched.

    Args:
      bought: product.
      chosen: values of the options that were chosen.
      goal: what was wanted.
      nouns: see `type_reward`.

    Reference: Yao et al., "WebShop: Towards Scalable Real-World Web Interaction with
    Grounded Language Agents", arXiv 2207.01206, and its code.
    """
    matched = attribute_matches(bought, goal.attributes)
    matched += option_matches(chosen, goal.options)
    matched += bought.price() <= goal.limit
    parts = len(goal.attributes) + len(goal.options) + 1
    return type_reward(bought, goal, nouns=nouns) * matched / parts


def type_reward(bought: Product, goal: Goal, *, nouns: NounsOf = nouns_of) -> float:
    """Whether what was bought is of the type that was wanted: 0, 0.1, 0.5 or 1.

    With the share `s` of the nouns of the goal's title, each as often as it stands
    there, that stand in the title of what was bought (0.2 of none):

        0    if s = 0
        0.1  if s < 0.1
        1    if s > 0.2, or the queries are equal, or two categories are
        0.5  else

    Args:
      bought: product.
      goal: what was wanted.
      nouns: of a title; see `jerp.domains.webshop.words.nouns_of` for what the default
        does other than the official score, to which a tagger can be handed in here.
    """
    wanted = nouns(goal.title)
    common = len(set(wanted) & set(nouns(bought.title)))
    share = common / len(wanted) if wanted else 0.2
    if share == 0:
        return 0.0
    if share < 0.1:
        return 0.1
    paths = _parts(bought.product_category) & _parts(goal.product_category)
    alike = share > 0.2 or bought.query == goal.query or len(paths) >= 2
    return 1.0 if alike else 0.5


def _parts(path: str) -> set[str]:
    return {part.strip() for part in path.split("›")}


def attribute_matches(bought: Product, wanted: Sequence[str]) -> int:
    """How many attributes a product has, or says it has in any of its texts.

    Args:
      bought: product; one without attributes has "DUMMY_ATTR" in the official score.
      wanted: attributes.
    """
    texts = (bought.title, " ".join(bought.features), bought.description)
    lowered = [text.lower() for text in texts]
    return sum(
        any(similar(own, attribute) > ALIKE for own in bought.attributes)
        or any(attribute in text for text in lowered)
        for attribute in wanted
    )


def option_matches(
    chosen: Sequence[str], wanted: Sequence[str | tuple[str, str]]
) -> int:
    """How many of the wanted options are matched by one that was chosen.

    Args:
      chosen: values.
      wanted: values, or pairs of a name and a value.
    """
    ours = [coloured(value) for value in chosen]
    return sum(
        any(similar(value, coloured(option)) > ALIKE for value in ours)
        for option in wanted
    )
