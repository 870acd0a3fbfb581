"""Rules and a policy together: numbers of made-up jobs, known beforehand."""

import io
import json
import re
from dataclasses import replace
from pathlib import Path

import jax
import numpy as np
import pytest
from matplotlib.figure import Figure
from rich.console import Console

from experiments.joint_rules import analysis, main
from experiments.joint_rules.config import ARMS, SIZES, JerpConfig
from experiments.joint_rules.figures import write_figures
from experiments.joint_rules.places import NUM_RULES, place_named
from experiments.joint_rules.report import SMOKE, document
from experiments.joint_rules.tables import (
    along_rows,
    removal_rows,
    rule_rows,
    untold_rows,
)
from jerp.envs.rule_language import sentence
from jerp.errors import ConfigError, StorageError
from jerp.storage.checkpoints import Checkpoints
from jerp.storage.documents import write_json
from jerp.storage.rule_documents import PoolDocument, PoolRule, pool_hash
from jerp.storage.rule_files import write_pool
from jerp.storage.rule_history import RuleEdit
from jerp.storage.rule_json import pool_to_json
from jerp.storage.rule_ledger import RuleLedger
from jerp.storage.tensors import save_tree

PLACE = place_named("house")
KINDS = np.arange(24, dtype=np.int32) % len(PLACE.types)
TASKS = np.arange(24, dtype=np.int32)
SOLVED = {"rules-only": (12, 0), "grpo": (8, 8), "jerp": (18, 6)}
"""Made up: solved tasks of 24 by arm, with its rules and without."""

TAKE, WRONG = (1, 14), (1, 17)
"""Situation and move: within reach, take it; within reach, open it."""

RIGHT_RULE = sentence(PLACE.env.language, *TAKE)
WRONG_RULE = sentence(PLACE.env.language, *WRONG)
FOREIGN = pool_to_json(PoolDocument({"pick": (PoolRule(WRONG_RULE, 5),)})).encode()


def outcomes(solved):
    """Every sample of the first tasks succeeds; half of that as score."""
    success = np.tile(np.arange(24)[:, None] < solved, (1, 4))
    return {"success": success, "score": success.astype(np.float32) / 2}


def made_up(folder, config):
    """Jobs that are done."""
    for seed in range(config.num_seeds):
        for arm in ("base", *config.sizes.arms):
            where = folder / "house" / f"seed-{seed}" / arm
            where.mkdir(parents=True)
            process = {"peak_memory_bytes": 2**20, "compilations": 3}
            write_json(where / "process.json", {**process, "compile_seconds": 1.5})
            (_base if arm == "base" else _arm)(where, arm, seed)


def _base(where, arm, seed):
    made = np.zeros((len(PLACE.types), *PLACE.rule_sizes), np.int32)
    # 30 visits over both seeds; of the type "look" there are too few.
    made[:, *TAKE] = 15
    made[1, *TAKE] = 5
    told = {"without": outcomes(0), "right": outcomes(12), "wrong": outcomes(0)}
    split = {"kind": KINDS, "task": TASKS, **told}
    found = {"oracle": {"made": made, "possible": made[0]}}
    save_tree(
        where / "evaluation.safetensors", {**found, "seen": split, "unseen": split}, {}
    )


