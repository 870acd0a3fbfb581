"""Requests to a tiny model, and what of their completions is compared."""

import asyncio

from jerp.bridge.batching import BatchShape
from jerp.bridge.executor import Message, Request, Sampling

SHAPE = BatchShape(
    rows=4, block_size=8, prefill_blocks=4, capacity=64, chunk=2, pool_tokens=512
)


def ask(text, index=0, answer=None, **sampling):
    sampling = {"temperature": 1.0, "max_tokens": 8} | sampling
    messages = [Message("user", text)]
    if answer is not None:
        messages.append(Message("assistant", answer))
    return Request(tuple(messages), Sampling(**sampling), index)


REQUESTS = [
    ask("abc", temperature=0.0),
    *(ask("abc", index) for index in range(3)),
    ask("a longer question", top_k=5),
    ask("q", top_p=0.5, temperature=1.5),
    ask("q", answer="so"),
    ask("stop", stop=("e", "a", "\n"), max_tokens=30),
    ask("x <|end|> ünï", top_k=20, top_p=0.9, max_tokens=11),
    Request(()),
]
"""Every way to draw and to end, and one that cannot be asked."""


def complete(model, *requests):
    return asyncio.run(model.complete(requests))


def results(completions):
    """Without log-probabilities and the measured seconds."""
    return [(c.text, c.status, c.tokens, c.tokens_in, c.error) for c in completions]
