"""Files in the form of WebShop's, with products and wishes of our own."""

import json


def item(asin, name, **more):
    """A record of the list of products."""
    return {
        "asin": asin,
        "name": name,
        "category": "office",
        "query": " Desk Lamp ",
        "product_category": "Office › Lamps",
        "full_description": "Lights what is on a desk.",
        "small_description": ["With a switch", "Made of brass"],
        "pricing": "$1,040.50",
        "customization_options": None,
        "images": ["https://example.org/lamp.png"],
        "reviews": [],
        **more,
    }


OPTIONS = {
    "Color": [{"value": " Dark Blue ", "image": None}, {"value": "Red/Gold"}],
    "Size": [{"value": "Small"}, {"value": "dark blue"}],
    "Gone": None,
}
ITEMS = [
    item("A000000001", "Brass Lamp", customization_options=OPTIONS),
    item("A000000001", "The same key again"),
    item("nan", "No key"),
    item("A0000000011", "A key that is too long"),
    item("A000000002", "Oak Lamp", pricing="$10 - $19.50 ", small_description="Oak"),
    item("A000000003", "Tin Lamp", pricing=None, full_description=None),
]
ATTRIBUTES = {
    "A000000001": {"attributes": ["easy assembly"], "instruction": None},
    "A000000002": {"attributes": ["solid oak", "dimmable"]},
    "A000000009": {"attributes": []},
}
HUMAN = {
    "A000000001": [
        {
            "instruction": "i want a lamp that is easy to assemble.",
            "instruction_attributes": ["easy assembly"],
            "instruction_options": ["red | gold", "small"],
            "worker_id": "w",
        },
        {
            "instruction": "no attributes",
            "instruction_attributes": [],
            "instruction_options": [],
        },
    ],
    "A000000002": [
        {
            "instruction": "an oak lamp",
            "instruction_attributes": ["solid oak"],
            "instruction_options": {"color": "purple"},
        }
    ],
    "A000000003": [
        {
            "instruction": f"tin lamp number {i}",
            "instruction_attributes": ["brass"],
            "instruction_options": [],
        }
        for i in range(1600)
    ],
}


def write_files(folder, *, items=ITEMS, attributes=ATTRIBUTES, human=HUMAN, end=""):
    """The three files of a thousand products, in a folder; returns it."""
    for name, content in (
        (f"items_shuffle{end}.json", items),
        (f"items_ins_v2{end}.json", attributes),
        ("items_human_ins.json", human),
    ):
        (folder / name).write_text(json.dumps(content, indent=1, ensure_ascii=False))
    return folder