def _arm(where, arm, seed):
    solved, alone = SOLVED[arm]
    told = {"with": outcomes(solved), "without": outcomes(alone)}
    told |= {"kind": KINDS, "task": TASKS}
    seen, unseen = ({**told, "leaked": np.int32(seed * n)} for n in (1, 2))
    found = {"seen": seen, "unseen": unseen, "removal": _removal(arm, seed)}
    save_tree(where / "evaluation.safetensors", found, {})
    for number, probability in ((0, 0.25), (2, 0.5), (4, 0.75)):
        following = np.full((6, *PLACE.rule_sizes), np.nan, np.float32)
        following[:, *TAKE] = np.log(probability)
        success = {"with": outcomes(solved)["success"][:, :1]}
        success["without"] = np.arange(24)[:, None] < number * 6
        along = {"kind": KINDS, "following": following, **success}
        save_tree(where / f"along-{number}.safetensors", along, {})
    gap = {} if arm == "rules-only" else {"sampler_gap": 1e-6}
    rows = [{"step": i, "success": 0.5, **gap} for i in range(4)]
    text = "".join(json.dumps(row) + "\n" for row in rows)
    (where / "metrics.jsonl").write_text(text)
    notes = ["it went"] if arm == "grpo" and seed else []
    write_json(where / "warnings.json", {"warnings": notes})
    pool = _pool(arm, seed)
    write_pool(where / "pool.json", pool)
    rows = [RuleEdit(0, "pick", "START", 7, RIGHT_RULE)] * (arm == "jerp")
    # Born in 1, as the pool says, it got its text in 3.
    rows += [
        RuleEdit(3, key, "EDIT", 8, RIGHT_RULE, parents=(7,)) for key in pool.pools
    ]
    RuleLedger(where / "rules.jsonl").write(rows)
    known = {"pool_hash": pool_hash(pool), "ledger_rows": len(rows)}
    with Checkpoints(where / "checkpoints") as checkpoints:
        checkpoints.save(4, {"x": np.zeros(1)}, known)


def _pool(arm, seed):
    if arm != "jerp":
        return PoolDocument({})
    right = PoolRule(RIGHT_RULE, 5, born=1, uses=10, wins=4, sources=("a1b2",))
    wrong = PoolRule(WRONG_RULE, 2, born=1)
    if seed:
        return PoolDocument({"pick": (right,), "look": (right,)})
    return PoolDocument({"pick": (right, PoolRule("Take 2.", 1)), "heat": (wrong,)})


def _removal(arm, seed):
    rule = np.full((6, NUM_RULES), -1, np.int32)
    if arm != "jerp":
        return {"rule": rule}
    # The second costs much; of the third's type no task was drawn.
    rule[0, :2], rule[3, 0] = (0, 1), 2
    loss = np.full((3, 6, NUM_RULES), np.nan, np.float32)
    loss[:, 0, 0], loss[:, 0, 1] = (0.0, -0.01, 0.01), (0.25, 0.2, 0.3)
    gone = np.zeros((6, NUM_RULES), bool)
    gone[0, 0] = True
    retired = {
        name: outcomes(solved)["success"]
        for name, solved in (("retired", 12), ("retired_in_turn", 15))
    }
    return {"rule": rule, "loss": loss, "absorbed": gone, "in_turn": gone, **retired}


@pytest.fixture(scope="module")
def done(tmp_path_factory):
    folder = tmp_path_factory.mktemp("joint") / "run"
    config = JerpConfig(out=folder, seeds=2)
    smoke = replace(SIZES["smoke"], arms=tuple(SOLVED))
    text = io.StringIO()
    with pytest.MonkeyPatch.context() as patch:
        patch.setitem(SIZES, "default", smoke)
        _begin_only(config)
        made_up(folder, config)
        results = main.run(config, console=Console(file=text, width=80))
        yield config, results, text.getvalue()


def _begin_only(config):
    """Stops right behind the manifest."""

    def stop(*_):
        raise StopIteration

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(main, "_in_processes", stop)
        with pytest.raises(StopIteration):
            main.run(config, console=Console(file=io.StringIO()))


def test_success_of_each_type_and_of_all(done):
    results = done[1]["worlds"]["house"]
    assert results["held"] == ["heat", "cool"]
    jerp = results["arms"]["jerp"]["splits"]["seen"]
    assert jerp["with"]["all"]["point"] == pytest.approx(18 / 24)
    assert jerp["without"]["all"]["point"] == pytest.approx(6 / 24)
    assert jerp["with"]["by_seed"] == pytest.approx([18 / 24] * 2)
    assert jerp["score"]["point"] == pytest.approx(18 / 48)
    # Of 8 solved tasks each type has one, and the first two have two.
    grpo = results["arms"]["grpo"]["splits"]["unseen"]["with"]
    types = [one["point"] for one in grpo["types"]]
    assert types == pytest.approx([0.5, 0.5, 0.25, 0.25, 0.25, 0.25])
    base = results["base"]["unseen"]
    points = {told: base[told]["all"]["point"] for told in base}
    assert points == {"without": 0, "right": 0.5, "wrong": 0}


