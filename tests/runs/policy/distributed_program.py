"""One process of a run: trains, stops, goes on from the checkpoint, and trains on.

    python -m tests.runs.policy.distributed_program FOLDER [RANK SIZE ADDRESS]

The first process prints what the parameters came to; without a rank it is alone.
"""

import json
import sys
from pathlib import Path

import jax
import numpy as np

from jerp.envs.probes import probe_params
from jerp.runs.policy.groups import PolicyTask
from jerp.runs.policy.training import train_policy
from jerp.training.group_settings import GroupConfig, GroupHyper
from jerp.training.sharding import make_mesh
from tests.training.cue_world import CRITIC, STEPS, CueWorld

TASK = PolicyTask(CueWorld(STEPS), CRITIC, GroupConfig(4), 4, STEPS)


def train(folder, mesh, iterations, mirrors=()):
    tasks = jax.tree.map(
        lambda x: np.tile(x, 2), probe_params("matching", "action", "delayed")
    )
    params = jax.jit(CRITIC.init)(jax.random.key(1))
    return train_policy(
        folder,
        jax.random.key(0),
        TASK,
        GroupHyper(learning_rate=1e-3),
        tasks,
        params,
        iterations=iterations,
        chunk=2,
        mesh=mesh,
        mirrors=mirrors,
    )


def main(folder, rank=0, size=1, address=""):
    if size > 1:
        jax.config.update("jax_cpu_collectives_implementation", "gloo")
        jax.distributed.initialize(address, size, rank)
    mesh, shown = make_mesh(fsdp=size), []
    mirrors = [lambda step, numbers: shown.append(step)]
    train(folder, mesh, 2, mirrors)
    state, _ = train(folder, mesh, 4, mirrors)
    whole = jax.jit(lambda x: x, out_shardings=jax.NamedSharding(mesh, jax.P()))
    params = jax.device_get(whole(state.params))
    matrix = state.params["decoder"]["layer_0"]["qkv"]
    print(
        json.dumps(
            {
                "params": [leaf.ravel().tolist() for leaf in jax.tree.leaves(params)],
                "part": matrix.addressable_shards[0].data.size / matrix.size,
                "shown": shown,
            }
        )
    )


if __name__ == "__main__":
    main(Path(sys.argv[1]), *map(int, sys.argv[2:4]), *sys.argv[4:])
