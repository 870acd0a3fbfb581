import os
import random
import signal
import subprocess
import sys
import threading
import time

import pytest

from jerp.bridge.shards import Entry, shard_paths
from jerp.bridge.store import ResponseStore, StoreStats, compact
from jerp.errors import ConfigError, StorageError, UnknownNameError
from tests.bridge.store_writer import record


def filled(folder, *keys, fingerprint=None, **fields):
    with ResponseStore(folder) as store:
        if fingerprint:
            store.attach(fingerprint)
        for key in keys:
            store.put("verdict", key, {"key": key} | fields)
    return store


def writer(folder, name, count, *limit):
    return subprocess.Popen(
        [sys.executable, "-m", "tests.bridge.store_writer", folder, name, str(count)]
        + [str(x) for x in limit],
        stdout=subprocess.PIPE,
        text=True,
    )


def test_what_was_put_is_there_now_and_in_the_next_process(tmp_path):
    store = ResponseStore(tmp_path)
    assert store.get("verdict", "a") is None
    store.put("verdict", "a", {"passed": True})
    assert store.get("verdict", "a") == {"passed": True}
    store.close()
    again = ResponseStore(tmp_path)
    assert again.get("verdict", "a") == {"passed": True}
    assert again.get("completion", "a") is None
    assert not again.problems


def test_nothing_is_created_before_something_is_stored(tmp_path):
    with ResponseStore(tmp_path / "store") as store:
        store.get("verdict", "a")
    assert not (tmp_path / "store").exists()


def test_flush_writes_and_each_opening_writes_a_new_shard(tmp_path):
    store = ResponseStore(tmp_path)
    store.put("verdict", "a", {})
    assert not shard_paths(tmp_path)
    store.flush()
    store.put("verdict", "b", {})
    store.close()
    assert len(shard_paths(tmp_path)) == 1
    filled(tmp_path, "c")
    assert len(shard_paths(tmp_path)) == 2
    keys = [e.key for e in ResponseStore(tmp_path).entries()]
    assert keys == ["a", "b", "c"]


def test_many_records_are_written_without_a_flush(tmp_path):
    store = ResponseStore(tmp_path)
    for number in range(300):
        store.put("verdict", str(number), {})
    assert len(ResponseStore(tmp_path, mode="replay").entries()) == 256
    store.close()


def test_an_equal_record_is_not_written_again(tmp_path):
    filled(tmp_path, "a", passed=True, seconds=1.0)
    filled(tmp_path, "a", passed=True, seconds=2.0)
    store = ResponseStore(tmp_path)
    assert len(shard_paths(tmp_path)) == 1
    assert not store.problems
    assert store.get("verdict", "a")["seconds"] == 1.0


def test_a_different_answer_is_reported_and_the_newer_counts(tmp_path):
    filled(tmp_path, "a", passed=True)
    filled(tmp_path, "a", passed=False)
    store = ResponseStore(tmp_path)
    assert store.get("verdict", "a")["passed"] is False
    assert store.conflicts == ["a"]
    assert "two different answers to verdict a" in store.problems[0]


def test_equal_duplicates_over_files_are_no_conflict(tmp_path):
    for name in ("one", "two"):
        filled(tmp_path / name, "a", passed=True)
    store = ResponseStore(
        None, mode="replay", read_only=[tmp_path / "one", tmp_path / "two"]
    )
    assert len(store.entries()) == 1 and not store.problems


def test_record_mode_asks_anew_but_knows_its_own_answers(tmp_path):
    filled(tmp_path, "a", passed=True)
    store = ResponseStore(tmp_path, mode="record")
    assert store.get("verdict", "a") is None
    store.put("verdict", "a", {"key": "a", "passed": True})
    assert store.get("verdict", "a") == {"key": "a", "passed": True}
    assert not store.problems


def test_replay_mode_answers_and_writes_nothing(tmp_path):
    filled(tmp_path, "a")
    before = shard_paths(tmp_path)[0].read_bytes()
    with ResponseStore(tmp_path, mode="replay") as store:
        assert store.get("verdict", "a") == {"key": "a"}
        store.put("verdict", "b", {})
        assert store.get("verdict", "b") == {}
    assert [p.read_bytes() for p in shard_paths(tmp_path)] == [before]