def test_differences_are_of_the_same_tasks(done):
    arms = done[1]["worlds"]["house"]["arms"]
    jerp = arms["jerp"]["splits"]["seen"]
    assert jerp["above_grpo"]["point"] == pytest.approx(10 / 24)
    assert jerp["above_grpo"]["low"] > 0.2
    assert jerp["above_grpo"]["by_seed"] == pytest.approx([10 / 24] * 2)
    assert jerp["above_varied"]["point"] == pytest.approx(10 / 24)
    assert jerp["rules_add"]["point"] == pytest.approx(12 / 24)
    assert "above_grpo" not in arms["grpo"]["splits"]["seen"]
    rules_only = arms["rules-only"]["splits"]["seen"]
    assert "above_varied" not in rules_only
    assert rules_only["above_grpo"]["point"] == pytest.approx(4 / 24)


def test_rules_are_held_against_the_oracle(done):
    """Two of five say what it does; one is of a type with too few visits."""
    rules = done[1]["worlds"]["house"]["arms"]["jerp"]["rules"]
    assert (rules["active"], rules["imperative"], rules["sources"]) == (5, 4, 3)
    assert (rules["judged"], rules["agree"]) == (4, 2)
    assert (rules["tried"], rules["as_good"]) == (5, 3)
    assert rules["disagree"] == [f"heat: {WRONG_RULE}", "pick: Take 2."]
    assert [rule["text"] for rule in rules["pools"]["pick"]] == [RIGHT_RULE, "Take 2."]
    assert rules["pools"]["look"] == []
    header, rows = rule_rows(done[1]["worlds"]["house"])
    shares = ["2 of 4 (50%)", "3 of 5 (60%)"]
    assert rows[1][:6] == ["JERP", "5", "4 of 5 (80%)", *shares, "3"]
    assert rows[0] == ["rules only", "0", *["0 of 0"] * 3, "3", "0 of 0"]
    assert rows[1][6] == "2 of 2 (100%)"
    assert len(header) == 7 and len(rows) == 2


def test_absorption(done):
    """Rules that nobody could follow in the oracle's steps have no probability."""
    house = done[1]["worlds"]["house"]
    rules = house["arms"]["jerp"]["rules"]
    following = rules["following"]
    assert (following["rules"], following["iterations"]) == (3, [0, 2, 4])
    # Written at 3, looked at last at 2.
    assert following["at_birth"] == pytest.approx(0.5)
    assert following["now"] == pytest.approx(0.75)
    assert following["gain_nats"] == pytest.approx(np.log(1.5))
    assert following["curve"] == pytest.approx([0.25, 0.5, 0.75])
    removal = rules["removal"]
    assert (removal["rules"], removal["absorbed"], removal["margin"]) == (4, 2, 0.02)
    assert removal["loss_mean"] == pytest.approx(0.125)
    assert removal["loss_largest"] == pytest.approx(0.25)
    assert removal["retiring_changes"]["point"] == pytest.approx(-6 / 24)
    assert removal["retiring_in_turn_changes"]["point"] == pytest.approx(-3 / 24)
    assert house["arms"]["rules-only"]["rules"]["removal"]["rules"] == 0
    rows = removal_rows(house)[1]
    assert rows[1][:3] == ["JERP", ".75", ".25"]
    assert rows[1][4:6] == ["4", "2"] and rows[1][7] == "2"
    assert rows[1][6].startswith("-.250 [-.3") and rows[1][8].startswith("-.125 [")
    assert rows[0][4:] == ["0", "0", "-", "0", "-"]
    # Without a rule every arm here is alike.
    assert untold_rows(house)[1] == [["JERP", "3", ".50", ".75", ".75"]]


def test_curves(done):
    house = done[1]["worlds"]["house"]
    along = house["arms"]["jerp"]["along"]
    assert along["iterations"] == [0, 2, 4]
    assert along["with"] == pytest.approx([0.75] * 3)
    assert along["without"] == pytest.approx([0, 0.5, 1])
    rows = along_rows(house)[1]
    assert [row[:2] for row in rows] == [
        ["rules only", "yes"],
        ["rules only", "no"],
        ["GRPO", "no"],
        ["JERP", "yes"],
        ["JERP", "no"],
    ]


