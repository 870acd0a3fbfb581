"""The shop's pages, walked by hand."""

import pytest

from jerp.domains.webshop.products import Product
from jerp.domains.webshop.visit import Visit, label_of

PRODUCTS = [
    Product(
        asin=f"A{i}",
        category="office",
        query="lamp",
        product_category="Office",
        title=f"Lamp {i}",
        description="Lights.",
        features=("One", "Two"),
        attributes=("bright",),
        options={
            "color": ("red", "blue"),
            "shade": ("blue", "Features", "a [b] c", "x\u200e  y"),
        },
        pricing=(5.0,),
    )
    for i in range(23)
]


@pytest.fixture
def visit():
    bought = []

    def judge(product, chosen):
        bought.append((product.asin, *chosen))
        return 0.5

    made = Visit("Buy a LAMP", lambda words: PRODUCTS[: len(words)], judge, 40)
    made.bought = bought
    return made


def walk(visit, *lines):
    """The last outcome; all commands have to be known."""
    for line in lines:
        outcome = visit.act(line)
        assert outcome.known, line
    return outcome


def clicks(visit):
    return [line.removeprefix("click[")[:-1] for line in visit.admissible()]


def test_from_the_search_to_the_purchase(visit):
    assert str(visit.page) == "WebShop [SEP] Instruction: [SEP] Buy a LAMP [SEP] Search"
    assert visit.admissible() == ("search[buy a lamp]",)
    found = walk(visit, "search[brass lamp with]")
    assert (
        "Page 1, 15 results in all [SEP] Next > [SEP] A0 [SEP] Lamp 0 [SEP] $5.0"
        in (found.text)
    )
    assert clicks(visit) == ["back to search", "next >", *(f"a{i}" for i in range(10))]
    second = walk(visit, "click[Next >]")
    assert "< Prev [SEP] Next > [SEP] A10 [SEP]" in second.text
    assert "A9" not in second.text and second.text.endswith(
        "A14 [SEP] Lamp 14 [SEP] $5.0"
    )
    item = walk(visit, "click[A12]")
    assert "color [SEP] red [SEP] blue [SEP] shade [SEP] blue" in item.text
    # As officially options are last: whoever lists only some drops no button.
    assert clicks(visit) == [
        *("back to search", "< prev", "description", "features", "reviews", "buy now"),
        *("red", "blue", "a [b] c", "x y"),
    ]
    chosen = walk(visit, "click[red]")
    assert "color (chosen: red) [SEP] red" in chosen.text and not chosen.ended
    walk(visit, "click[description]")
    assert clicks(visit) == ["back to search", "< prev"]
    assert walk(visit, "click[< prev]").text == chosen.text
    end = walk(visit, "click[buy now]")
    assert (end.score, end.success, end.ended) == (0.5, False, True)
    assert "0.50" in end.text and visit.bought == [("A12", "red")]


def test_the_more_of_a_product(visit):
    item = walk(visit, "search[a]", "click[a0]").text
    for name, text in (("description", "Lights."), ("features", "One [SEP] Two")):
        assert walk(visit, f"click[{name}]").text.endswith(f"< Prev [SEP] {text}")
        assert walk(visit, "click[< prev]").text == item
    assert walk(visit, "click[reviews]").text.endswith("No reviews")


def test_options(visit):
    walk(visit, "search[a]", "click[a0]", "click[blue]")
    # Both have it, the later one takes it, and another value replaces the first.
    assert "shade (chosen: blue)" in str(visit.page)
    assert "color (chosen" not in str(visit.page)
    walk(visit, "click[a [b] c]")
    assert "shade (chosen: a [b] c)" in str(visit.page)
    walk(visit, "click[x y]", "click[red]", "click[blue]", "click[x y]")
    # An option that is called like a button cannot be chosen.
    assert walk(visit, "click[features]").text.endswith("Two")
    walk(visit, "click[< prev]", "click[buy now]")
    assert visit.bought == [("A0", "x\u200e  y", "red")]


def test_choices_are_forgotten_where_one_goes_back(visit):
    walk(visit, "search[brass lamp]", "click[next >]")
    walk(visit, *[f"click[{label}]" for label in ("< prev", "a3", "red", "< prev")])
    assert "Page 1" in str(visit.page)
    walk(visit, "click[a3]")
    assert "chosen" not in str(visit.page)
    walk(visit, "click[blue]", "search[a]")
    assert clicks(visit) == ["back to search", "next >", "a0"]
    assert walk(visit, "click[next >]").text.endswith("< Prev [SEP] Next >")
    walk(visit, "click[back to search]")
    assert visit.admissible() == ("search[buy a lamp]",)


@pytest.mark.parametrize(
    "line",
    [
        *("lamp", "search", "search[]", "click[]", "click[a1]", "Search[a]"),
        *("click[buy now]", "click[red]", "click[search]", "click[a0", "buy[a0]"),
    ],
)
def test_what_is_not_possible_shows_the_same_page(visit, line):
    walk(visit, "search[a]")
    before = str(visit.page)
    outcome = visit.act(line)
    assert not outcome.known and not outcome.ended
    assert outcome.text == f"Not possible here: {line}\n{before}"


def test_commands_are_counted():
    visit = Visit("x", lambda words: PRODUCTS, lambda product, chosen: 1.0, 3)
    assert [visit.act(line).ended for line in ("no", "search[a]", "no")] == [
        *(False, False, True)
    ]
    visit = Visit("x", lambda words: PRODUCTS, lambda product, chosen: 1.0, 3)
    outcome = walk(visit, "search[a]", "click[a1]", "click[buy now]")
    assert outcome.success and outcome.score == 1 and outcome.ended


def test_labels():
    assert label_of(" A\u00a0B\u200e\n c ") == "a b c"
