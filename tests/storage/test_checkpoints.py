"""Checkpoints: to the bit, typed keys included; another layout is refused by name."""

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import jax
import jax.numpy as jnp
import numpy as np
import optax
import pytest

from jerp.errors import StorageError
from jerp.storage.checkpoints import Checkpoints
from jerp.training.state import TrainState


def a_state(size=3, step=5):
    params = {"w": jnp.arange(size, dtype=jnp.bfloat16), "b": jnp.float32(0.1)}
    opt_state = optax.adam(0.1).init(params)
    return TrainState(params, opt_state, jnp.int32(step), jax.random.key(7))


def bits(tree):
    return [
        np.asarray(jax.random.key_data(x) if "key<" in str(x.dtype) else x).tobytes()
        for x in jax.tree.leaves(tree)
    ]


def test_what_is_restored_is_what_was_saved_and_the_newest_stay(tmp_path):
    with Checkpoints(tmp_path / "c", keep=2) as kept:
        assert kept.latest is None
        for step in (5, 6, 7):
            kept.save(step, a_state(step=step))
        kept.save(7, a_state(step=99))  # is there already
    with Checkpoints(tmp_path / "c") as kept:
        assert kept.latest == 7
        found = kept.restore(a_state(step=0))
        assert bits(found) == bits(a_state(step=7))
        assert bits(kept.restore(a_state(), 6)) == bits(a_state(step=6))
        with pytest.raises(StorageError, match=r"of step 5, got \[6, 7\]"):
            kept.restore(a_state(), 5)


def test_another_config_is_refused_by_field(tmp_path):
    with Checkpoints(tmp_path / "c") as kept:
        with pytest.raises(StorageError, match="expected a complete checkpoint"):
            kept.restore(a_state())
        kept.save(1, a_state())
        with pytest.raises(
            StorageError, match=r"mu/w is bfloat16\[3\] there, bfloat16\[4\] here"
        ):
            kept.restore(a_state(size=4))
        other = a_state().replace(params={"w": a_state().params["w"]})
        with pytest.raises(StorageError, match=r"params/b is float32\[\] there, abse"):
            kept.restore(other)


def test_other_settings_are_refused_by_name(tmp_path):
    with Checkpoints(tmp_path / "c", config={"rate": "0.1", "name": "grpo"}) as kept:
        kept.save(1, a_state())
        assert bits(kept.restore(a_state())) == bits(a_state())
    with (
        Checkpoints(tmp_path / "c", config={"rate": "0.2", "name": "grpo"}) as kept,
        pytest.raises(StorageError, match=r"config/rate is 0\.1 there, 0\.2 here"),
    ):
        kept.restore(a_state())
    with Checkpoints(tmp_path / "without") as kept:
        kept.save(1, a_state())
    with Checkpoints(tmp_path / "without", config={"rate": "0.2"}) as kept:
        assert bits(kept.restore(a_state())) == bits(a_state())


def test_a_damaged_one_says_so(tmp_path):
    with Checkpoints(tmp_path / "c") as kept:
        kept.save(1, a_state())
        for path in (tmp_path / "c" / "1" / "layout").iterdir():
            path.write_bytes(b"{")
        with pytest.raises(StorageError, match="checkpoint 1 is damaged"):
            kept.restore(a_state())


def test_a_state_of_other_numbers_is_refused(tmp_path):
    """As of a byte that a disk has changed, which Orbax reads without a word."""
    state = {"train": a_state(), "more": [jax.random.key(3), jnp.ones(2)]}
    changed = {"train": a_state(), "more": [jax.random.key(3), jnp.array([1.0, 1.5])]}
    with Checkpoints(tmp_path / "c") as kept:
        kept.save(1, state)
        kept.save(2, changed)
        for like in (state, None):
            assert bits(kept.restore(like, 1)["more"][1:]) == bits(state["more"][1:])
        shutil.rmtree(tmp_path / "c" / "1" / "state")
        shutil.copytree(tmp_path / "c" / "2" / "state", tmp_path / "c" / "1" / "state")
        for like in (state, None):
            with pytest.raises(
                StorageError, match="1 is damaged: its state is another"
            ):
                kept.restore(like, 1)
        assert bits(kept.restore(state)) == bits(changed)


def test_a_folder_without_a_checkpoint_in_it_is_refused(tmp_path):
    with Checkpoints(tmp_path / "c") as kept:
        kept.save(1, a_state())
    (tmp_path / "c" / "99").mkdir()
    with Checkpoints(tmp_path / "c") as kept:
        for use in (lambda: kept.latest, kept.restore, kept.document):
            with pytest.raises(
                StorageError, match=r"c/99: expected .*; remove it to go"
            ):
                use()
        assert bits(kept.restore(a_state(), 1)) == bits(a_state())
    (tmp_path / "c" / "99").rmdir()
    with Checkpoints(tmp_path / "c") as kept:
        assert kept.latest == 1


def test_one_without_a_digest_is_read(tmp_path):
    """As those are that were written before there was one."""
    with Checkpoints(tmp_path / "c") as kept:
        kept.save(1, a_state())
        path = tmp_path / "c" / "1" / "layout" / "metadata"
        layout = json.loads(path.read_text())
        del layout["sha256 of the state"]
        path.write_text(json.dumps(layout))
        assert bits(kept.restore(a_state())) == bits(a_state())


def test_a_document_lies_beside_the_state(tmp_path):
    document = {"rules": ["When hot, open."], "score": 0.1, "by": {"a": [1, 2]}}
    with Checkpoints(tmp_path / "c") as kept:
        kept.save(1, a_state(), document)
        kept.save(2, a_state())
    with Checkpoints(tmp_path / "c") as kept:
        assert kept.document(1) == document
        assert bits(kept.restore(a_state(), 1)) == bits(a_state())
        with pytest.raises(StorageError, match="2 is damaged or has no document"):
            kept.document()
        with pytest.raises(StorageError, match="complete checkpoint of step 3"):
            kept.document(3)
        with pytest.raises(StorageError, match="expected plain numbers"):
            kept.save(3, a_state(), {"score": float("nan")})
        assert kept.latest == 2


def test_a_state_is_read_without_its_like(tmp_path):
    with Checkpoints(tmp_path / "c", config={"name": "grpo"}) as kept:
        more = {"number": jnp.int32(3), "wide": np.ones(2, np.float64)}
        kept.save(1, {"train": a_state(), **more})
    with Checkpoints(tmp_path / "c") as kept:
        found = kept.restore()
    np.testing.assert_array_equal(found["number"], 3)
    params = a_state().params
    assert found["train"]["params"].keys() == params.keys()
    assert bits(found["train"]["params"]) == bits(params)


ELSEWHERE = """
import sys, jax, tests.conftest
from jerp.storage.checkpoints import Checkpoints
from tests.storage.test_checkpoints import a_state
with Checkpoints(sys.argv[1]) as kept:
    kept.save(1, jax.device_put(a_state(), jax.devices()[2]))
"""


@pytest.mark.slow
def test_a_state_is_read_on_other_devices_than_it_was_saved_on(tmp_path):
    flags = f"{os.environ['XLA_FLAGS']} --xla_force_host_platform_device_count=3"
    subprocess.run(
        [sys.executable, "-c", ELSEWHERE, str(tmp_path / "c")],
        cwd=Path(__file__).parents[2],
        env={**os.environ, "XLA_FLAGS": flags},
        check=True,
    )
    with Checkpoints(tmp_path / "c") as kept:
        assert bits(kept.restore()["params"]) == bits(a_state().params)
        assert bits(kept.restore(a_state())) == bits(a_state())
