"""Small files in DB-Bench's format, with tables of our own."""

import hashlib
import json
from typing import Any

COLUMNS = ["Ship", "Port", "Crew", 'Tons "t"']
ROWS = [
    ["Anna", "Kiel", "12", "1,200"],
    ["Berta", "Bergen", "7", "800"],
    ["Carla", "kiel", "9", "n/a"],
    ["Dora", "Århus", "31", ""],
]


def md5(text):
    return hashlib.md5(text.encode(), usedforsecurity=False).hexdigest()


def published(rows) -> str:
    """The published form of a table's hash, written down a second time."""
    parts = sorted(md5(",".join(row))[:5] for row in rows)
    return f"[('{md5(','.join(parts))}',)]"


def record(
    question, kind, statement, *, label=None, rows=None, table="Ships at sea"
) -> dict[str, Any]:
    found = {
        "description": question,
        "label": [statement] if rows is not None else label,
        "table": {
            "table_name": table,
            "table_info": {
                "columns": [{"name": name, "type": "INT"} for name in COLUMNS],
                "rows": ROWS,
            },
        },
        "type": [kind],
        "add_description": f"The table is {table}.",
    }
    if rows is None:
        return found | {"sql": {"query": statement, "length": len(statement)}}
    return found | {"answer_md5": published(rows)}


RECORDS = [
    record(
        "Which ships have their home in Kiel?",
        "other",
        "SELECT Ship FROM `Ships at sea` WHERE Port = 'Kiel'",
        label=["Carla", "Anna"],
    ),
    record(
        "How many people are aboard in all?",
        "aggregation-SUM",
        "SELECT SUM(Crew) FROM `Ships at sea`",
        label=["59.0"],
    ),
    record(
        "Add the ship Emma of Turku, crew 4, 90 tons.",
        "INSERT",
        "INSERT INTO `Ships at sea` VALUES ('Emma', 'Turku', 4, 90)",
        rows=[*ROWS, ["Emma", "Turku", "4", "90"]],
    ),
    record(
        "Every ship of Kiel moves to Lübeck.",
        "UPDATE",
        "UPDATE `Ships at sea` SET Port = 'Lübeck' WHERE Port = 'KIEL'",
        rows=[
            ["Anna", "Lübeck", "12", "1,200"],
            ROWS[1],
            ["Carla", "Lübeck", "9", "n/a"],
            ROWS[3],
        ],
    ),
    record(
        "Strike Berta off.",
        "DELETE",
        "DELETE FROM `Ships at sea` WHERE Ship = 'Berta'",
        rows=[ROWS[0], *ROWS[2:]],
    ),
]


def write_files(folder, dev=RECORDS, standard=RECORDS[::-1]):
    for name, records in (("dev", dev), ("standard", standard)):
        lines = "".join(json.dumps(record) + "\n" for record in records)
        (folder / f"{name}.jsonl").write_text(lines, encoding="utf-8")
    return folder
