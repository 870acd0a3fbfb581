"""SmolLM2 itself, where the cache has it; nothing is fetched here.

The expected numbers are those of transformers' Llama in torch (float32) with the same
dequantised weights; over a prompt of 53 tokens the two differ by at most 1.1e-4 in
logits that range from -26 to 43.
"""

import asyncio

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from jerp.bridge.executor import Message, Request, Sampling
from jerp.bridge.local import LocalExecutor
from jerp.bridge.rule_prompt import read_rules_block, rules_block
from jerp.models.decoder import Decoder
from jerp.rules.text import check_rule_text
from jerp.storage.weights import list_models, load_weights
from tests.bridge.rule_attacks import QUOTED

[INFO] = (info for info in list_models() if info.name == "smollm2")

pytestmark = [
    pytest.mark.weights,
    pytest.mark.skipif(
        not INFO.present,
        reason=f"no SmolLM2 weights in {INFO.path}; type: jerp models pull smollm2",
    ),
]
TOP_FIVE = {7042: 17.3713, 260: 14.8886, 4528: 13.2450, 2250: 13.0095, 1315: 12.9515}


@pytest.fixture(scope="module")
def weights():
    return load_weights("smollm2")


def test_sizes_and_stop_tokens(weights):
    config = weights.config
    assert (config.num_layers, config.hidden_size, config.vocab_size) == (
        30,
        576,
        49152,
    )
    assert (config.num_heads, config.num_kv_heads, config.head_dim) == (9, 3, 64)
    assert config.context_length == 8192
    assert config.tied_embeddings
    assert [weights.tokenizer.id_to_token(t) for t in weights.stop_tokens] == [
        "<|endoftext|>",
        "<|im_end|>",
    ]


def test_logits_equal_torch(weights):
    tokens = weights.tokenizer.encode("The capital of France is").ids
    assert tokens == [504, 3575, 282, 4649, 314]
    logits = jax.jit(Decoder(weights.config).apply)(
        weights.params, jnp.asarray([tokens])
    )[0, -1]
    best = np.argsort(-np.asarray(logits))[:5]
    assert best.tolist() == list(TOP_FIVE)
    np.testing.assert_allclose(logits[best], list(TOP_FIVE.values()), atol=1e-3)


@pytest.mark.parametrize(
    "text",
    [
        "def f(x):\n    return x ** 2  # naïve 😀",
        "<|im_start|>user\n12345 + 6,7<|im_end|>\n",
        " \u2028\u0085\t\ttabs ",
    ],
)
def test_the_tokenizer_loses_nothing(weights, text):
    ids = weights.tokenizer.encode(text).ids
    decoded = weights.tokenizer.decode(ids, skip_special_tokens=False)
    assert decoded == text
    assert sum(weights.tokenizer.id_to_token(i) in "0123456789" for i in ids) == sum(
        c.isdigit() for c in text
    )


@pytest.mark.slow
def test_the_executor_answers_the_same_in_any_batch(weights):
    executor = LocalExecutor(weights)
    ask = Message("user", "What is the capital of France? Answer with one word.")
    start = (
        Message("user", "Write a Python function add(a, b)."),
        Message("assistant", "```python\ndef add("),
    )
    drawn = Sampling(max_tokens=12)
    requests = [Request((ask,), drawn, i) for i in range(20)]
    requests += [Request(start, Sampling(0.0, max_tokens=32, stop=("```",)))] * 20
    together = asyncio.run(executor.complete(requests))
    assert sum("Paris" in c.text for c in together[:20]) > 10
    assert together[20].text == "a, b):\n    return a + b\n"
    assert {c.tokens for c in together[20:]} == {together[20].tokens}
    for i in (0, 7, 33):
        [alone] = asyncio.run(executor.complete([requests[i]]))
        assert (alone.tokens, alone.log_probs) == (
            together[i].tokens,
            together[i].log_probs,
        )


def test_no_control_token_comes_from_a_rule(weights):
    added = weights.tokenizer.get_added_tokens_decoder()
    special = {i for i, token in added.items() if token.special}
    names = [added[i].content for i in sorted(special)]
    assert len(names) >= 15
    # They do come from text that nobody quoted.
    assert special <= set(weights.tokenizer.encode(" ".join(names)).ids)
    texts = [check_rule_text(text) for text in QUOTED.values()]
    texts += [f"Heat it {name} now." for name in names]
    said = rules_block(texts)
    ids = weights.tokenizer.encode(said, add_special_tokens=False).ids
    assert not special & set(ids)
    assert read_rules_block(weights.tokenizer.decode(ids)) == tuple(texts)
