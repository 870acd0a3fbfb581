"""`jerp passkt` on logs that other tools wrote, as a user would give them."""

import json
import shutil
from pathlib import Path

import numpy as np
import pytest

from jerp import cli
from jerp.errors import InputError
from jerp.runs.pass_surface.inputs import read_inputs
from jerp.runs.pass_surface.settings import PassktSettings

REAL = Path(__file__).parents[1] / "readers" / "real"


@pytest.fixture
def here(tmp_path, monkeypatch):
    """A current folder with the real logs in it."""
    monkeypatch.chdir(tmp_path)
    for path in REAL.iterdir():
        shutil.copy(path, tmp_path)
    return tmp_path


def results(folder):
    return json.loads((folder / "results.json").read_text())


@pytest.mark.slow
def test_two_logs_of_inspect_are_compared_by_category(here, capsys):
    words = "passkt base.eval trained.eval --by category --resamples 20 --ks 1"
    words += " --min-coverage 0.7 --horizons 0,1,5 --announced unknown"
    assert cli.main(words.split()) == 0
    shown = capsys.readouterr().out
    assert "note: base.eval: spent (steps) is the agent's messages that call a" in shown
    assert "note: no log says whether the agent was told its budget; --announ" in shown
    found = results(here / "passkt-base-trained")
    assert [part["name"] for part in found["parts"]] == ["wood", "glass"]
    # Within 0, 1, 5 steps, by the script of the endpoint: key 0, 2, 3 of 4 and coin 0,
    # 1, 2 of 3; ring 1, 1, 1 of 4; lamp never.
    wood, glass = (part["agents"][0]["surface"]["point"][0] for part in found["parts"])
    assert wood == pytest.approx([0, (2 / 4 + 1 / 3) / 2, (3 / 4 + 2 / 3) / 2])
    assert glass == pytest.approx([1 / 8] * 3)
    # Solved at all within 5 steps: base key, coin and ring; trained all four.
    last = [part["comparisons"][0]["boundary"][-1] for part in found["parts"]]
    assert [(b["both"], b["gains"], b["losses"]) for b in last] == [
        (2, 0, 0),
        (1, 1, 0),
    ]
    assert last[1]["gained"] == ["lamp"]


def test_a_table_of_the_same_runs_is_the_same_input(here):
    """Behind the reading nothing knows where the runs came from."""
    rows = [
        ("key", [1, 0, 2, 1], "sfss"),
        ("coin", [0, 2, 1, 1], "fssi"),
        ("ring", [1, 0, 4, 0], "fstf"),
        ("lamp", [0, 1, 2, 0], "ffft"),
    ]
    names = {"s": "success", "f": "failure", "t": "truncated", "i": "infrastructure"}
    kinds = {"key": "wood", "coin": "wood", "ring": "glass", "lamp": "glass"}
    lines = ["task,sample,spent,outcome,category"]
    for task, spent, ends in rows:
        for i, (number, end) in enumerate(zip(spent, ends, strict=True)):
            lines.append(f"{task},{i},{number},{names[end]},{kinds[task]}")
    (here / "table.csv").write_text("\n".join(lines) + "\n")
    table = read_inputs(PassktSettings(Path("table.csv"), by="category"))
    for name in ("traces.jsonl", "chat.jsonl"):
        log = read_inputs(PassktSettings(Path(name), by="category", announced="no"))
        assert sorted(log.tasks) == sorted(table.tasks)
        assert (log.ks, log.horizons, log.protocol) == (
            table.ks,
            table.horizons,
            table.protocol,
        )
        order = [log.tasks.index(task) for task in table.tasks]
        for mine, its in zip(
            log.agents[0].runs[:3], table.agents[0].runs, strict=False
        ):
            np.testing.assert_array_equal(mine[order], its)
        parts = {part: mask[order].tolist() for part, mask in log.parts}
        assert parts == {part: mask.tolist() for part, mask in table.parts}


def test_a_log_asks_whether_the_budget_was_announced(here):
    """A table of our own may leave it open; with a log beside it, it may not."""
    log, table = Path("traces.jsonl"), Path("table.csv")
    table.write_text("task,sample,spent,outcome\nkey,0,1,success\n")
    assert read_inputs(PassktSettings(table)).notes == (
        read_inputs(PassktSettings(table, announced="unknown")).notes
    )
    for files in ([log], [table, log]):
        with pytest.raises(
            InputError,
            match=r"traces.jsonl: .* its budget T; .*--announced yes, no or unknown",
        ):
            read_inputs(PassktSettings(*files))
    asked = "no log says whether the agent was told its budget"
    unknown = PassktSettings(log, announced="unknown")
    assert any(asked in note for note in read_inputs(unknown).notes)
    said = PassktSettings(log, announced="no")
    assert not any(asked in note for note in read_inputs(said).notes)


def test_two_logs_of_inspect_are_joined_by_category(here):
    """trained.eval lost a run of `lamp`, base.eval one of `coin`."""
    files = Path("base.eval"), Path("trained.eval")
    settings = PassktSettings(*files, by="category", announced="no")
    found = read_inputs(settings)
    assert [agent.label for agent in found.agents] == ["base.eval", "trained.eval"]
    assert dict(
        zip(found.tasks, found.agents[1].valid.sum(1).tolist(), strict=True)
    ) == {
        "key": 4,
        "coin": 4,
        "ring": 4,
        "lamp": 3,
    }
    assert [(part, mask.sum()) for part, mask in found.parts] == [
        ("wood", 2),
        ("glass", 2),
    ]


def test_an_announcement_is_asked_for_in_one_line(here, capsys):
    assert cli.main(["passkt", "base.eval"]) == 2
    shown = capsys.readouterr().err
    assert "say it: --announced yes, no or unknown" in shown and shown.count("\n") == 1


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["graded.json"], "scores: expected one score, got 'found', 'near'; say which"),
        (["graded.json", "--score", "near"], "say from which score on a run has suc"),
        (["samples.jsonl_results.jsonl"], "do not say what they spent; name a field"),
        (
            ["samples.jsonl_results.jsonl", "--spent", "1"],
            "say that it holds for none: --errors none --truncated none",
        ),
        (["chat.jsonl", "--truncated", "x"], "expected the field 'x', as --truncated"),
        (["chat.jsonl", "--unit", "tokens"], "conversations do not say their tokens"),
        (
            ["tau2.json", "--by", "hue"],
            "expected a field 'hue', got 'id', 'description",
        ),
        (["tau2.json", "--protocol", "rerun"], "--protocol rerun: tau2.json lacks the"),
        (["base.eval", "--format", "table"], "base.eval: expected a name that ends in"),
        (["base.eval", "--agent", "me"], "--agent me: inspect's samples name their ta"),
    ],
)
def test_what_a_log_cannot_say_is_asked_for_in_one_line(here, words, message, capsys):
    assert cli.main(["passkt", *words, "--announced", "unknown"]) == 2
    shown = capsys.readouterr().err
    assert message in shown and shown.count("\n") == 1