def test_off_neither_answers_nor_keeps_nor_counts(tmp_path):
    filled(tmp_path, "a")
    with ResponseStore(tmp_path, mode="off") as store:
        assert store.get("verdict", "a") is None
        store.put("verdict", "b", {})
        assert store.get("verdict", "b") is None
        assert store.stats.misses == {}
    assert len(shard_paths(tmp_path)) == 1


def test_without_a_folder_records_stay_in_memory():
    with ResponseStore(None) as store:
        store.put("verdict", "a", {"x": 1})
        assert store.get("verdict", "a") == {"x": 1}


def test_read_only_sources_are_files_or_folders_and_the_folder_wins(tmp_path):
    filled(tmp_path / "shipped", "a", "b", passed=False)
    packed = tmp_path / "shipped.jsonl.xz"
    assert compact([tmp_path / "shipped"], packed) == 2
    filled(tmp_path / "own", "a", passed=True)
    store = ResponseStore(tmp_path / "own", read_only=[packed])
    assert store.get("verdict", "a")["passed"] is True
    assert store.get("verdict", "b")["passed"] is False


@pytest.mark.parametrize(
    ("arguments", "error", "match"),
    [
        ({"mode": "rePlay"}, UnknownNameError, "unknown store mode.*'replay'"),
        ({"mode": "record"}, ConfigError, "mode.*needs a folder"),
        ({"read_only": ["gone"]}, StorageError, "gone: this response store does not"),
    ],
)
def test_wrong_arguments_are_refused_by_name(arguments, error, match):
    with pytest.raises(error, match=match):
        ResponseStore(None, **arguments)


def test_replaying_a_folder_that_is_not_there_is_an_error(tmp_path):
    with pytest.raises(StorageError, match="gone: no response store to replay"):
        ResponseStore(tmp_path / "gone", mode="replay")


def test_stats_count_by_kind(tmp_path):
    filled(tmp_path, "a", "b")
    store = ResponseStore(tmp_path)
    for key in ("a", "a", "b", "c"):
        store.get("verdict", key)
    store.get("completion", "x")
    stats = store.stats
    assert isinstance(stats, StoreStats)
    assert stats.hits == {"verdict": 3}
    assert stats.misses == {"verdict": 1, "completion": 1}
    assert stats.distinct == {"verdict": 3, "completion": 1}


def test_each_fingerprint_gets_files_of_its_own(tmp_path):
    store = ResponseStore(tmp_path)
    for name in ("one", "two"):
        store.attach(name)
        store.put("verdict", name, {})
    store.close()
    assert len(shard_paths(tmp_path)) == 2
    assert ResponseStore(tmp_path).fingerprints == ("one", "two")


def test_a_store_of_another_model_is_reported(tmp_path):
    filled(tmp_path, "a", fingerprint="one")
    store = ResponseStore(tmp_path)
    store.attach("one")
    assert not store.problems
    store.attach("two")
    assert "answers of one, the executor is two" in store.problems[0]


def test_a_cut_tail_is_in_the_problems(tmp_path):
    filled(tmp_path, "a")
    path = shard_paths(tmp_path)[0]
    path.write_bytes(path.read_bytes() + b'{"half')
    store = ResponseStore(tmp_path)
    assert store.get("verdict", "a") is not None
    assert "half-written last line of 6 bytes cut" in store.problems[0]


def test_a_full_disk_loses_nothing_that_can_be_written_later(tmp_path, monkeypatch):
    store = ResponseStore(tmp_path)
    store.put("verdict", "a", {})
    store.flush()
    store.put("verdict", "b", {})

    def full(file, data):
        raise OSError(28, "No space left on device")

    with monkeypatch.context() as patched:
        patched.setattr(os, "write", full)
        with pytest.raises(StorageError, match="No space left"):
            store.flush()
    assert [e.key for e in ResponseStore(tmp_path).entries()] == ["a"]
    store.close()
    assert [e.key for e in ResponseStore(tmp_path).entries()] == ["a", "b"]


