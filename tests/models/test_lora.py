"""Adapters against PEFT's numbers, loops, and the limits in which they do nothing."""

from dataclasses import replace
from functools import partial
from pathlib import Path

import chex
import jax
import jax.numpy as jnp
import numpy as np
import optax
import pytest

from jerp.errors import ConfigError
from jerp.models import lora as module
from jerp.models.decoder import Decoder, cast_products
from jerp.models.generate import generate
from jerp.models.lora import (
    LoraConfig,
    init_adapters,
    merge_adapters,
    projection_sizes,
    with_adapters,
)
from jerp.storage.hub_layout import LAYER_NAMES, decoder_config
from tests.models import families
from tests.models.tiny import CONFIG, DECODER, hub_weights, random_params, sampling_rows
from tests.reference import decoder as reference
from tests.storage.model_files import variables_of

LORA = LoraConfig(rank=2, alpha=3.0, targets=r"layer_\d+/.*")
TOKENS = jnp.array([[1, 5, 2, 9], [3, 3, 8, 0]])

ONE = replace(CONFIG, num_layers=1)
"""Where two layers would only compile for longer."""

forward, forward_one = jax.jit(DECODER.apply), jax.jit(Decoder(ONE).apply)


def random_adapters(seed, config=CONFIG, lora=LORA):
    """Both halves of every pair drawn, so that all of them count."""
    init = partial(init_adapters, config=config, lora=lora)
    leaves, tree = jax.tree.flatten(jax.eval_shape(init, jax.random.key(0)))
    sizes = np.cumsum([leaf.size for leaf in leaves])
    drawn = 0.3 * np.asarray(jax.random.normal(jax.random.key(seed), (sizes[-1],)))
    parts = zip(np.split(drawn, sizes[:-1]), leaves, strict=True)
    return jax.tree.unflatten(tree, [part.reshape(x.shape) for part, x in parts])


def test_logits_equal_peft_and_loops():
    """`origin` in the file says which implementation made them."""
    golden = families.golden("lora")
    raw, peft = golden["config"], golden["lora"]
    assert (raw, peft) == (families.FAMILIES["qwen2"], families.LORA)
    config, weights = decoder_config(Path("c"), raw), families.weights(raw)
    pairs = families.lora_weights(raw)
    names = {path.removesuffix(".weight"): name for name, path in LAYER_NAMES.items()}
    adapters = {}
    for place, (a, b) in pairs.items():
        _, _, layer, *rest = place.split(".")
        name = names[".".join(rest)]
        adapters.setdefault(f"layer_{layer}", {})[name] = {"a": a.T, "b": b.T}
        weights |= {f"{place}.lora_A": a, f"{place}.lora_B": b}
    lora = LoraConfig(peft["r"], peft["lora_alpha"], targets=r"layer_\d+/(q|v|down)")
    chex.assert_trees_all_equal_shapes(
        adapters, init_adapters(jax.random.key(0), config, lora)
    )
    params = variables_of(config, weights)
    variables = with_adapters(params, adapters, lora)
    logits = jax.jit(Decoder(config).apply)(variables, jnp.asarray(golden["tokens"]))
    np.testing.assert_allclose(logits, golden["logits"], atol=1e-4)
    weights["lora_scale"] = peft["lora_alpha"] / peft["r"]
    loops = reference.logits(weights, golden["tokens"][0], raw)
    np.testing.assert_allclose(loops, golden["logits"][0], atol=1e-4)


def test_fresh_adapters_change_nothing():
    adapters = jax.jit(init_adapters, static_argnums=(1, 2))(
        jax.random.key(0), ONE, LORA
    )
    params = random_params(0, ONE)
    adapted = forward_one(with_adapters(params, adapters, LORA), TOKENS)
    chex.assert_trees_all_equal(adapted, forward_one(params, TOKENS))
    assert len(pairs_of(adapters)) == len(module.PROJECTIONS)
    assert all(jnp.abs(pair["a"]).max() > 0 for pair in pairs_of(adapters))


def pairs_of(adapters):
    return [pair for layer in adapters.values() for pair in layer.values()]


def test_fresh_adapters_are_uniform_and_independent_of_other_targets():
    config = replace(CONFIG, hidden_size=64)
    two = replace(LORA, rank=50, targets=".*/(gate|down)")
    adapters = init_adapters(jax.random.key(1), config, two)
    a = adapters["layer_0"]["gate"]["a"]
    bound = 1 / np.sqrt(64)
    assert a.shape == (64, 50)
    assert jnp.abs(a).max() <= bound
    assert float(a.std()) == pytest.approx(bound / np.sqrt(3), rel=0.05)
    assert abs(float(a.mean())) < 0.01
    alone = init_adapters(
        jax.random.key(1), config, replace(two, targets="layer_0/gate")
    )
    assert alone.keys() == {"layer_0"} and alone["layer_0"].keys() == {"gate"}
    chex.assert_trees_all_equal(alone["layer_0"]["gate"], adapters["layer_0"]["gate"])
    assert not np.allclose(a, adapters["layer_1"]["gate"]["a"])


