"""WebShop's score: by hand, by a slow reference, and at its limits."""

from dataclasses import asdict, replace
from random import Random

import pytest

from jerp.domains.webshop.generated import generate_catalogue
from jerp.domains.webshop.products import UNLIMITED, Goal, Product, price_limit
from jerp.domains.webshop.reward import (
    attribute_matches,
    option_matches,
    purchase_reward,
    type_reward,
)
from jerp.domains.webshop.words import COLOURS, coloured, nouns_of, similar
from tests.reference import webshop as reference

LAMP = Product(
    asin="L1",
    category="office",
    query="desk lamp",
    product_category="Office › Desk › Lamps",
    title="Brass Reading Lamp",
    description="It dims without flicker.",
    features=("Takes little space", "Made of brass"),
    attributes=("easy assembly", "energy saving"),
    options={"color": ("dark blue", "red"), "size": ("small", "x-large")},
    pricing=(40.0,),
)
GOAL = Goal.of(
    LAMP,
    instruction="A lamp",
    attributes=("energy savings", "little space"),
    options=("navy blue", "small"),
    limit=50.0,
)


def test_a_purchase_by_hand():
    # Attributes: likeness 2·13/27 = 96; and a feature says it. Options: both are blue.
    assert purchase_reward(LAMP, ("dark blue", "small"), GOAL) == 1
    assert purchase_reward(LAMP, ("red", "small"), GOAL) == 4 / 5
    assert purchase_reward(LAMP, (), GOAL) == 3 / 5
    assert purchase_reward(replace(LAMP, pricing=(51.0,)), (), GOAL) == 2 / 5
    bare = replace(LAMP, attributes=("DUMMY_ATTR",), features=())
    assert purchase_reward(bare, ("dark blue",), GOAL) == 2 / 5
    other = replace(LAMP, title="Oak Shelf")
    assert purchase_reward(other, ("dark blue", "small"), GOAL) == 0


@pytest.mark.parametrize(
    ("title", "query", "path", "expected"),
    [
        ("Brass Reading Lamp", "shelf", "A", 1),  # 3 of 3 nouns
        ("Lamp", "shelf", "A", 1),  # 1 of 3
        ("Oak Shelf", "desk lamp", "Office › Desk › Lamps", 0),  # none, alike or not
    ],
)
def test_types_by_hand(title, query, path, expected):
    bought = replace(LAMP, title=title, query=query, product_category=path)
    assert type_reward(bought, GOAL) == expected


@pytest.mark.parametrize(
    ("number", "query", "path", "expected"),
    [
        (4, "shelf", "A", 1),  # 1/4 > 0.2
        (5, "shelf", "A", 0.5),  # 1/5 is not more than 0.2
        (5, "desk lamp", "A", 1),
        (5, "shelf", "Office › Lamps", 1),
        (5, "shelf", " Lamps ›Office›Lamps", 1),
        (5, "shelf", "Lamps › Lamps", 0.5),
        (10, "shelf", "A", 0.5),
        (11, "shelf", "A", 0.1),  # 1/11 < 0.1
        (11, "desk lamp", "Office › Desk › Lamps", 0.1),
    ],
)
def test_types_by_the_share_of_nouns(number, query, path, expected):
    letters = "abcdefghijk"[:number]
    goal = replace(GOAL, title=letters)
    bought = replace(LAMP, title="a", query=query, product_category=path)
    assert type_reward(bought, goal, nouns=tuple) == expected


def test_nouns_can_be_taken_by_another_tagger():
    # A word that stands twice is found once; of no nouns the share is 0.2.
    goal = replace(GOAL, title="x x x x x x y")
    bought = replace(LAMP, title="x", query="", product_category="")
    assert type_reward(bought, goal, nouns=str.split) == 0.5
    assert type_reward(bought, goal, nouns=lambda title: ()) == 0.5
    assert type_reward(LAMP, goal, nouns=lambda title: ()) == 1


def test_likeness_by_hand():
    assert similar("Pack of 12", "12-pack, of") == 100
    assert similar("large", "x-large") == 100  # its words are among the others
    assert similar("essential oil", "essential oils") == 96  # 2·13/27
    assert similar("light", "slight") == 91  # 2·5/11
    assert similar("", "") == similar("!?", "a") == similar("é", "a") == 0
    assert similar("größe", "gre") == 100  # letters of Latin-1 count as none


def test_colours_by_hand():
    assert coloured("navy blue") == "blue"  # the first in the order of the alphabet
    assert coloured("standard") == "tan"  # as officially
    assert coloured("x-large") == "x-large"
    assert coloured(("color", "red")) == "red"
    assert coloured(("color", "dark red")) == "color dark red"
    assert list(COLOURS) == sorted(COLOURS)
    assert option_matches(["dark blue"], [("color", "dark blue")]) == 1
    assert option_matches(["dark blue"], [("color", "dark red")]) == 0
    assert option_matches(["x-large"], [("size", "x-large")]) == 1


def test_matches_are_counted_by_what_is_wanted():
    assert attribute_matches(LAMP, ("brass", "brass", "glass")) == 2
    assert attribute_matches(LAMP, ("flicker.", "Brass")) == 1  # texts are lowered
    assert option_matches(["small", "small"], ["small"]) == 1
    assert option_matches([], ["small"]) == option_matches(["small"], []) == 0


def test_scores_equal_the_slow_reference():
    catalogue = generate_catalogue()
    products, random = list(catalogue.products.values()), Random(0)
    found = set()
    for goal in random.sample(catalogue.goals, 60):
        alike = [p for p in products if p.query == goal.query]
        for bought in (*random.sample(alike, 3), random.choice(products)):
            chosen = [random.choice(values) for values in bought.options.values()]
            if random.random() < 0.5:
                chosen += [option for option in goal.options[:1]]
            score = purchase_reward(bought, chosen, goal)
            assert score == pytest.approx(
                reference.reward(
                    asdict(bought),
                    bought.price(),
                    chosen,
                    asdict(goal),
                    goal.limit,
                    colours=COLOURS,
                    nouns=nouns_of,
                )
            )
            found.add(score)
    assert len(found) > 8 and min(found) >= 0 and max(found) <= 1


def test_likeness_equals_the_slow_reference():
    random = Random(1)
    letters = "aab  b-Cé"
    for _ in range(400):
        a, b = ("".join(random.choices(letters, k=random.randint(0, 9))) for _ in "ab")
        assert similar(a, b) == reference.similar(a, b)
        assert similar(a, a) in (0, 100)


def test_limits_of_prices():
    random = Random(0)
    drawn = {price_limit(34.0, random) for _ in range(50)}
    assert drawn == {50.0, 60.0, 70.0}  # the larger of two of 40, 50, 60, 70
    assert {price_limit(40.0, random) for _ in range(50)} == {60.0, 70.0, 80.0}
    assert price_limit(975.0, random) == 990.0
    assert price_limit(980.0, random) == price_limit(2000.0, random) == UNLIMITED
    ranged = replace(LAMP, pricing=(10.0, 20.0))
    assert 10 <= ranged.price() == ranged.price() <= 20
    assert ranged.price() != replace(ranged, asin="L2").price()
    assert replace(LAMP, pricing=()).price() == 100
    assert (LAMP.tag, ranged.tag) == ("$40.0", "$10.0 to $20.0")
    assert GOAL.instruction == "A lamp, and price lower than 50.00 dollars"