def test_threads_may_share_a_store(tmp_path):
    store = ResponseStore(tmp_path)

    def work(name):
        for number in range(200):
            store.put("verdict", f"{name}/{number}", {"n": number})
            assert store.get("verdict", f"{name}/{number}") == {"n": number}

    threads = [threading.Thread(target=work, args=(n,)) for n in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    store.close()
    assert len(ResponseStore(tmp_path).entries()) == 800


@pytest.mark.filterwarnings("ignore::DeprecationWarning")
@pytest.mark.filterwarnings("ignore::RuntimeWarning")
def test_a_forked_child_writes_to_a_shard_of_its_own(tmp_path):
    store = ResponseStore(tmp_path)
    store.put("verdict", "parent", {})
    store.flush()
    child = os.fork()
    if child == 0:
        store.put("verdict", "child", {})
        store.flush()
        os._exit(0)
    os.waitpid(child, 0)
    store.close()
    assert len(shard_paths(tmp_path)) == 2
    assert len(ResponseStore(tmp_path).entries()) == 2


def test_processes_that_write_at_once_do_not_meet(tmp_path):
    children = [writer(tmp_path, name, 400) for name in "abc"]
    for child in children:
        child.communicate(timeout=120)
    store = ResponseStore(tmp_path)
    assert not store.problems
    assert len(shard_paths(tmp_path)) == 3
    assert {e.key: e.record for e in store.entries()} == {
        f"{name}/{number}": record(name, number)
        for name in "abc"
        for number in range(400)
    }


def test_kill_9_at_random_moments_loses_nothing_complete(tmp_path):
    moment = random.Random(0)
    acknowledged = {}
    children = {name: writer(tmp_path, name, 10**7) for name in "abcd"}
    for child in children.values():
        assert child.stdout.readline() == "started\n"
    for name, child in children.items():
        time.sleep(moment.uniform(0.05, 0.3))
        child.send_signal(signal.SIGKILL)
        lines = child.communicate(timeout=60)[0].split()
        acknowledged[name] = int(lines[-1]) if lines else -1
    store = ResponseStore(tmp_path)
    found = {e.key: e.record for e in store.entries()}
    assert not store.conflicts
    assert sum(acknowledged.values()) > 0
    for name, last in acknowledged.items():
        for number in range(last + 1):
            assert found[f"{name}/{number}"] == record(name, number)
    assert all(r == record(r["name"], r["number"]) for r in found.values())
    # The next process goes on where the killed ones stopped.
    store.put("verdict", "after", {})
    store.close()
    assert len(ResponseStore(tmp_path).entries()) == len(found) + 1


def test_a_real_file_size_limit_is_a_clear_error_and_the_file_stays_valid(tmp_path):
    out = writer(tmp_path, "a", 10**6, 50_000).communicate(timeout=60)[0].split("\n")
    error = next(line for line in out if line.startswith("error"))
    assert "cannot store responses" in error and "run the same command again" in error
    last = int(out[out.index(error) - 1])
    store = ResponseStore(tmp_path)
    assert not store.problems
    assert {e.key for e in store.entries()} == {f"a/{n}" for n in range(last + 1)}


def test_compact_gives_equal_bytes_for_equal_entries(tmp_path):
    filled(tmp_path / "one", "b", "a", fingerprint="model")
    filled(tmp_path / "two", "a", fingerprint="model")
    filled(tmp_path / "two", "b", fingerprint="model")
    for name in ("one", "two"):
        assert compact([tmp_path / name], tmp_path / f"{name}.jsonl.xz") == 2
    one, two = (tmp_path / f"{n}.jsonl.xz" for n in ("one", "two"))
    assert one.read_bytes() == two.read_bytes()
    store = ResponseStore(None, mode="replay", read_only=[one])
    assert store.fingerprints == ("model",)
    assert store.entries() == [
        Entry("verdict", "a", {"key": "a"}),
        Entry("verdict", "b", {"key": "b"}),
    ]


def test_compact_refuses_several_models_and_contradictions(tmp_path):
    filled(tmp_path / "one", "a", fingerprint="one", passed=True)
    filled(tmp_path / "two", "b", fingerprint="two")
    filled(tmp_path / "three", "a", fingerprint="one", passed=False)
    target = tmp_path / "x.jsonl.xz"
    with pytest.raises(StorageError, match="answers of one executor, got one, two"):
        compact([tmp_path / "one", tmp_path / "two"], target)
    with pytest.raises(StorageError, match="1 requests have two different answers"):
        compact([tmp_path / "one", tmp_path / "three"], target)
    assert not target.exists()
