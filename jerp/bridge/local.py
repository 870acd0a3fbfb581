"""The frozen executor of this process: a decoder, its tokenizer, a batched sampler.

It computes in a worker thread, so that an event loop stays free. It uses JAX: never
call it from a callback of a running jitted program (`jerp.bridge.callback` says how).
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Any, Literal, Protocol

import jax

from jerp.bridge.batching import Batcher, BatchShape
from jerp.bridge.chat import ChatTemplate, settled_text, visible_text
from jerp.bridge.chat_jobs import ChatJobs, in_thread
from jerp.bridge.executor import Completion, Request, Sampling
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

    `jerp.bridge.chat_jobs.ChatJobs` says which tokens and which text a completion has.
    Log-probabilities are under the distribution sampled from.

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
        self._chats = ChatJobs(
            model.tokenizer,
            ChatTemplate(model.chat_template, model.template_variables),
            stop_tokens=model.stop_tokens,
            context_length=model.config.context_length,
        )
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
        return await in_thread(partial(self._complete, requests, on_text))

    def _complete(
        self,
        requests: Sequence[Request],
        on_text: OnText | None,
        cancelled: Callable[[], bool],
    ) -> list[Completion]:
        prepared = [self._chats.job(request) for request in requests]
        if on_text is not None:
            for index, (job, request) in enumerate(
                zip(prepared, requests, strict=True)
            ):
                if isinstance(job, Job):
                    tell = partial(on_text, index)
                    job.ends = partial(self._told, job.ends, tell, request.sampling)
        jobs = [job for job in prepared if isinstance(job, Job)]
        with self._lock:
            self._batcher.run(jobs, cancelled=cancelled)
        if cancelled():
            return []
        return [
            self._chats.completion(job, request.sampling)
            if isinstance(job, Job)
            else job
            for job, request in zip(prepared, requests, strict=True)
        ]

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
            text = visible_text(self._chats.tokenizer, tokens)
            tell(settled_text(text, sampling.stop))
        return is_end
