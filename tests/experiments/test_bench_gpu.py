"""Work is counted as a decoder's own products are; parts are left out by name."""

import io
import json
import math
from dataclasses import replace
from functools import partial

import jax
import jax.numpy as jnp
import pytest
from rich.console import Console

from experiments.bench import gpu
from experiments.bench.gpu import Clock, GpuBench, measure, tables
from experiments.bench.gpu_policies import POLICIES, Measured, Sizes
from experiments.bench.lora import next_token_loss
from experiments.bench.roofline import (
    Peaks,
    Tokens,
    Work,
    bound_and_share,
    gradient,
    measured_peaks,
)
from jerp.errors import ConfigError
from jerp.models.decoder import Decoder, DecoderConfig
from jerp.models.lora import LoraConfig, init_adapters, with_adapters

SMALL = DecoderConfig(
    vocab_size=7,
    hidden_size=2,
    intermediate_size=3,
    num_layers=1,
    num_heads=1,
    num_kv_heads=1,
    head_dim=2,
    context_length=8,
)
DEEP = replace(
    SMALL,
    vocab_size=50,
    hidden_size=24,
    intermediate_size=40,
    num_layers=3,
    num_heads=4,
    num_kv_heads=2,
    head_dim=8,
)


def products(jaxpr):
    """FLOPs of all products in a program, of loops as often as they run."""
    total = 0.0
    for equation in jaxpr.eqns:
        if equation.primitive.name == "dot_general":
            (left, _), _ = equation.params["dimension_numbers"]
            shape = equation.invars[0].aval.shape
            summed = math.prod(shape[axis] for axis in left)
            total += 2.0 * summed * math.prod(equation.outvars[0].aval.shape)
        times = equation.params.get("length", 1)
        for value in equation.params.values():
            inner = getattr(value, "jaxpr", value)
            if hasattr(inner, "eqns"):
                total += times * products(inner)
    return total


def counted(function, *arguments):
    return products(jax.make_jaxpr(function)(*arguments).jaxpr)


def setup(lora=None):
    decoder, words = Decoder(DEEP), jnp.ones((2, 6), jnp.int32)
    params = jax.eval_shape(decoder.init, jax.random.key(0), words)
    adapters = {}
    if lora is not None:
        adapters = jax.eval_shape(
            lambda key: init_adapters(key, DEEP, lora), jax.random.key(0)
        )
    number = sum(math.prod(x.shape) for x in jax.tree.leaves(adapters))
    # All six tokens are looked at by each: what is masked is computed as well.
    tokens = Tokens(DEEP, 12, 6, 12, DEEP.vocab_size, adapters=number)
    return decoder, words, params, adapters, tokens


def test_work_by_hand():
    tokens = Tokens(SMALL, 5, 2, 1, 7, adapters=10, product_bytes=2)
    # 4 matrices of 2 x 2 and 3 of 2 x 3 make 34 weights.
    assert tokens.flops() == 2 * 34 * 5 + 2 * 2 * 7 + 5 * (4 * 2 * 2 + 2 * 10)
    assert tokens.weight_bytes == 2 * (34 + 2 * 7) + 4 * 10
    assert tokens.generation(passes=3, batch_size=4) == Work(
        flops=548, bytes=3 * (136 + 4 * 4 * 2 * 2 * 2)
    )
    assert gradient(tokens, parts=3, lora=True) == Work(
        flops=548 + 368 + 2 * 180, bytes=2 * 3 * 136
    )
    assert gradient(tokens, parts=1, lora=False) == Work(3 * 548, 2 * 136)


@pytest.mark.parametrize("lora", [None, LoraConfig(3, 3.0)])
def test_a_forward_pass_has_as_many_products(lora):
    decoder, words, params, adapters, tokens = setup(lora)

    def forward(params, adapters):
        variables = params if lora is None else with_adapters(params, adapters, lora)
        return decoder.apply(variables, words)

    assert counted(forward, params, adapters) == tokens.flops()


def test_a_gradient_has_as_many_products():
    decoder, words, params, _, tokens = setup()
    tokens = replace(tokens, count=10, context=5, logits=10)
    loss = partial(next_token_loss, decoder, tokens=words)
    found = counted(jax.grad(loss), params)
    assert found == gradient(tokens, parts=1, lora=False).flops


