"""The frozen executor of this process: a decoder, its tokenizer, a sampler."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Sequence
from functools import partial
from typing import Any, Protocol

import jax
import jax.numpy as jnp
import jinja2.sandbox
import numpy as np

from jerp.bridge.executor import Completion, Message, Request, request_seed
from jerp.errors import ExecutorError
from jerp.models.decoder import Decoder, DecoderConfig
from jerp.models.generate import SamplingArrays, generate
from jerp.typing import ArrayTree

__all__ = ["LoadedModel", "LocalExecutor", "render_chat"]


class LoadedModel(Protocol):
    """What an executor needs of loaded weights (`jerp.storage.weights.Weights`)."""

    @property
    def config(self) -> DecoderConfig: ...  # noqa: D102
    @property
    def params(self) -> ArrayTree: ...  # noqa: D102
    @property
    def tokenizer(self) -> Any: ...  # noqa: D102
    @property
    def chat_template(self) -> str: ...  # noqa: D102
    @property
    def stop_tokens(self) -> tuple[int, ...]: ...  # noqa: D102
    @property
    def fingerprint(self) -> str: ...  # noqa: D102


def render_chat(template: str, messages: Sequence[Message]) -> str:
    """The prompt text; an assistant message at the end is left open."""
    environment = jinja2.sandbox.ImmutableSandboxedEnvironment(
        trim_blocks=True, lstrip_blocks=True
    )
    closed, prefill = list(messages), ""
    if closed and closed[-1].role == "assistant":
        prefill = closed.pop().content
    text = environment.from_string(template).render(
        messages=[{"role": m.role, "content": m.content} for m in closed],
        add_generation_prompt=True,
    )
    return text + prefill


class LocalExecutor:
    """Answers requests with a decoder in this process."""

    def __init__(
        self, model: LoadedModel, *, batch_size: int = 16, numerics: str = "bfloat16"
    ):
        if not model.chat_template:
            raise ExecutorError("the model has no chat template")
        self._model, self._batch = model, batch_size
        dtype = jnp.dtype(numerics)
        self._params = jax.tree.map(
            lambda x: x.astype(dtype) if x.ndim == 2 else x, model.params
        )
        self._generate = jax.jit(
            partial(generate, decoder=Decoder(model.config)),
            static_argnames=("num_steps",),
        )
        self._stop = jnp.asarray(model.stop_tokens, jnp.int32)
        self.fingerprint = f"{model.fingerprint}/{numerics}/b{batch_size}"

    async def complete(self, requests: Sequence[Request]) -> list[Completion]:
        """Answers all requests, same length and order."""
        return await asyncio.to_thread(self._complete, requests)

    def _complete(self, requests: Sequence[Request]) -> list[Completion]:
        prompts = [
            self._model.tokenizer.encode(
                render_chat(self._model.chat_template, r.messages),
                add_special_tokens=False,
            ).ids
            for r in requests
        ]
        groups: dict[tuple[int, int], list[int]] = {}
        for i, (prompt, request) in enumerate(zip(prompts, requests, strict=True)):
            steps = 16 * -(-request.sampling.max_tokens // 16)
            groups.setdefault((32 * -(-len(prompt) // 32), steps), []).append(i)
        done: dict[int, Completion] = {}
        for (width, steps), members in groups.items():
            for start in range(0, len(members), self._batch):
                rows = members[start : start + self._batch]
                done |= self._run(rows, prompts, requests, width, steps)
        return [done[i] for i in range(len(requests))]

    def _run(self, rows, prompts, requests, width, steps) -> dict[int, Completion]:
        began = time.perf_counter()
        padded = rows + [rows[-1]] * (self._batch - len(rows))
        tokens = np.zeros((self._batch, width), np.int32)
        for r, i in enumerate(padded):
            tokens[r, : len(prompts[i])] = prompts[i]
        sampling = [requests[i].sampling for i in padded]
        keys = jax.vmap(jax.random.key)(
            jnp.asarray([request_seed(requests[i]) for i in padded], jnp.uint32)
        )
        out = self._generate(
            self._params,
            keys,
            tokens,
            np.asarray([len(prompts[i]) for i in padded], np.int32),
            SamplingArrays(
                temperature=np.asarray([s.temperature for s in sampling], np.float32),
                top_k=np.asarray([s.top_k for s in sampling], np.int32),
                top_p=np.asarray([s.top_p for s in sampling], np.float32),
            ),
            self._stop,
            num_steps=steps,
        )
        out = jax.tree.map(np.asarray, out)
        seconds = (time.perf_counter() - began) / len(rows)
        return {
            i: self._finish(
                requests[i],
                len(prompts[i]),
                out.tokens[r][out.mask[r]][: requests[i].sampling.max_tokens].tolist(),
                out.log_prob[r].tolist(),
                seconds,
            )
            for r, i in enumerate(rows)
        }

    def _finish(self, request, tokens_in, tokens, log_probs, seconds) -> Completion:
        stopped = bool(tokens) and tokens[-1] in self._model.stop_tokens
        text = self._model.tokenizer.decode(tokens, skip_special_tokens=True)
        for stop in request.sampling.stop:
            if stop in text:
                text, stopped = text[: text.index(stop)], True
        status = "ok" if stopped else "truncated"
        return Completion(
            text=text,
            status=status if text.strip() else "empty",
            tokens=tuple(tokens),
            log_probs=tuple(log_probs[: len(tokens)]),
            tokens_in=tokens_in,
            tokens_out=len(tokens),
            seconds=seconds,
        )
