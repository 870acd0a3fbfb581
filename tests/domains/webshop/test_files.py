"""WebShop's files: what is read of them, in which order, and what is wrong."""

import hashlib
import json
from random import Random

import pytest

from jerp.domains.webshop import json_files
from jerp.domains.webshop.files import data_folder, read_catalogue
from jerp.domains.webshop.json_files import read_mapping, read_records
from jerp.domains.webshop.products import UNLIMITED
from jerp.errors import InputError, StorageError
from tests.domains.webshop.files import ATTRIBUTES, HUMAN, ITEMS, item, write_files


def nothing(piece):
    """Sees a piece of a file."""


def test_products_are_read_as_officially(tmp_path):
    catalogue = read_catalogue(write_files(tmp_path))
    assert [*catalogue.products] == ["A000000001", "A000000002", "A000000003"]
    brass, oak, tin = catalogue.products.values()
    assert (brass.title, brass.query, brass.pricing) == (
        *("Brass Lamp", "desk lamp"),
        (1040.5,),
    )
    assert brass.options == {
        "color": ("dark blue", "red | gold"),
        "size": ("small", "dark blue"),
    }
    assert (oak.pricing, oak.features) == ((10.0, 19.5), ("Oak",))
    assert (tin.pricing, tin.description, tin.price()) == ((), "", 100)
    assert tin.attributes == ("DUMMY_ATTR",) and oak.attributes[1] == "dimmable"
    assert catalogue.version.startswith("3-")


def test_goals_are_shuffled_and_split_as_officially(tmp_path):
    catalogue = read_catalogue(write_files(tmp_path))
    order = list(range(1602))
    Random(233).shuffle(order)
    assert len(catalogue.goals) == 1602
    for number in range(0, 1602, 100):
        if order[number] > 1:
            said = catalogue.goals[number].instruction
            assert said.startswith(f"tin lamp number {order[number] - 2}, and price")
    sizes = {name: (r.start, r.stop) for name, r in catalogue.splits.items()}
    assert sizes == {"train": (1500, 1602), "eval": (500, 1500), "test": (0, 500)}
    brass = catalogue.goals[order.index(0)]
    assert brass.instruction == "i want a lamp that is easy to assemble"
    assert (brass.options, brass.limit) == (("red | gold", "small"), UNLIMITED)
    oak = catalogue.goals[order.index(1)]
    assert oak.options == (("color", "purple"),) and oak.limit > 19.5
    # Again the same: what is drawn depends on nothing else.
    assert read_catalogue(tmp_path) == catalogue


def test_all_products_go_before_a_thousand(tmp_path):
    write_files(tmp_path, end="_1000", human={})
    small = read_catalogue(tmp_path)
    assert not small.goals and not any(small.splits.values())
    write_files(tmp_path, items=ITEMS[:1])
    large = read_catalogue(tmp_path)
    assert [*large.products] == ["A000000001"] and large.version != small.version
    assert [*map(len, large.splits.values())] == [0, 0, 1]


@pytest.mark.parametrize("piece", [1, 7, 1 << 20])
def test_lists_are_read_in_pieces(tmp_path, monkeypatch, piece):
    monkeypatch.setattr(json_files, "_PIECE", piece)
    content = [{"a": 'ü€ ] } " \\', "b": [1, {"c": []}]}, {}, {"d": "["}]
    path, digest = tmp_path / "list.json", hashlib.sha256()
    path.write_text(f" \n{json.dumps(content, ensure_ascii=False)}\n")
    assert [*read_records(path, digest.update)] == [*enumerate(content, 1)]
    assert digest.hexdigest() == hashlib.sha256(path.read_bytes()).hexdigest()
    path.write_text(" [ ] ")
    assert [*read_records(path, nothing)] == []


@pytest.mark.parametrize(
    ("text", "number"),
    [
        ("", 1),
        ('{"a": 1}', 1),
        ("[1, 2]", 1),
        ('[{"a": 1}, {"a": ', 2),
        ('[{"a": 1}, {"a" 1}, {"a": 2}]', 2),
        ('[{"a": 1}', 2),
        ('[{"a": 1}] more', 2),
    ],
)
def test_what_is_no_list_is_said(tmp_path, text, number):
    path = tmp_path / "list.json"
    path.write_text(text)
    with pytest.raises(InputError, match=rf"list\.json, record {number}: expected a"):
        list(read_records(path, nothing))


def test_records_that_do_not_end_are_given_up(tmp_path, monkeypatch):
    monkeypatch.setattr(json_files, "_PIECE", 10)
    monkeypatch.setattr(json_files, "_LONGEST", 100)
    path, read = tmp_path / "list.json", []
    path.write_text('[{"a": "' + "x" * 10_000)
    with pytest.raises(InputError, match="record 1"):
        list(read_records(path, read.append))
    assert len(b"".join(read)) < 200


def test_mistakes_are_named(tmp_path, monkeypatch):
    with pytest.raises(StorageError, match=r"items_ins_v2_1000\.json: No such file"):
        read_catalogue(tmp_path)
    for records, wrong in (
        ([item("A1", "Lamp"), {"asin": "A2"}], "record 2: expected a product"),
        ([item("A1", None)], "record 1: expected a product .* got None"),
        ([item("A1", "Lamp", pricing="12")], r"expected \$ and a price, got '12'"),
        ([item("A1", "Lamp", customization_options={"x": [{}]})], "KeyError: 'value'"),
    ):
        write_files(tmp_path, items=records)
        with pytest.raises(InputError, match=wrong):
            read_catalogue(tmp_path)
    write_files(tmp_path, human={**HUMAN, "A000000002": [{"instruction": "x"}]})
    with pytest.raises(
        InputError, match=r"items_human_ins\.json, A000000002: expected"
    ):
        read_catalogue(tmp_path)
    write_files(tmp_path, attributes=[*ATTRIBUTES])
    with pytest.raises(InputError, match="expected an object of JSON, got a list"):
        read_catalogue(tmp_path)
    (tmp_path / "odd.json").write_bytes(b"{\xff}")
    with pytest.raises(InputError, match="expected UTF-8"):
        read_mapping(tmp_path / "odd.json", nothing)
    (tmp_path / "odd.json").write_text("{")
    with pytest.raises(InputError, match=r"odd\.json: expected an object of JSON"):
        read_mapping(tmp_path / "odd.json", nothing)
    with pytest.raises(StorageError, match="data: expected the folder"):
        data_folder(tmp_path / "none")
    monkeypatch.setenv("JERP_WEBSHOP", str(tmp_path))
    assert data_folder(None) == tmp_path
    monkeypatch.delenv("JERP_WEBSHOP")
    assert data_folder(None) is None