def test_a_gradient_of_adapters_has_as_many_products_but_the_lowest():
    lora = LoraConfig(3, 3.0, targets=r"layer_\d+/.*")
    decoder, words, params, adapters, tokens = setup(lora)
    tokens = replace(tokens, count=10, context=5, logits=10)

    def loss(adapters, params):
        return next_token_loss(decoder, with_adapters(params, adapters, lora), words)

    found = counted(jax.grad(loss), adapters, params)
    expected = gradient(tokens, parts=1, lora=True).flops
    # What goes into the lowest layer is no function of any adapter.
    unneeded = 2 * 10 * (24 * 64 + 3 * 24 * 3)
    assert found == expected - unneeded


def test_what_is_slower_bounds():
    peaks = Peaks({"float32": 100.0, "bfloat16": 400.0}, 10.0)
    assert bound_and_share(Work(800.0, 10.0), peaks, "float32", 16.0) == (
        "arithmetic",
        0.5,
    )
    assert bound_and_share(Work(800.0, 40.0), peaks, "bfloat16", 16.0) == (
        "memory",
        0.25,
    )


def test_the_device_shows_what_it_does():
    peaks = measured_peaks(32, rounds=1)
    assert set(peaks.flops) == {"float32", "bfloat16"}
    assert min(*peaks.flops.values(), peaks.bytes) > 0


def fake(sizes, fails=False):
    def run(number):
        if fails:
            raise jax.errors.JaxRuntimeError("RESOURCE_EXHAUSTED: 9 GB\nand more")
        return jnp.ones(()) * number

    work = Work(8.0, 2.0)
    return Measured(
        {"play": run, "learn": run},
        {"play": 3, "learn": 3},
        {"play": work, "learn": work},
    )


def test_parts_that_fail_or_come_too_late_are_left_out(monkeypatch, tmp_path):
    policies = {"one": fake, "two": partial(fake, fails=True)}
    monkeypatch.setattr(gpu, "POLICIES", policies)
    ways = {"one": lambda i: jnp.ones(()), "many": lambda i: jnp.ones(())}
    monkeypatch.setattr(gpu, "seeds_ways", lambda sizes: ways)
    text = io.StringIO()
    console = Console(file=text, width=120)
    out = tmp_path / "new" / "gpu.json"
    monkeypatch.setattr(gpu, "Console", lambda: console)
    gpu.main(GpuBench(smoke=True, out=out))
    found = json.loads(out.read_text())
    assert found["left_out"] == {"two": "RESOURCE_EXHAUSTED: 9 GB"}
    assert [row["way"] for row in found["ways"]] == ["play", "learn"]
    assert found["devices"] and found["backend"] == "cpu" and found["smoke"]
    for row in found["ways"]:
        middle = sorted(row["seconds"])[len(row["seconds"]) // 2]
        assert row["tokens_per_second"] == pytest.approx(3 / middle, rel=0.5)
    assert found["seeds"]["number"] == 3 and found["seeds"]["times_one"] > 0
    assert "left out: two: RESOURCE_EXHAUSTED: 9 GB" in text.getvalue()
    assert "3 seeds by vmap take" in text.getvalue()
    assert found["devices"][0] in text.getvalue()

    monkeypatch.setattr(Clock, "is_over", lambda self: True)
    found = measure(GpuBench(smoke=True), console=console)
    assert found["ways"] == [] and found["seeds"] is None
    assert set(found["left_out"].values()) == {"no time was left"}
    assert len(tables(found)) == 2 + 3


@pytest.mark.slow
def test_pooled_steps_are_played_and_learned_from():
    measured = POLICIES["tiny, pooled steps"](Sizes(groups=1, size=2))
    assert measured.tokens == {"play": 60, "learn": 60}
    assert measured.ways["play"](0).mask.shape == (2, 30)
    state, metrics = measured.ways["learn"](0)
    assert state.step == 1 and jnp.isfinite(metrics["loss"])


@pytest.mark.slow
def test_all_of_it_runs_in_small(tmp_path):
    found = measure(GpuBench(smoke=True), console=Console(file=io.StringIO()))
    assert found["left_out"] == {}
    assert [(row["policy"], row["way"]) for row in found["ways"]] == [
        (name, way) for name in POLICIES for way in ("play", "learn")
    ]
    assert {row["product"] for row in found["ways"]} == {"float32", "bfloat16"}
    assert all(row["share"] > 0 for row in found["ways"])
    assert found["seeds"]["times_one"] > 0


@pytest.mark.parametrize("name", ["minutes", "seconds"])
def test_impossible_settings_are_refused(name):
    with pytest.raises(ConfigError, match=f"{name}: expected more than 0, got 0.0"):
        GpuBench(**{name: 0.0})
