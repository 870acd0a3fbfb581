"""A policy and its pool: what belongs together is loaded, anything else refused."""

import json
import re
import shutil
from contextlib import nullcontext as nothing

import numpy as np
import pytest

from jerp.envs.rule_language import sentence
from jerp.errors import StorageError
from jerp.runs.jerp.record import load_policy_and_pool
from jerp.storage.rule_documents import PoolDocument, PoolRule, pool_hash
from jerp.storage.rule_files import read_pool, write_pool
from tests.runs.jerp.small_run import LANGUAGE, bits, run, written

MINE = PoolDocument({"heat": (PoolRule(sentence(LANGUAGE, 1, 2), 3),)})


@pytest.fixture(scope="module")
def whole(tmp_path_factory):
    folder = tmp_path_factory.mktemp("whole")
    return run(folder, 2, chunk=1), folder


@pytest.fixture
def copied(whole, tmp_path):
    return shutil.copytree(whole[1], tmp_path / "run")


def test_what_is_loaded_is_what_was_trained(whole):
    trained, folder = whole
    found = load_policy_and_pool(folder)
    assert bits(found.params) == bits(trained.state.train.params)
    assert bits(found.pool) == bits(trained.state.pool)
    assert found.book.texts == trained.book.texts
    assert found.document == trained.document == read_pool(folder / "pool.json")
    assert found.step == 2 and found.task_keys[3] == "heat"
    earlier = load_policy_and_pool(folder, 1)
    assert earlier.step == 1 and earlier.document != found.document
    assert np.asarray(earlier.pool.born).max() == 0


def test_another_pool_in_the_folder_is_refused(copied):
    write_pool(copied / "pool.json", MINE)
    own = pool_hash(load_policy_and_pool(copied, 1).document)
    before = written(copied)
    for use in (load_policy_and_pool, lambda folder: run(folder, 4)):
        with pytest.raises(StorageError) as caught:
            use(copied)
        message = str(caught.value)
        assert message.startswith(str(copied / "pool.json"))
        assert pool_hash(MINE) in message and "start_pool" in message
        assert message.count("sha256:") == 2 and own not in message
    assert written(copied) == before
    # Without it the policy's own is used, and shown again.
    (copied / "pool.json").unlink()
    assert load_policy_and_pool(copied).step == 2
    run(copied, 2)
    assert read_pool(copied / "pool.json") == load_policy_and_pool(copied).document


def test_the_pool_before_the_last_checkpoint_is_known_and_replaced(copied, whole):
    """What a kill between a checkpoint and its pool leaves."""
    write_pool(copied / "pool.json", load_policy_and_pool(copied, 1).document)
    assert load_policy_and_pool(copied).document == whole[0].document
    run(copied, 2)
    assert written(copied) == written(whole[1])


@pytest.mark.parametrize("text", ["", "{", None])
def test_a_pool_that_is_broken_or_of_a_lost_checkpoint_can_be_removed(copied, text):
    """As the message says, after which the run goes on as ever."""
    path = copied / "pool.json"
    if text is None:
        shutil.rmtree(copied / "checkpoints" / "2")
    else:
        path.write_text(text)
    for use in (load_policy_and_pool, lambda folder: run(folder, 2)):
        with pytest.raises(StorageError, match=r"pool\.json: .* written there again"):
            use(copied)
    path.unlink()
    with (
        nothing() if text is not None else pytest.warns(UserWarning, match="taken bac")
    ):
        run(copied, 2)
    assert read_pool(path) == load_policy_and_pool(copied).document


def test_a_pool_that_waits_in_a_new_folder_is_not_passed_over(tmp_path):
    write_pool(tmp_path / "pool.json", MINE)
    with pytest.raises(StorageError, match=r"give yours to a new run as start_pool"):
        run(tmp_path, 2)
    trained = run(tmp_path, 0, start_pool=MINE)
    assert trained.document.pools["heat"] == MINE.pools["heat"]


def test_a_checkpoint_whose_texts_were_changed_is_refused(copied):
    path = copied / "checkpoints" / "2" / "document" / "metadata"
    document = json.loads(path.read_text())
    kept = document["pool_hash"]
    document["texts"] = [text.replace("go to", "walk to") for text in document["texts"]]
    path.write_text(json.dumps(document))
    for use in (load_policy_and_pool, lambda folder: run(folder, 4)):
        with pytest.raises(StorageError, match="trained with the pool") as caught:
            use(copied)
        assert kept in str(caught.value) and str(caught.value).count("sha256:") == 2
    path.write_text("{")
    with pytest.raises(StorageError, match="checkpoint 2 is damaged"):
        load_policy_and_pool(copied)


@pytest.mark.parametrize("change", ["cut", "blank", "gone"])
def test_another_ledger_is_refused(copied, change):
    """It says from which tasks rules were learned: without it there are no leaks."""
    path = copied / "rules.jsonl"
    lines = path.read_bytes().splitlines(keepends=True)
    earlier = load_policy_and_pool(copied, 1).document
    if change == "cut":
        path.write_bytes(b"".join(lines[:-1]))
    elif change == "blank":
        last = max(i for i, line in enumerate(lines) if b"source_tasks" in line)
        sources = rb'"source_tasks": \[[^]]+\]'
        lines[last] = re.sub(sources, b'"source_tasks": []', lines[last])
        path.write_bytes(b"".join(lines))
    else:
        path.unlink()
    for use in (load_policy_and_pool, lambda folder: run(folder, 4)):
        with pytest.raises(
            StorageError, match=r"expected the \d+ rows before the chec"
        ):
            use(copied)
    if change != "gone":
        assert load_policy_and_pool(copied, 1).document == earlier


def test_a_checkpoint_without_a_digest_of_its_ledger_is_read(copied):
    """As those are that were written before there was one."""
    path = copied / "checkpoints" / "2" / "document" / "metadata"
    document = json.loads(path.read_text())
    del document["ledger_digest"]
    path.write_text(json.dumps(document))
    assert load_policy_and_pool(copied).step == 2


def test_a_folder_without_a_run_says_so(tmp_path):
    with pytest.raises(StorageError, match="expected the folder of a run of joint"):
        load_policy_and_pool(tmp_path)
