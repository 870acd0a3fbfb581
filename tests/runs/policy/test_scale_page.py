"""The programs of docs/scale.md run, on devices that are not there."""

import os
import re
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace

import jax
import jax.numpy as jnp
import pytest
from jax.sharding import AbstractMesh, AxisType

from jerp.envs.house import house_small
from jerp.models.decoder import cast_products
from jerp.models.step_policy import step_policy
from jerp.storage.metrics import read_metrics
from jerp.training.sharding import AXES, describe_layout, make_mesh, shard
from tests.models.tiny import CONFIG, random_params
from tests.pages import run_program

PAGE = (Path(__file__).parents[3] / "docs" / "scale.md").read_text(encoding="utf-8")
PROGRAM, PRETRAINED = re.findall(r"```python\n(.+?)```", PAGE, re.DOTALL)
EIGHT = "--xla_force_host_platform_device_count=8"
SMALLER = {
    "512, size": "16, size",
    "num_groups=16": "num_groups=4",
    "group_size=8": "group_size=2",
    "iterations=400": "iterations=2",
}


def test_the_program_runs_on_eight_devices(tmp_path):
    program = PROGRAM
    for whole, part in SMALLER.items():
        assert program.count(whole) == 1
        program = program.replace(whole, part)
    (tmp_path / "train.py").write_text(program)
    done = subprocess.run(
        [sys.executable, "train.py", "2x2x2"],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        timeout=300,
        env={
            **os.environ,
            "PYTHONPATH": str(Path(__file__).parents[3]),
            "XLA_FLAGS": f"{os.environ.get('XLA_FLAGS', '')} {EIGHT}",
        },
    )
    assert done.returncode == 0, done.stderr
    assert "decoder/layer_1/qkv             64x192  fsdp,tensor" in done.stdout
    rows = read_metrics(tmp_path / "run" / "metrics.jsonl")
    assert [row["step"] for row in rows] == [0, 1]
    assert max(row["sampler_gap"] for row in rows) < 1e-4


def test_the_program_says_what_it_wants(monkeypatch):
    monkeypatch.setattr(sys, "argv", ["train.py"])
    with pytest.raises(SystemExit, match=r"^train\.py DATAxFSDPxTENSOR"):
        run_program(PROGRAM, "scale.md", {})


def test_the_layout_that_is_shown():
    env = house_small()
    policy = step_policy(env.field_sizes, env.num_actions, num_steps=env.horizon)
    params = jax.eval_shape(policy.init, jax.random.key(0))
    mesh = AbstractMesh((1, 8, 1), AXES, (AxisType.Auto,) * 3)
    shown = re.search(r"```\n(decoder/.+?)\n```", PAGE, re.DOTALL).group(1)
    assert describe_layout(mesh, params).startswith(shown)


def test_a_pretrained_decoder_is_put_onto_devices_in_parts():
    names = {
        "jax": jax,
        "jnp": jnp,
        "mesh": make_mesh(),
        "shard": shard,
        "cast_products": cast_products,
        "load_weights": lambda path: SimpleNamespace(
            config=CONFIG, params=random_params()
        ),
    }
    # Our own page, as a reader would paste it.
    run_program(PRETRAINED, "scale.md", names)
    matrix = names["frozen"]["decoder"]["layer_0"]["qkv"]
    assert matrix.dtype == jnp.bfloat16 and matrix.sharding.mesh == names["mesh"]
