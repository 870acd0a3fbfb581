import dataclasses
import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import jax
import numpy as np
import pytest
from safetensors.numpy import load_file

from jerp.errors import ConfigError, StorageError, TrajectoryError
from jerp.storage.tensors import load_tree, save_tree
from jerp.storage.trajectories import TrajectoryFolder, TrajectoryMeta
from jerp.trajectory import Trajectory
from tests.storage.episodes import ACTIONS, FEATURES, episodes, texts

ROOT = Path(__file__).parents[2]
VERSION1 = Path(__file__).parent / "version1"
META = TrajectoryMeta(
    feature_names=FEATURES,
    feature_version=1,
    action_names=ACTIONS,
    task_keys={"0": "coding/1/0000", "1": "coding/1/0001"},
    model_fingerprint="model",
    store_hash="store",
    extra={"arm": "base", "sizes": [1, 2]},
)


def equal(one, other):
    assert jax.tree.structure(one) == jax.tree.structure(other)
    for left, right in zip(jax.tree.leaves(one), jax.tree.leaves(other), strict=True):
        assert left.dtype == right.dtype
        np.testing.assert_array_equal(left, right)


@pytest.fixture
def folder(tmp_path):
    made = TrajectoryFolder.create(tmp_path / "buffer", META)
    made.write_shard("0000", episodes(), texts())
    made.write_shard("0001", episodes((2, 2), num_steps=5), texts((2, 2)))
    return made


def test_meta_arrays_and_text_come_back(folder):
    again = TrajectoryFolder.open(folder.folder)
    assert again.meta == dataclasses.replace(
        META, extra={"arm": "base", "sizes": [1, 2]}
    )
    equal(again.load(["0000"]), episodes())
    assert again.transcripts(["0000"]) == texts()
    assert again.shards() == ("0000", "0001")
    assert again.leftovers() == ()


def test_shards_of_other_lengths_are_padded_and_joined_in_order(folder):
    loaded = folder.load()
    assert loaded.mask.shape == (4, 5)
    assert loaded.mask.sum(1).tolist() == [3, 1, 2, 2]
    np.testing.assert_array_equal(loaded.action[:2, :3], episodes().action)
    assert folder.transcripts() == texts() + texts((2, 2))
    equal(folder.load(["0001", "0000"]).mask[:2], loaded.mask[2:])


@pytest.mark.parametrize(
    "fields",
    [
        {"legal": None, "log_prob": None},
        {"working_set": np.ones((2, 3), np.int32)},
        {
            "observation": {
                "ids": np.zeros((2, 3, 4), np.int32),
                "pair": (np.ones((2, 3), bool), [np.ones((2, 3), np.float32)]),
            },
            "final_observation": {"ids": np.zeros((2, 4), np.int32), "pair": ((), [])},
        },
    ],
)
def test_absent_fields_and_trees_keep_their_kind(tmp_path, fields):
    made = TrajectoryFolder.create(tmp_path, TrajectoryMeta())
    made.write_shard("a", episodes(**fields))
    equal(made.load(), episodes(**fields))
    assert made.transcripts() == [[], []]


def test_a_shard_without_episodes_is_a_shard(tmp_path):
    made = TrajectoryFolder.create(tmp_path, META)
    made.write_shard("a", episodes(()), [])
    assert made.load().mask.shape == (0, 3) and made.transcripts() == []


def test_creating_again_continues_and_another_meta_is_refused(folder):
    assert TrajectoryFolder.create(folder.folder, META).shards() == ("0000", "0001")
    other = dataclasses.replace(META, extra={"arm": "bc", "sizes": [1, 2]})
    with pytest.raises(ConfigError, match=r'extra\.arm: "base" there, "bc" here'):
        TrajectoryFolder.create(folder.folder, other)
    assert TrajectoryFolder.open(folder.folder).meta.extra["arm"] == "base"


def test_a_complete_shard_is_not_overwritten(folder):
    with pytest.raises(StorageError, match=r"0001.*not overwritten"):
        folder.write_shard("0001", episodes())
    equal(folder.load(["0000"]), episodes())


@pytest.mark.parametrize("name", ["", "../x", "a/b", ".hidden", "a b"])
def test_odd_shard_names_are_refused(folder, name):
    with pytest.raises(StorageError, match="shard name"):
        folder.write_shard(name, episodes())


