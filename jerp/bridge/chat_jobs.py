"""Between requests and sampled tokens, for every executor that samples them itself.

A request becomes a job: the tokens of its prompt, and a function that says when its
answer ends. What was drawn becomes a completion. Whatever computes the tokens, the text
of an answer, its status and its seed are then found in one way.
"""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any, TypeVar

from jerp.bridge.chat import ChatTemplate, before_stop, visible_text
from jerp.bridge.executor import Completion, Request, Sampling, Status
from jerp.bridge.request_records import request_seed
from jerp.bridge.rows import Job

__all__ = ["ChatJobs", "in_thread"]

T = TypeVar("T")


class ChatJobs:
    """Makes jobs of requests, and completions of jobs.

    Tokens of a completion include the stop token, or those of the stop string; text
    includes neither.

    Args:
      tokenizer: encodes and decodes as a `tokenizers.Tokenizer` does.
      template: of the model.
      stop_tokens: ids that end an answer.
      context_length: the most tokens of prompt and answer together.
    """

    def __init__(
        self,
        tokenizer: Any,
        template: ChatTemplate,
        *,
        stop_tokens: Sequence[int],
        context_length: int,
    ):
        self.tokenizer, self.stop_tokens = tokenizer, tuple(stop_tokens)
        self._template, self._context_length = template, context_length

    def job(self, request: Request) -> Job | Completion:
        """The job of a request, or the completion that says why there is none."""
        sampling, context = request.sampling, self._context_length
        if request.tools:
            reason = "tools: expected none, this decoder does not call any"
            return Completion("", status="error", error=reason)
        try:
            text = self._template.render(request.messages)
        except ValueError as error:
            return Completion("", status="error", error=f"messages: {error}")
        prompt = self.tokenizer.encode(text, add_special_tokens=False).ids
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

    def completion(self, job: Job, sampling: Sampling) -> Completion:
        """What a job that has ended says."""
        ended = job.tokens[-1] in self.stop_tokens
        shown = job.tokens[:-1] if ended else job.tokens
        text = visible_text(self.tokenizer, shown)
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

    def _ends(self, sampling: Sampling, tokens: Sequence[int]) -> bool:
        if tokens[-1] in self.stop_tokens:
            return True
        if not sampling.stop:
            return False
        text = visible_text(self.tokenizer, tokens)
        return before_stop(text, sampling.stop) is not None


async def in_thread(compute: Callable[[Callable[[], bool]], T]) -> T:
    """What `compute(cancelled)` returns, computed beside the event loop.

    A cancelled call returns at once; `cancelled()` then tells the computation.
    """
    cancelled = threading.Event()
    try:
        return await asyncio.to_thread(compute, cancelled.is_set)
    except asyncio.CancelledError:
        cancelled.set()
        raise