@pytest.mark.parametrize("targets", [r"layer_\d+/.*", r"layer_1/(q|v|up)"])
def test_merging_equals_applying(targets):
    lora = replace(LORA, targets=targets)
    params, adapters = random_params(), random_adapters(3, lora=lora)
    apart = forward(with_adapters(params, adapters, lora), TOKENS)
    merged = merge_adapters(CONFIG, params, adapters, lora)
    together = forward(merged, TOKENS)
    scale = float(jnp.abs(apart).max())
    np.testing.assert_allclose(together / scale, apart / scale, atol=1e-5)
    assert jnp.abs(apart - forward(params, TOKENS)).max() > 0.1
    chex.assert_trees_all_equal(params, random_params())


def test_merged_weights_by_hand():
    """A = e_0 (1, 0), B = (0, 2; 5, 5): alpha / r A B has 3 at row 0, column 1."""
    lora = replace(LORA, targets="layer_0/k")
    a = jnp.zeros((16, 2)).at[0, 0].set(1.0)
    b = jnp.zeros((2, 8)).at[0, 1].set(2.0).at[1].set(5.0)
    adapters = {"layer_0": {"k": {"a": a, "b": b}}}
    merged = merge_adapters(CONFIG, random_params(), adapters, lora)["params"]
    change = merged["layer_0"]["qkv"] - random_params()["params"]["layer_0"]["qkv"]
    assert float(change[0, 16 + 1]) == pytest.approx(3.0, abs=1e-5)
    assert int((jnp.abs(change) > 1e-6).sum()) == 1


def test_many_adapters_over_one_base_equal_a_loop():
    params = random_params(0, ONE)
    many = [random_adapters(seed, ONE) for seed in range(3)]
    stacked = jax.tree.map(lambda *x: jnp.stack(x), *many)

    def logits(adapters, tokens):
        return Decoder(ONE).apply(with_adapters(params, adapters, LORA), tokens)

    together = jax.jit(jax.vmap(logits, in_axes=(0, None)))(stacked, TOKENS)
    for adapters, batched in zip(many, together, strict=True):
        alone = forward_one(with_adapters(params, adapters, LORA), TOKENS)
        np.testing.assert_allclose(batched, alone, rtol=1e-4, atol=1e-4)
    assert not np.allclose(together[0], together[1], atol=0.1)


def test_the_optimizer_sees_adapters_only():
    lora = replace(LORA, dropout=0.1, targets=".*/(q|v|down)")
    params = random_params(0, ONE)
    adapters = init_adapters(jax.random.key(0), ONE, lora)
    optimizer = optax.adam(0.05)
    state = optimizer.init(adapters)
    moments = [x for x in jax.tree.leaves(state) if x.ndim]
    assert sum(x.size for x in moments) == 2 * sum(
        x.size for x in jax.tree.leaves(adapters)
    )

    def loss(adapters, key):
        variables = with_adapters(params, adapters, lora, dropout_key=key)
        logits = Decoder(ONE).apply(variables, TOKENS)
        log_probs = jax.nn.log_softmax(logits[:, :-1])
        return -jnp.take_along_axis(log_probs, TOKENS[:, 1:, None], axis=-1).mean()

    @jax.jit
    def step(adapters, state, key):
        value, gradient = jax.value_and_grad(loss)(adapters, key)
        change, state = optimizer.update(gradient, state)
        return optax.apply_updates(adapters, change), state, value

    values = []
    for seed in range(40):
        adapters, state, value = step(adapters, state, jax.random.key(seed))
        values.append(float(value))
    assert values[-1] < 0.3 * values[0]
    changed = [pair for pair in pairs_of(adapters) if jnp.abs(pair["b"]).max() > 0]
    assert len(changed) == 3
    chex.assert_trees_all_equal(params, random_params(0, ONE))


def test_generation_reads_adapters_too():
    """As the merged decoder does; and half-precision products keep them."""
    params, adapters = random_params(0, ONE), random_adapters(3, ONE)
    merged = merge_adapters(ONE, params, adapters, LORA)
    beside = with_adapters(params, adapters, LORA)

    @jax.jit
    def drawn(variables):
        keys = jax.random.split(jax.random.key(0), 2)
        length, stop = jnp.array([4, 3]), jnp.array([100])
        rows = sampling_rows([0.0, 0.0])
        return generate(
            variables, keys, TOKENS, length, rows, stop, decoder=Decoder(ONE), steps=3
        ).tokens

    chex.assert_trees_all_equal(drawn(merged), drawn(beside))
    assert (drawn(beside) != drawn(params)).any()
    _, half = cast_products(ONE, beside, jnp.bfloat16)
    chex.assert_trees_all_equal(half["adapters"], beside["adapters"])


