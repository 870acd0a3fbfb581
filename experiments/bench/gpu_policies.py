"""The policies that `experiments.bench.gpu` measures, and what their work is."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import jax
import jax.numpy as jnp

from experiments.bench.decode import SMOLLM2
from experiments.bench.roofline import Tokens, Work, gradient
from jerp.envs.house import House, house_small
from jerp.envs.house_tasks import house_tasks
from jerp.envs.with_actions import WithActions
from jerp.models.decoder import cast_products
from jerp.models.lora import LoraConfig
from jerp.models.step_policy import step_policy
from jerp.models.token_policy import TokenPolicy, token_policy
from jerp.runs.policy.groups import PolicyTask, play_groups
from jerp.training.group import make_group_step
from jerp.training.group_settings import algorithm

__all__ = ["POLICIES", "Measured", "Sizes", "seeds_ways"]


@dataclass(frozen=True)
class Sizes:
    """How much of everything.

    Attributes:
      groups: comparison groups of pooled steps, and of one seed among many.
      size: episodes of a group.
      token_groups: comparison groups of token streams.
      parts: of a batch that SmolLM2 learns from one after another.
      seeds: side by side.
      peak: rows of the matrices that show what the device does.
      layers: of SmolLM2; None for all.
    """

    groups: int = 32
    size: int = 8
    token_groups: int = 8
    parts: int = 8
    seeds: int = 64
    peak: int = 8192
    layers: int | None = None


@dataclass(frozen=True)
class Measured:
    """A policy that plays and learns.

    Attributes:
      ways: by name what to call with the number of a round.
      tokens: by way, positions that pass through the decoder.
      work: by way.
      product: type of the products.
    """

    ways: dict[str, Callable[[int], Any]]
    tokens: dict[str, int]
    work: dict[str, Work]
    product: str = "float32"


def steps(sizes: Sizes) -> Measured:
    """`tiny` over pooled steps: a position a step."""
    env = house_small()
    policy = step_policy(env.field_sizes, env.num_actions, num_steps=env.horizon)
    task = _task(env, policy, sizes.groups, sizes)
    episodes = sizes.groups * sizes.size
    count = episodes * env.horizon
    tokens = Tokens(policy.config, count, (env.horizon + 1) / 2, count, env.num_actions)
    return Measured(
        ways=_ways(task, env, policy.init(jax.random.key(1))),
        tokens={"play": count, "learn": count},
        work={
            "play": tokens.generation(passes=env.horizon, batch_size=episodes),
            "learn": gradient(tokens, parts=1, lora=False),
        },
    )


def tokens(sizes: Sizes) -> Measured:
    """`tiny` over the stream of tokens."""
    env = house_small(observation="tokens")
    policy = token_policy(
        len(env.vocabulary),
        env.num_observation_tokens,
        env.num_action_tokens,
        num_steps=env.horizon,
    )
    return _token_stream(env, policy, policy.init(jax.random.key(1)), sizes, parts=1)


def smollm2(sizes: Sizes) -> Measured:
    """SmolLM2-135M's sizes over the stream of tokens; adapters alone learn."""
    env = house_small(observation="tokens")
    config = replace(SMOLLM2, num_layers=sizes.layers or SMOLLM2.num_layers)
    policy = TokenPolicy(
        config,
        env.num_observation_tokens,
        env.num_action_tokens,
        env.horizon,
        lora=LoraConfig(rank=16, alpha=32.0),
    )
    params = jax.jit(policy.init)(jax.random.key(1))
    config, half = cast_products(config, {"params": params["decoder"]}, jnp.bfloat16)
    params = {**params, "decoder": half["params"]}  # pyright: ignore
    parts = min(sizes.parts, sizes.token_groups * sizes.size)
    return _token_stream(
        env, replace(policy, config=config), params, sizes, parts=parts
    )