def test_what_processes_took_and_said(done):
    arms = done[1]["worlds"]["house"]["arms"]
    assert arms["grpo"]["warnings"] == ["seed 1: it went"]
    assert arms["grpo"]["sampler_gap"] == 1e-6
    assert "sampler_gap" not in arms["rules-only"]
    assert arms["jerp"]["peak_memory_bytes"] == 2**20


def test_report_figures_and_table_are_written(done):
    config, _, text = done
    report = (config.folder / "report.md").read_text()
    for name in ("rules only", "GRPO", "JERP"):
        assert name in report and name in text
    assert "heat*" in report and "pick*" not in report and "| 57.8 |" in report
    assert "JERP - GRPO: +.417 [" in report and "the paper: +.037" in report
    assert "All were empty." in report and SMOKE not in report
    assert f"  - 5: {RIGHT_RULE} (born 1, 4 of 10 episodes succeeded)" in report
    assert "note: grpo, seed 1: it went" in text
    assert (config.folder / "report.html").stat().st_size > 10_000
    figures = {path.name for path in (config.folder / "figures").iterdir()}
    assert figures == {"house-curves.png", "house-absorption.png"}


def test_the_report_explains_before_it_shows(done):
    """Every word of a table's head that is no common one."""
    report = (done[0].folder / "report.md").read_text()
    for word, header in {
        "Score: ": "| score | by seed |",
        "Agree: ": "| agree |",
        "As good: ": "| as good |",
        "untold: success": "| untold |",
        "Without these: ": "| without these |",
        "When new: ": "| when new |",
    }.items():
        assert report.index(word) < report.index(header)
    heads = re.findall(r"^\|.+\|\n(?=\| ---)", report, re.MULTILINE)
    assert max(head.count("|") - 1 for head in heads) <= 11
    paper = report.index("### What the paper has")
    assert paper < report.index("| 57.8 |") < report.index("### Does the base")
    assert "untold: seen tasks, its rules not in the prompt" in " ".join(
        done[2].split()
    )


def test_one_seed_has_no_numbers_by_seed_and_nobody_has_a_dash_in_brackets(done):
    results = json.loads(json.dumps(done[1]))
    one = _one_seed(results)
    house = one["worlds"]["house"]
    house["base"]["seen"]["right"]["types"][0] = dict.fromkeys(("point", "low", "high"))
    lonely = {"point": 1.0, "low": None, "high": None}
    house["arms"]["grpo"]["splits"]["seen"]["with"]["types"][0] = lonely
    report = document(one)
    assert "by seed" not in report and "[-, -]" not in report
    assert "| right rules | - | " in report and "| GRPO | 1.00 | " in report


def _one_seed(numbers):
    """Numbers of the first seed where there are some by seed."""
    if isinstance(numbers, list):
        return [_one_seed(one) for one in numbers]
    if not isinstance(numbers, dict):
        return numbers
    return {
        name: one[:1] if name == "by_seed" else _one_seed(one)
        for name, one in numbers.items()
    }


def test_the_table_of_the_terminal_has_room_for_every_arm(done):
    """Numbers as wide as can be, in 80 columns, none of them cut."""
    numbers = json.loads(json.dumps(done[1]))
    wide = {"point": 1.0, "low": -1.0, "high": 1.0}
    house = numbers["worlds"]["house"]
    part = {"with": {"all": wide}, "without": {"all": wide}, "above_grpo": wide}
    house["arms"] = {arm: {"splits": {"seen": part, "unseen": part}} for arm in ARMS}
    text = io.StringIO()
    Console(file=text, width=80).print(main.terminal_table(numbers, "house"))
    lines = text.getvalue().splitlines()
    assert max(map(len, lines)) <= 80 and "…" not in text.getvalue()
    # One line has what is above GRPO.
    assert text.getvalue().count("+1.00 [-1.00, +1.00]") == len(ARMS)