def test_dropout_is_of_the_adapters_input_alone():
    lora = replace(LORA, dropout=0.4)
    params, adapters = random_params(0, ONE), random_adapters(3, ONE)

    @jax.jit
    def logits(key, adapters):
        variables = with_adapters(params, adapters, lora, dropout_key=key)
        return Decoder(ONE).apply(variables, TOKENS)

    one, again, two = (logits(jax.random.key(seed), adapters) for seed in (0, 0, 1))
    chex.assert_trees_all_equal(one, again)
    assert not np.allclose(one, two, atol=0.01)
    fresh = jax.tree.map(jnp.zeros_like, adapters)
    chex.assert_trees_all_close(
        logits(jax.random.key(0), fresh), forward_one(params, TOKENS), atol=1e-5
    )
    without = with_adapters(params, adapters, lora)
    plain = with_adapters(params, adapters, LORA, dropout_key=jax.random.key(0))
    chex.assert_trees_all_equal(without, plain)


def test_dropout_keeps_the_mean_and_drops_the_share_it_names():
    """An adapter that copies: its output shows what was dropped."""
    lora = LoraConfig(rank=16, alpha=16.0, dropout=0.25, targets="layer_0/k")
    adapters = {"layer_0": {"k": {"a": jnp.eye(16), "b": jnp.eye(16, 8)}}}
    base = {"params": {"layer_0": {"qkv": jnp.zeros((16, 32))}}}
    variables = with_adapters(base, adapters, lora, dropout_key=jax.random.key(3))
    from jerp.models.block import _low_rank

    x = jnp.ones((50, 40, 16))
    y = np.asarray(_low_rank(x, variables["adapters"]["layer_0"]["k"]))
    assert y.shape == (50, 40, 8)
    np.testing.assert_allclose(np.unique(y), [0.0, 1 / 0.75], rtol=1e-6)
    assert (y == 0).mean() == pytest.approx(0.25, abs=0.01)


def test_sizes_are_those_of_the_matrices():
    for config in (CONFIG, replace(CONFIG, head_dim=6)):
        weights = hub_weights(random_params(0, config), config)
        for name, (rows, columns) in projection_sizes(config).items():
            matrix = weights[f"model.layers.1.{LAYER_NAMES[name]}"]
            assert matrix.shape == (columns, rows)


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"rank": 0}, "rank: expected at least 1, got 0"),
        ({"alpha": 0.0}, "alpha: expected a positive number, got 0.0"),
        ({"alpha": float("nan")}, "alpha: expected a positive number, got nan"),
        ({"dropout": 1.0}, "dropout: expected 0 <= p < 1, got 1.0"),
        ({"targets": "("}, "targets: expected a regular expression"),
    ],
)
def test_impossible_settings_are_refused(changes, message):
    with pytest.raises(ConfigError, match=message):
        replace(LORA, **changes)


def test_targets_that_match_nothing_are_refused():
    lora = replace(LORA, targets="layer_0/query")
    with pytest.raises(ConfigError, match="one of q, k, v, o, gate, up, down; got"):
        init_adapters(jax.random.key(0), CONFIG, lora)


def pair(name, a, b):
    """An adapter of a layer, of these shapes."""
    return {"layer_1": {name: {"a": jnp.zeros(a), "b": jnp.zeros(b)}}}


@pytest.mark.parametrize(
    ("adapters", "message"),
    [
        ({"layer_2": {}}, "which has 2, got 'layer_2'"),
        ({"layer_0": {"query": {}}}, "names of q, k, .*got 'query'"),
        (pair("q", (16, 4), (4, 16)), r"layer_1/q: expected a \[16, 2\] and b \[2, le"),
        (pair("k", (8, 2), (2, 8)), r"expected a \[16, 2\].*got \[8, 2\] and \[2, 8\]"),
        (pair("k", (16, 2), (2, 32)), r"b \[2, less than 32\].*got .* and \[2, 32\]"),
        (pair("down", (24, 2), (2, 8)), r"layer_1/down: .*b \[2, 16\].*and \[2, 8\]"),
    ],
)
def test_another_decoders_adapters_are_refused(adapters, message):
    with pytest.raises(ConfigError, match=message):
        with_adapters(random_params(), adapters, LORA)
    with pytest.raises(ConfigError, match=message):
        merge_adapters(CONFIG, random_params(), adapters, LORA)
