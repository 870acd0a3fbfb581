"""The programs and commands of docs/rules.md run, and its tables name what there is."""

import dataclasses
import re
import shlex
from pathlib import Path
from typing import get_args

import pytest

from experiments.joint_rules.config import ARMS
from experiments.joint_rules.places import place_named
from experiments.joint_rules.training import check_start
from jerp import cli
from jerp.rules.edits import EditOp
from jerp.storage.rule_documents import pool_hash
from jerp.storage.rule_fields import PoolRule
from jerp.storage.rule_files import read_pool
from jerp.storage.rule_history import LedgerOp, RuleEdit, RuleScores
from jerp.storage.rule_markdown import pool_from_markdown
from jerp.training.joint import RuleConfig
from tests.pages import run_program

PAGE = (Path(__file__).parents[2] / "docs" / "rules.md").read_text(encoding="utf-8")
POOL, LEDGER = re.findall(r"```python\n(.+?)```", PAGE, re.DOTALL)
[COMMANDS] = re.findall(r"```bash\n(.+?)```", PAGE, re.DOTALL)
MARKDOWN, WORDS = re.findall(r"```markdown\n(.+?)```", PAGE, re.DOTALL)


@pytest.fixture
def names(tmp_path, monkeypatch, capsys):
    """What the first program defines and prints, run in a folder of its own."""
    monkeypatch.chdir(tmp_path)
    defined = {}
    run_program(POOL, "rules.md", defined)
    defined["printed"] = capsys.readouterr().out
    return defined


def test_the_first_program_puts_the_best_rules_into_a_prompt(names):
    block = (
        "Rules:\n"
        "- When the mug in your hand is cold, go to the microwave.\n"
        "- When the microwave is closed, open it.\n"
    )
    assert names["printed"] == f"{block}\n{pool_hash(names['document'])}\n"
    assert read_pool("rules.json") == names["document"]
    assert len(names["document"].pools["put hot"]) == 2


def test_the_commands_run(names, capsys):
    lines = COMMANDS.splitlines()
    assert len(lines) == 5
    for line in lines:
        assert cli.main(shlex.split(line)[1:]) == 0, line
    shown = capsys.readouterr().out
    assert "no difference" in shown and "3 rules of 1 task key\n" in shown


def test_the_ledger_of_the_page(names, capsys):
    run_program(LEDGER, "rules.md", names)
    assert capsys.readouterr().out == (
        "('0f3a91c2',) ['Heat it.', 'When it is cold, heat it.']\n"
    )


def test_the_markdown_of_the_page_can_be_read():
    document = pool_from_markdown(MARKDOWN)
    assert [len(rules) for rules in document.pools.values()] == [2, 0]
    assert document.pools["put hot"][0].uses == 5


def test_the_rules_for_a_house_can_be_begun_with():
    document = pool_from_markdown(WORDS)
    assert len(document.pools) == 2
    check_start(Path("rules.md"), document, place_named("house"), ARMS.values())


@pytest.mark.parametrize("world", ["house", "shop"])
def test_the_words_of_rules_are_those_of_the_worlds(world):
    place = place_named(world)
    language, header = place.env.language, f"situation in the {world} | move in the "
    for number, words in enumerate((language.situations, language.moves), 1):
        cells = column(f"{header}{world}", number)
        assert tuple(filter(None, cells)) == words[1:]
    types = PAGE.partition(f"Of the {world}, whose types are ")[2].partition(":")[0]
    assert tuple(re.findall("`(.+?)`", types)) == place.types


def column(header, number=1):
    """The cells of a column of the table that begins with `header`."""
    rows = PAGE.partition(f"| {header} |")[2].partition("\n\n")[0].splitlines()[2:]
    return [row.strip("|").split("|")[number - 1].strip() for row in rows]


def test_the_tables_name_every_field_and_edit():
    fields = [f"`{field.name}`" for field in dataclasses.fields(PoolRule)]
    assert column("field of a rule") == fields
    rows = dataclasses.fields(RuleEdit), dataclasses.fields(RuleScores)
    known = dict.fromkeys(["row", "kind", *(f.name for row in rows for f in row)])
    table = PAGE.partition("## rules.jsonl")[2].partition("\n\n`read_ledger`")[0]
    assert re.findall(r"^\| `(\w+)` \|", table, re.MULTILINE) == [*known]
    edits = [re.findall(r"\w+", cell)[0] for cell in column("edit")]
    assert sorted(edits) == sorted(op.name for op in EditOp)
    assert all(f"`{op}" in PAGE for op in get_args(LedgerOp))


def test_the_numbers_of_the_edits_are_the_defaults():
    default = RuleConfig(num_rules=1)
    said = " ".join(PAGE.split())
    scores = dict(zip(column("edit"), column("edit", 3), strict=True))
    assert float(scores["`ADD(z)`"]) == default.initial_score
    assert scores["`EDIT(q, z)`"] == f"+ {default.edit_bonus:g}"
    assert scores["`UPVOTE(q)`"] == f"+ {default.upvote:g}"
    assert scores["`DOWNVOTE(q)`"] == (
        f"- {default.downvote:g}; - {default.full_downvote:g} where the pool is full"
    )
    assert f"as many rules as stay, {default.capacity}, is full" in said
    assert f"then those beyond the best {default.capacity}," in said
    assert f"a score of {default.min_score:g} or less go" in said
