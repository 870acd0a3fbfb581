import numpy as np
import pytest
from rich.console import Console

from jerp.errors import ConfigError
from jerp.runs.browse import (
    check_run,
    check_table,
    entry_text,
    episode_steps,
    episode_table,
    printable,
)
from jerp.storage.trajectories import TrajectoryFolder, TrajectoryMeta
from tests.storage.episodes import ACTIONS, FEATURES, episodes, texts


def rendered(renderable):
    console = Console(width=2000, highlight=False)
    with console.capture() as capture:
        console.print(renderable)
    return [" ".join(line.split()) for line in capture.get().splitlines()]


@pytest.fixture
def folder(tmp_path):
    meta = TrajectoryMeta(FEATURES, 1, ACTIONS, {"0": "task-a", "1": "task-b"})
    made = TrajectoryFolder.create(tmp_path, meta)
    made.write_shard("0000", episodes(), texts())
    made.annotate({"weight": [0.5, 10.0]})
    return made


def test_the_table_has_a_row_for_each_episode(folder):
    header, first, second = rendered(episode_table(folder))
    assert header.split() == [
        "episode", "task", "version", "seed", "outcome", "score", "return", "steps",
        "actions", "weight",
    ]  # fmt: skip
    assert first == "0 task-a 0 0 success 0.500 0.500 3 draft check submit 0.5"
    assert second == "1 task-b 0 1 success 0.500 0.500 1 check 10.0"


def test_the_steps_of_an_episode_show_all_that_is_kept(folder):
    lines = rendered(episode_steps(folder, 1))
    assert lines[0] == "── step 0: check"
    assert lines[1:-1] == [
        "features: progress=0.1 has_draft=-0.1",
        "legal: draft check submit",
        "probability: 0.250",
        "reward: 0.500",
        "usage: executor_calls=1 tokens_in=1 tokens_out=1 seconds=1 dollars=1",
        "action: draft",
        "completion: 1.0",
    ]
    assert lines[-1] == "── success, score 0.500"


@pytest.mark.parametrize("episode", [-1, 2])
def test_an_episode_that_is_not_there_is_refused(folder, episode):
    with pytest.raises(ConfigError, match=f"episode: expected 0 to 1, got {episode}"):
        episode_steps(folder, episode)


def test_a_foreign_log_without_names_or_text_is_shown(tmp_path):
    made = TrajectoryFolder.create(tmp_path, TrajectoryMeta())
    tree = {"ids": np.zeros((2, 3, 4), np.int32)}
    made.write_shard("a", episodes(observation=tree, legal=None, log_prob=None))
    assert "0 1 2" in rendered(episode_table(made))[1]
    lines = rendered(episode_steps(made, 1))
    assert lines[0] == "── step 0: 1" and lines[1] == "reward: 0.500"


def test_check_names_what_is_damaged_and_what_is_half_written(folder):
    table, whole = check_table(folder)
    assert whole and rendered(table)[1:] == [
        "0000 2 4 whole",
        "2 episodes present, in 1 of 1 shards",
    ]
    (folder.folder / ".x.1.tmp").write_text("")
    (folder.folder / "transcripts-0000.jsonl").write_text("")
    table, whole = check_table(folder)
    lines = rendered(table)
    assert not whole
    assert "checksum differs" in " ".join(lines)
    assert lines[-2].startswith(".x.1.tmp half-written")
    assert lines[-1] == "0 episodes present, in 0 of 1 shards; damaged: 0000"


@pytest.mark.parametrize(
    "file", ["trajectories-0001.safetensors", "transcripts-0001.jsonl"]
)
def test_check_names_the_file_that_a_shard_lacks(folder, file):
    folder.write_shard("0001", episodes(), texts())
    (folder.folder / file).unlink()
    table, whole = check_table(folder)
    lines = rendered(table)
    assert not whole
    assert lines[1] == "0000 2 4 whole"
    assert lines[2].startswith(f"0001 0 0 lacks {file}")
    assert lines[-1] == "2 episodes present, in 1 of 2 shards; damaged: 0001"


def test_a_run_has_a_row_for_each_folder_below_it(tmp_path):
    for arm in ("awr", "base", "bc"):
        made = TrajectoryFolder.create(tmp_path / "coding" / arm, TrajectoryMeta())
        made.write_shard("0000", episodes(), texts())
    table, whole = check_run(tmp_path)
    assert whole
    assert rendered(table)[1:] == [
        "coding/awr 2 whole",
        "coding/base 2 whole",
        "coding/bc 2 whole",
    ]
    (tmp_path / "coding" / "awr" / "meta.json").write_text("{")
    (tmp_path / "coding" / "base" / "trajectories-0000.safetensors").unlink()
    table, whole = check_run(tmp_path)
    awr, base, bc = rendered(table)[1:]
    assert not whole
    assert awr.startswith("coding/awr ") and "meta.json: truncated" in awr
    assert base.startswith("coding/base 0 0000: lacks trajectories-0000.safetensors")
    assert bc == "coding/bc 2 whole"


@pytest.mark.parametrize(
    ("value", "text"),
    [
        ("a\n", "a\n"),
        ([0.5, None], "[0.5, null]"),
        ({"claims": 0, "error": False, "missing": [], "hash": None}, '{"claims": 0}'),
    ],
)
def test_an_entry_is_text_without_what_is_empty(value, text):
    assert entry_text(value) == text


def test_a_models_text_commands_neither_terminal_nor_markup():
    shown = printable("a\x1b[31m\x07\u2028[bold]b[/bold]\nc")
    assert shown.plain == "a\\x1b[31m\\x07\\u2028[bold]b[/bold]\nc"
    assert rendered(shown) == ["a\\x1b[31m\\x07\\u2028[bold]b[/bold]", "c"]