POLICIES: dict[str, Callable[[Sizes], Measured]] = {
    "tiny, pooled steps": steps,
    "tiny, tokens": tokens,
    "SmolLM2-135M, LoRA": smollm2,
}


def seeds_ways(sizes: Sizes) -> dict[str, Callable[[int], Any]]:
    """One iteration of `tiny` over pooled steps, of one seed and of many by vmap."""
    env = house_small()
    policy = step_policy(env.field_sizes, env.num_actions, num_steps=env.horizon)
    task = _task(env, policy, max(sizes.groups // 2, 1), sizes)
    config, hyper = algorithm("grpo", num_groups=task.config.num_groups)
    init, step = make_group_step(config, policy)
    tasks = house_tasks(jax.random.key(0), 2 * sizes.groups, size=env.size)

    def begin(key: Any) -> Any:
        start, train = jax.random.split(key)
        return init(train, hyper, policy.init(start))

    def iterate(key: Any, state: Any) -> Any:
        return step(state, hyper, play_groups(key, task, tasks, state.params))

    state = jax.jit(begin)(jax.random.key(1))
    keys = jax.random.split(jax.random.key(1), sizes.seeds)
    states = jax.jit(jax.vmap(begin))(keys)
    one, many = jax.jit(iterate), jax.jit(jax.vmap(iterate))
    return {
        "one": lambda i: one(jax.random.key(i), state),
        "many": lambda i: many(
            jax.random.split(jax.random.key(i), sizes.seeds), states
        ),
    }


def _token_stream(
    env: House, policy: TokenPolicy, params: Any, sizes: Sizes, *, parts: int
) -> Measured:
    world = WithActions(env)
    task = _task(world, policy, sizes.token_groups, sizes, parts=parts)
    episodes = sizes.token_groups * sizes.size
    positions = policy.num_positions
    count = episodes * positions
    config = policy.config
    adapters = jax.tree.leaves(params.get("adapters", {}))
    product = params["decoder"]["layer_0"]["down"].dtype
    tokens = Tokens(
        config,
        count,
        (positions + 1) / 2,
        episodes * env.horizon * env.num_action_tokens,
        config.vocab_size,
        adapters=sum(leaf.size for leaf in adapters),
        product_bytes=product.itemsize,
    )
    # An observation is one pass, each token that is written another.
    passes = env.horizon * (1 + env.num_action_tokens)
    return Measured(
        ways=_ways(task, env, params),
        tokens={"play": count, "learn": count},
        work={
            "play": tokens.generation(passes=passes, batch_size=episodes),
            "learn": gradient(tokens, parts=parts, lora=bool(adapters)),
        },
        product=product.name,
    )


def _task(
    world: Any, policy: Any, groups: int, sizes: Sizes, *, parts: int = 1
) -> PolicyTask:
    config, _ = algorithm("grpo", num_groups=groups)
    config = replace(config, microbatches=parts)
    env = getattr(world, "world", world)
    return PolicyTask(world, policy, config, sizes.size, env.horizon)


def _ways(task: PolicyTask, env: House, params: Any) -> dict[str, Callable[[int], Any]]:
    """Playing with all parameters, and learning those that are not frozen."""
    trained = {n: x for n, x in params.items() if n != "decoder"} or params
    frozen = {n: x for n, x in params.items() if n not in trained}
    _, hyper = algorithm("grpo", num_groups=task.config.num_groups)
    init, step = make_group_step(task.config, task.policy)
    groups = task.config.num_groups
    tasks = house_tasks(jax.random.key(0), 2 * groups, size=env.size)
    play = jax.jit(partial(play_groups, task=task))
    learn = jax.jit(
        lambda state, data, frozen: step(state, hyper, data, None, frozen or None)
    )
    state = init(jax.random.key(2), hyper, trained)
    data = play(jax.random.key(3), env_params=tasks, params=params)
    return {
        "play": lambda i: play(jax.random.key(i), env_params=tasks, params=params),
        "learn": lambda _: learn(state, data, frozen),
    }