@pytest.mark.parametrize(
    ("fields", "transcripts", "message"),
    [
        ({"score": np.full(2, 2, np.float32)}, None, "score"),
        ({"task_id": np.array([0, 9], np.int32)}, None, r"task_id: .*\['9'\]"),
        ({"legal": np.ones((2, 3, 4), bool)}, None, "legal: .*last axis of 3, got 4"),
        (
            {"observation": np.zeros((2, 3, 9), np.float32)},
            None,
            "observation: .*last axis of 2, got 9",
        ),
        ({}, [[]], "transcripts: expected B=2 episodes, got 1"),
        ({}, [[{"step": 3}], []], r"transcripts\[0\]\[0\]"),
    ],
)
def test_what_breaks_the_contract_or_the_meta_is_not_written(
    folder, fields, transcripts, message
):
    before = sorted(os.listdir(folder.folder))
    with pytest.raises(TrajectoryError, match=message):
        folder.write_shard("0002", episodes(**fields), transcripts)
    assert sorted(os.listdir(folder.folder)) == before


def test_a_folder_of_another_kind_is_refused(tmp_path, folder):
    with pytest.raises(StorageError, match="not a trajectory folder"):
        TrajectoryFolder.open(tmp_path)
    meta = folder.folder / "meta.json"
    document = json.loads(meta.read_text())
    for change, message in (
        ({"schema_version": 2}, "expected format version 1, got 2"),
        ({"more": 1}, "expected the fields"),
    ):
        meta.write_text(json.dumps({**document, **change}))
        with pytest.raises(StorageError, match=message):
            TrajectoryFolder.open(folder.folder)
    meta.write_text("{")
    message = (
        r"meta\.json: truncated or altered.*copy .* from another folder of the run"
    )
    with pytest.raises(StorageError, match=message):
        TrajectoryFolder.create(folder.folder, META)
    with pytest.raises(StorageError, match=message):
        TrajectoryFolder.open(folder.folder)


def test_a_folder_above_some_points_at_the_first(tmp_path):
    for name in ("b", "a"):
        TrajectoryFolder.create(tmp_path / "run" / "coding" / name, META)
    for above in ("run/coding", "run"):
        found = tmp_path / "run" / "coding" / "a"
        with pytest.raises(StorageError, match=f"name one, such as {found}$"):
            TrajectoryFolder.open(tmp_path / above)
    with pytest.raises(StorageError, match="such as RUN/DOMAIN/buffer"):
        TrajectoryFolder.open(tmp_path)


def test_a_shard_of_other_fields_names_the_first(folder):
    path = folder.folder / "trajectories-0000.safetensors"
    tree, document = load_tree(path)
    lacking = {name: leaf for name, leaf in tree.items() if name != "log_prob"}
    for other, message in (
        (lacking, r"0000\.safetensors: missing field log_prob: .* move what there is"),
        ({**tree, "luck": tree["mask"]}, "unknown field luck"),
        ([tree["mask"]], "missing field action:"),
    ):
        save_tree(path, other, document)
        with pytest.raises(StorageError, match=message):
            folder.load()
    save_tree(path, tree, {**document, "schema_version": 2})
    with pytest.raises(StorageError, match="expected format version 1, got 2"):
        folder.load()


def test_an_empty_folder_says_that_nothing_was_collected(tmp_path):
    made = TrajectoryFolder.create(tmp_path, META)
    with pytest.raises(StorageError, match="no episodes have been written"):
        made.load()
    with pytest.raises(StorageError, match="no episodes have been written"):
        made.transcripts()