def test_the_report_says_with_which_rules_it_began(done):
    started = {**done[1], "start_pool": {"pick": ["Take it."]}, "smoke": True}
    report = document(started)
    assert "- pick\n  - Take it." in report and "All were empty" not in report
    assert f"**{SMOKE}**" in report


def test_figures_draw_the_numbers(done, monkeypatch):
    drawn = []
    monkeypatch.setattr(Figure, "savefig", lambda self, *_, **__: drawn.append(self))
    monkeypatch.setattr(Path, "mkdir", lambda *_, **__: None)
    write_figures(done[1], Path())
    told, alone = drawn[0].axes
    jerp = dict(zip(SOLVED, zip(told.lines, alone.lines, strict=True), strict=True))
    np.testing.assert_allclose(jerp["jerp"][0].get_ydata(), [0.75] * 3)
    np.testing.assert_allclose(jerp["jerp"][1].get_ydata(), [0, 0.5, 1])
    assert jerp["rules-only"][0].get_linestyle() == ":"
    curve, untaught = drawn[1].axes[0].lines
    assert untaught.get_linestyle() == "--"
    np.testing.assert_allclose(curve.get_ydata(), [0.25, 0.5, 0.75])
    assert curve.get_label() == "JERP (3 rules)"
    assert drawn[1].axes[0].get_title() == "dashed: GRPO, which never saw a rule"


def test_a_figure_of_nothing_is_not_made(done, monkeypatch):
    """Nor shown in the report."""
    drawn = []
    monkeypatch.setattr(Figure, "savefig", lambda self, *_, **__: drawn.append(self))
    monkeypatch.setattr(Path, "mkdir", lambda *_, **__: None)
    results = json.loads(json.dumps(done[1]))
    rules = results["worlds"]["house"]["arms"]["jerp"]["rules"]
    rules["following"] = {"rules": 0}
    write_figures(results, Path())
    assert len(drawn) == 1
    assert "house-absorption.png" not in document(results)
    assert "house-absorption.png" in document(done[1])


@pytest.mark.parametrize(
    ("job", "name", "left", "word"),
    [
        ("jerp", "metrics.jsonl", None, "a row for each of 4 iterations, .+ no file"),
        ("jerp", "metrics.jsonl", b'{"step": 0}\n', "4 iterations, .+ got 1 rows"),
        ("grpo", "evaluation.safetensors", b"\0" * 40, "truncated"),
        ("jerp", "along-2.safetensors", None, "no such file"),
        ("jerp", "pool.json", b'{"version": 1,\n', "line"),
        ("jerp", "pool.json", None, "no such file"),
        ("jerp", "pool.json", FOREIGN, "policy was trained with, sha.+, got sha"),
        ("jerp", "rules.jsonl", None, "expected the 3 rows of the training.+no file"),
        ("jerp", "rules.jsonl", b"", "expected the 3 rows of the training, got 0 rows"),
        ("rules-only", "process.json", b"{}", "expected peak_memory_bytes, .+ in it"),
        ("grpo", "warnings.json", b"[", "truncated or altered"),
    ],
)
def test_a_damaged_file_of_a_job_says_what_to_delete(
    done, job, name, left, word, monkeypatch
):
    for slow in ("bootstrap_interval", "paired_difference", "plain_interval"):
        monkeypatch.setattr(analysis, slow, lambda *_, **__: {})
    config, _, _ = done
    folder = config.folder / "house" / "seed-0" / job
    kept = (folder / name).read_bytes()
    (folder / name).unlink()
    if left is not None:
        (folder / name).write_bytes(left)
    told = f"{folder / name}: .*{word}.*; delete {folder}; the same command makes"
    try:
        with pytest.raises(StorageError, match=told):
            analysis.analyse(jax.random.key(0), config)
    finally:
        (folder / name).write_bytes(kept)


@pytest.mark.parametrize(
    ("change", "field"), [({"seed": 3}, "seed"), ({"by": "instance"}, "by")]
)
def test_another_config_in_the_same_folder_is_refused_by_field(done, change, field):
    with pytest.raises(ConfigError, match=field):
        main.run(replace(done[0], **change))
