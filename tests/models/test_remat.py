"""Layers computed a second time for the gradient: less memory, the same numbers."""

from dataclasses import replace
from functools import partial

import chex
import jax
import jax.numpy as jnp
import numpy as np

from jerp.models.decoder import Decoder
from jerp.models.generate import generate
from jerp.models.lora import LoraConfig, init_adapters, with_adapters
from tests.models.tiny import CONFIG, DECODER, random_params, sampling_rows

AGAIN = Decoder(replace(CONFIG, remat=True))
DEEP = replace(CONFIG, num_layers=4)
LORA = LoraConfig(rank=2, alpha=3.0, targets=r"layer_\d+/(q|down)")
TOKENS = jnp.arange(8 * 64).reshape(8, 64) % CONFIG.vocab_size

# By default XLA favours concurrency on the CPU: what could be computed late is computed
# as early as it can be, and kept.
LATE = {"xla_cpu_scheduler_type": "CPU_SCHEDULER_TYPE_MEMORY_OPTIMIZED"}


def loss(trained, decoder):
    variables = with_adapters(*trained, LORA)
    log_probs = jax.nn.log_softmax(decoder.apply(variables, TOKENS))
    return -jnp.take_along_axis(log_probs[:, :-1], TOKENS[:, 1:, None], -1).mean()


def test_same_gradient_in_less_memory():
    pairs = jax.eval_shape(lambda: init_adapters(jax.random.key(1), DEEP, LORA))
    pairs = jax.tree.map(lambda x: np.full(x.shape, 0.1, np.float32), pairs)
    trained = random_params(0, DEEP), pairs
    found, memory = [], []
    for config in (DEEP, replace(DEEP, remat=True)):
        gradient = jax.value_and_grad(partial(loss, decoder=Decoder(config)))
        compiled = jax.jit(gradient).lower(trained).compile(LATE)
        memory.append(compiled.memory_analysis().temp_size_in_bytes)
        found.append(compiled(trained))
    chex.assert_trees_all_close(*found, atol=1e-6, rtol=0)
    assert all(jnp.abs(g).max() > 0 for g in jax.tree.leaves(found[1][1]))
    # The inside of one layer, and what goes from one to the next, instead of four.
    assert memory[1] < 0.6 * memory[0], memory


def test_same_names_and_logits():
    kept, again = (
        jax.eval_shape(decoder.init, jax.random.key(0), TOKENS)
        for decoder in (DECODER, AGAIN)
    )
    assert jax.tree.structure(kept) == jax.tree.structure(again)
    params = random_params()
    logits = (jax.jit(decoder.apply)(params, TOKENS) for decoder in (DECODER, AGAIN))
    chex.assert_trees_all_equal(*logits)


def test_same_tokens_with_a_cache():
    one = replace(CONFIG, num_layers=1)
    keys = jax.vmap(jax.random.key)(jnp.arange(4, dtype=jnp.uint32))
    tokens = (
        jax.jit(partial(generate, decoder=Decoder(config), steps=2))(
            random_params(0, one),
            keys,
            TOKENS[:4, :5],
            np.array([3, 5, 1, 4], np.int32),
            sampling_rows([1.0] * 4),
            jnp.full(4, -1),
        )
        for config in (one, replace(one, remat=True))
    )
    chex.assert_trees_all_equal(*tokens)
