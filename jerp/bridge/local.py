"""The frozen executor of this process: a decoder, its tokenizer, a batched sampler.

It computes in a worker thread, so that an event loop stays free. It uses JAX: never
call it from a callback of a running jitted program (`jerp.bridge.callback` says how).
"""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Any, Literal, Protocol

import jax

from jerp.bridge.batching import Batcher, BatchShape
from jerp.bridge.chat import ChatTemplate, before_stop, settled_text, visible_text
from jerp.bridge.executor import (
    Completion,
    Request,
    Sampling,
    Status,
)
from jerp.bridge.request_records import (
    request_seed,
)
from jerp.bridge.rows import Job
from jerp.errors import ExecutorError
from jerp.models.decoder import DecoderConfig, cast_products
from jerp.typing import ArrayTree

__all__ = ["LoadedModel", "LocalExecutor", "OnText"]

Numerics = Literal["bfloat16", "float32"]

OnText = Callable[[int, str], None]
"""Takes the position of a request and its text so far, from the computing thread."""


class LoadedModel(Protocol):
    """What an executor needs of a model; `jerp.storage.weights.Weights` has it."""

    @property
    def config(self) -> DecoderConfig:
        """Sizes."""
        ...

    @property
    def params(self) -> ArrayTree:
        """Variables of `jerp.models.decoder.Decoder`."""
        ...

    @property
    def tokenizer(self) -> Any:
        """A `tokenizers.Tokenizer`."""
        ...

    @property
    def chat_template(self) -> str:
        """Jinja source."""
        ...

    @property
    def template_variables(self) -> Mapping[str, str]:
        """Variables of the template."""
        ...

    @property
    def stop_tokens(self) -> tuple[int, ...]:
        """Ids that end an answer."""
        ...

    @property
    def fingerprint(self) -> str:
        """Weights and quantisation."""
        ...


class LocalExecutor:
    """Answers requests with a decoder in this process; see `Executor`.

    Tokens of a completion include the stop token, or those of the stop string; text
    includes neither. Log-probabilities are under the distribution sampled from.

    Args:
      model: loaded weights; its tokenizer decides what a token is.
      numerics: dtype of the weights and of the products with them; sums, attention and
        everything else are float32. `bfloat16` is 1.6 times as fast where the processor
        multiplies it natively.
      shape: fixed shapes of the computation.
    """

    def __init__(
        self,
        model: LoadedModel,
        *,
        numerics: Numerics = "bfloat16",
        shape: BatchShape | None = None,
    ):
        if not model.chat_template:
            raise ExecutorError(
                "the model has no chat template: expected an instruction-tuned model"
            )
        shape = shape or BatchShape()
        self._tokenizer, self._stop_tokens = model.tokenizer, model.stop_tokens
        self._context_length = model.config.context_length
        self._template = ChatTemplate(model.chat_template, model.template_variables)
        config, params = cast_products(model.config, model.params, numerics)
        self._batcher = Batcher(config, params, shape)
        self._lock = threading.Lock()
        self.fingerprint = (
            f"{model.fingerprint}/{numerics}/{jax.default_backend()}/{shape.name}"
        )

    async def complete(
        self, requests: Sequence[Request], *, on_text: OnText | None = None
    ) -> list[Completion]:
        """Answers all requests, same length and order.

        A request that cannot be run has status `error`. A cancelled call stops the
        computation after the chunk under way. `on_text` is called after tokens, with
        text that only grows; what is held back comes with the completion.
        """
        cancelled = threading.Event()
        try:
            return await asyncio.to_thread(self._complete, requests, cancelled, on_text)
        except asyncio.CancelledError:
            cancelled.set()
            raise

    def _complete(
        self,
        requests: Sequence[Request],
        cancelled: threading.Event,
        on_text: OnText | None,
    ) -> list[Completion]:
        prepared = [self._prepare(request) for request in requests]
        if on_text is not None:
            for index, (job, request) in enumerate(
                zip(prepared, requests, strict=True)
            ):
                if isinstance(job, Job):
                    tell = partial(on_text, index)
                    job.ends = partial(self._told, job.ends, tell, request.sampling)
        jobs = [job for job in prepared if isinstance(job, Job)]
        with self._lock:
            self._batcher.run(jobs, cancelled=cancelled.is_set)
        if cancelled.is_set():
            return []
        return [
            self._finish(job, request.sampling) if isinstance(job, Job) else job
            for job, request in zip(prepared, requests, strict=True)
        ]

    def _prepare(self, request: Request) -> Job | Completion:
        """The job of a request, or the completion that says why there is none."""
        sampling, context = request.sampling, self._context_length
        if request.tools:
            reason = "tools: expected none, this decoder does not call any"
            return Completion("", status="error", error=reason)
        try:
            text = self._template.render(request.messages)
        except ValueError as error:
            return Completion("", status="error", error=f"messages: {error}")
        prompt = self._tokenizer.encode(text, add_special_tokens=False).ids
        if not prompt or len(prompt) + sampling.max_tokens > context:
            return Completion(
                text="",
                status="error",
                tokens_in=len(prompt),
                error=f"a prompt of {len(prompt)} tokens with max_tokens="
                f"{sampling.max_tokens} does not fit the context of {context} tokens",
            )
        return Job(
            prompt=tuple(prompt),
            seed=request_seed(request),
            temperature=sampling.temperature,
            top_k=sampling.top_k,
            top_p=sampling.top_p,
            max_tokens=sampling.max_tokens,
            ends=partial(self._ends, sampling),
        )

    def _told(
        self,
        ends: Callable[[Sequence[int]], bool],
        tell: Callable[[str], None],
        sampling: Sampling,
        tokens: Sequence[int],
    ) -> bool:
        """`ends`, telling the text of a job that goes on."""
        is_end = ends(tokens)
        if not is_end:
            tell(settled_text(visible_text(self._tokenizer, tokens), sampling.stop))
        return is_end

    def _ends(self, sampling: Sampling, tokens: Sequence[int]) -> bool:
        if tokens[-1] in self._stop_tokens:
            return True
        if not sampling.stop:
            return False
        text = visible_text(self._tokenizer, tokens)
        return before_stop(text, sampling.stop) is not None

    def _finish(self, job: Job, sampling: Sampling) -> Completion:
        ended = job.tokens[-1] in self._stop_tokens
        shown = job.tokens[:-1] if ended else job.tokens
        text = visible_text(self._tokenizer, shown)
        before = before_stop(text, sampling.stop)
        if before is not None:
            text, ended = before, True
        status: Status = "ok" if ended else "truncated"
        return Completion(
            text=text,
            status=status if text.strip() else "empty",
            tokens=tuple(job.tokens),
            log_probs=tuple(job.log_probs),
            tokens_in=len(job.prompt),
            tokens_out=len(job.tokens),
            seconds=job.seconds,
        )
