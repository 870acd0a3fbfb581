r"""Runs an iteration on one device and on meshes of eight, and prints how they differ.

    XLA_FLAGS=--xla_force_host_platform_device_count=8 \
      python -m tests.training.sharded_program POLICY/DATAxFSDPxTENSOR ...

A program of its own, because a process has as many devices as it was started with.
"""

import json
import math
import sys
from dataclasses import replace
from functools import cache, partial

import jax
import jax.numpy as jnp
import numpy as np

from jerp.envs.probes import probe_params
from jerp.models.lora import LoraConfig
from jerp.models.token_policy import token_policy
from jerp.runs.policy.groups import PolicyTask, play_groups
from jerp.training.group import make_group_step
from jerp.training.group_settings import GroupConfig, GroupHyper
from jerp.training.sharding import (
    keep_layout,
    make_mesh,
    replicate,
    shard,
    split_batch,
)
from tests.training.cue_world import CRITIC, STEPS, CueWorld

TASKS = jax.tree.map(
    lambda x: np.tile(x, 4), probe_params("matching", "action", "delayed")
)
# With a bonus for entropy, for the loss of a single update is 0 otherwise.
HYPER = GroupHyper(learning_rate=1e-3, max_grad_norm=1e3, entropy_weight=0.5)
TOKENS = token_policy(
    8, 2, 1, num_steps=STEPS, actions=((5,), (6,)), hidden_size=16, num_heads=2
)
REMAT = replace(TOKENS.config, num_layers=1, remat=True)
LORA = LoraConfig(rank=8, alpha=8.0, targets=r"layer_\d+/.*")


class TokenCueWorld(CueWorld):
    """What the fields say, as tokens."""

    def _shown(self, state, now):
        state, now = super()._shown(state, now)
        return state, now.replace(observation=now.observation + jnp.array([1, 2]))


WORLDS = {
    "step": (CueWorld(STEPS), CRITIC, GroupConfig(8)),
    "minibatches": (
        CueWorld(STEPS),
        CRITIC,
        GroupConfig(8, advantage="gae", minibatches=2, microbatches=2, epochs=2),
    ),
    "token": (
        TokenCueWorld(STEPS),
        replace(TOKENS, config=REMAT, lora=LORA),
        GroupConfig(8),
    ),
}


def iteration(state, hyper, tasks, frozen, *, task):
    """Plays and learns once; a program for one device, cut up by three lines."""
    whole = {**frozen, **state.params}
    data = split_batch(play_groups(jax.random.key(8), task, tasks, whole))
    _, step = make_group_step(task.config, task.policy)
    state, metrics = step(state, hyper, data, None, frozen or None)
    return keep_layout(state), *replicate((metrics, data))


@cache
def begun(name):
    """Task, state and what is frozen; every array is drawn, the adapters' B too."""
    env, policy, config = WORLDS[name]
    task = PolicyTask(env, policy, config, 4, STEPS)
    leaves, tree = jax.tree.flatten(jax.eval_shape(policy.init, jax.random.key(0)))
    sizes = np.cumsum([leaf.size for leaf in leaves])
    drawn = 0.3 * np.asarray(jax.random.normal(jax.random.key(1), (sizes[-1],)))
    parts = zip(np.split(drawn, sizes[:-1]), leaves, strict=True)
    params = jax.tree.unflatten(tree, [x.reshape(leaf.shape) for x, leaf in parts])
    frozen = {}
    if name == "token":
        frozen = {"decoder": params.pop("decoder")}
    init, _ = make_group_step(config, policy)
    state = init(jax.random.key(2), HYPER, params)
    return task, state.replace(params=params), frozen


def run(name, state, frozen):
    """What an iteration makes, and how many operations a device needs for it."""
    task, _, _ = begun(name)
    compiled = (
        jax.jit(partial(iteration, task=task))
        .lower(state, HYPER, TASKS, frozen)
        .compile()
    )
    made = compiled(state, HYPER, TASKS, frozen)
    return *made, compiled.cost_analysis()["flops"]


@cache
def alone(name):
    return run(name, *begun(name)[1:])


def compared(case):
    """Largest differences, and what part of each leaf a device holds."""
    name, sizes = case.split("/")
    sizes = map(int, sizes.split("x"))
    mesh = make_mesh(**dict(zip(("data", "fsdp", "tensor"), sizes, strict=True)))
    _, before, frozen = begun(name)
    with jax.set_mesh(mesh):
        state, frozen = shard(mesh, (before, frozen))
        after, metrics, data, work = run(name, state, frozen)
    expected, numbers, episodes, whole_work = alone(name)
    return {
        "params": distance(after.params, expected.params),
        "moved": distance(after.params, before.params),
        # The first moment is a tenth of the first gradient.
        "gradient": 10 * distance(moments(after), moments(expected)),
        "gradient_size": 10 * distance(moments(after), moments(before)),
        "metrics": distance(metrics, numbers),
        "loss": float(numbers["loss"]),
        "log_prob": distance(data.log_prob, episodes.log_prob),
        "episodes": same(data, episodes),
        "work": work / whole_work,
        "parts": parts_of({"frozen": frozen, "after": after}),
    }


def moments(state):
    return state.opt_state[1][0].mu


def distance(one, two):
    pairs = zip(jax.tree.leaves(one), jax.tree.leaves(two), strict=True)
    return max(float(np.abs(np.asarray(x) - np.asarray(y)).max()) for x, y in pairs)


def same(one, two):
    """Whether all is equal that is no real number: what was seen, done and drawn."""
    pairs = zip(jax.tree.leaves(one), jax.tree.leaves(two), strict=True)
    whole = [(x, y) for x, y in pairs if x.dtype != jnp.float32]
    assert len(whole) > 8
    return all(np.array_equal(x, y) for x, y in whole)


def parts_of(tree):
    """By path: how many different parts the devices hold."""
    return {
        jax.tree_util.keystr(path, simple=True, separator="/"): math.prod(x.shape)
        // math.prod(x.sharding.shard_shape(x.shape))
        for path, x in jax.tree_util.tree_leaves_with_path(tree)
    }


if __name__ == "__main__":
    print(json.dumps({case: compared(case) for case in sys.argv[1:]}))