def damage(path, how):
    data = path.read_bytes()
    if how == "gone":
        path.unlink()
    elif how == "cut":
        path.write_bytes(data[: len(data) // 2])
    else:
        path.write_bytes(data[:-3] + bytes([data[-3] ^ 1]) + data[-2:])


@pytest.mark.parametrize("how", ["gone", "cut", "flipped"])
@pytest.mark.parametrize(
    "file", ["trajectories-0001.safetensors", "transcripts-0001.jsonl"]
)
def test_a_damaged_shard_is_named_and_the_others_are_whole(folder, file, how):
    damage(folder.folder / file, how)
    if file.startswith("trajectories") and how == "gone":
        assert folder.leftovers() == ("transcripts-0001.jsonl",)
        assert folder.incomplete() == ("0001",) and folder.shards() == ("0000",)
    message = f"{file}: .*Other shards.*shard 0001"
    with pytest.raises(StorageError, match=message):
        folder.transcripts(["0000", "0001"])
    equal(folder.load(["0000"]), episodes())
    assert folder.transcripts(["0000"]) == texts()
    whole, broken = folder.check()
    assert (whole.name, whole.episodes, whole.steps, whole.problem) == (
        "0000",
        2,
        4,
        "",
    )
    assert broken.name == "0001" and file in broken.problem
    assert broken.problem.startswith(f"lacks {file}") == (how == "gone")


def test_a_shard_of_another_folder_is_noticed(tmp_path, folder):
    other = TrajectoryFolder.create(tmp_path / "other", TrajectoryMeta())
    other.write_shard("0002", episodes(legal=np.ones((2, 3, 4), bool)))
    for path in other.folder.glob("*0002*"):
        path.rename(folder.folder / path.name)
    with pytest.raises(TrajectoryError, match=r"legal: .*last axis of 3"):
        folder.load()
    assert "legal" in folder.check()[2].problem


def test_a_full_disk_leaves_the_earlier_shards(folder, monkeypatch):
    def full(_):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "fsync", full)
    with pytest.raises(StorageError, match="free some room"):
        folder.write_shard("0002", episodes(), texts())
    monkeypatch.undo()
    assert folder.shards() == ("0000", "0001") and folder.leftovers() == ()
    folder.write_shard("0002", episodes(), texts())
    assert folder.load().mask.shape == (6, 5)


KILLED = """
import os, signal, sys
from jerp.storage.trajectories import TrajectoryFolder
from tests.storage.episodes import episodes, texts

def die_at(when):
    made = iter(range(99))
    def dying(real):
        def call(*arguments):
            if next(made) == when:
                os.kill(os.getpid(), signal.SIGKILL)
            return real(*arguments)
        return call
    os.fsync, os.replace = dying(os.fsync), dying(os.replace)

for when, folder in enumerate(sys.argv[1:]):
    child = os.fork()
    if not child:
        die_at(when)
        TrajectoryFolder.open(folder).write_shard("0002", episodes(), texts())
        os._exit(0)
    print(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]))
"""


def test_a_shard_of_a_killed_writer_is_absent_until_it_is_complete(
    folder, tmp_path, caplog
):
    """The calls in order: for the text fsync, replace, fsync of the folder; the same
    three for the arrays. After the second replace the shard is complete."""
    copies = [tmp_path / f"killed-{when}" for when in range(7)]
    for copy in copies:
        shutil.copytree(folder.folder, copy)
    command = [sys.executable, "-c", KILLED, *map(str, copies)]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    assert done.stdout.split() == ["-9"] * 6 + ["0"]
    for when, copy in enumerate(copies):
        leftovers = TrajectoryFolder.open(copy).leftovers()
        assert bool(leftovers) == (when < 5)
        again = TrajectoryFolder.create(copy, META)
        assert again.leftovers() == ()
        assert all(name in caplog.text for name in leftovers)
        assert ("0002" in again.shards()) == (when >= 5)
        if when < 5:
            again.write_shard("0002", episodes(), texts())
        assert again.transcripts() == texts() + texts((2, 2)) + texts()
        equal(again.load(["0002"]), episodes())


def test_a_folder_written_by_the_first_release_is_read(tmp_path):
    shutil.copytree(VERSION1, tmp_path / "old")
    old = TrajectoryFolder.open(tmp_path / "old")
    assert old.meta == META
    equal(old.load(), episodes())
    assert old.transcripts() == texts()
    assert old.annotations() == {"weight": [0.5, 2.0]}


def test_a_folder_is_written_as_by_the_first_release(tmp_path):
    made = TrajectoryFolder.create(tmp_path, META)
    made.write_shard("0000", episodes(), texts())
    for name in ("meta.json", "transcripts-0000.jsonl"):
        assert (tmp_path / name).read_bytes() == (VERSION1 / name).read_bytes()
    arrays = "trajectories-0000.safetensors"
    equal(load_file(tmp_path / arrays), load_file(VERSION1 / arrays))


def test_the_document_of_the_format_has_every_field():
    text = (ROOT / "docs" / "trajectories.md").read_text(encoding="utf-8")
    fields = [*dataclasses.fields(Trajectory), *dataclasses.fields(TrajectoryMeta)]
    missing = [f.name for f in fields if f"| `{f.name}` |" not in text]
    assert missing == []


def test_the_files_can_be_read_without_jerp_as_documented(folder):
    arrays = load_file(folder.folder / "trajectories-0000.safetensors")
    lines = (folder.folder / "transcripts-0000.jsonl").read_text().splitlines()
    steps = [json.loads(line) for line in lines]
    present = {f for f in vars(episodes()) if getattr(episodes(), f) is not None}
    assert set(arrays) == present
    assert [(s["episode"], s["step"]) for s in steps] == [
        (0, 0),
        (0, 1),
        (0, 2),
        (1, 0),
    ]


def test_reading_removes_nothing(folder):
    (folder.folder / ".live.1.tmp").write_text("")
    TrajectoryFolder.open(folder.folder).load()
    assert folder.leftovers() == (".live.1.tmp",)


def test_annotations_are_kept_and_replaced(folder):
    assert folder.annotations() == {}
    folder.annotate({"weight": [1.0, 2.0]})
    folder.annotate({"weight": [0.5, 2.0], "note": ["a", None]})
    assert folder.annotations() == {"weight": [0.5, 2.0], "note": ["a", None]}
