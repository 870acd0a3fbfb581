"""The local executor behind HTTP: chat completions, streamed or whole.

Requests that come while others are computed wait, and are then computed together. What
a request draws depends on itself and its seed alone, so that a client gets what it
would get in this process.
"""

from __future__ import annotations

import asyncio
import hashlib
import hmac
import json
import secrets
import time
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from functools import partial
from typing import TYPE_CHECKING, Any

from jerp.bridge.executor import Completion, Request
from jerp.bridge.local import LoadedModel, LocalExecutor
from jerp.bridge.serving_requests import (
    ApiError,
    ChatRequest,
    chunk,
    finish_reason,
    log_prob_list,
    read_chat_request,
    usage,
    whole_answer,
)
from jerp.errors import MissingExtraError

if TYPE_CHECKING:
    from starlette.applications import Starlette

__all__ = ["Gatherer", "chat_app"]

_MAX_BODY = 16 * 2**20
_MAX_TOKENS = 256


@dataclass(eq=False)
class _Waiting:
    request: Request
    on_text: Callable[[str], None] | None
    answer: asyncio.Future[Completion]


@dataclass
class Gatherer:
    """Brings requests that come one by one to an executor that is faster with many.

    Attributes:
      executor: what answers.
      batches: how many requests were computed together, each time.
    """

    executor: LocalExecutor
    batches: list[int] = field(default_factory=list)
    _waiting: list[_Waiting] = field(default_factory=list)
    _came: asyncio.Event = field(default_factory=asyncio.Event)

    async def ask(
        self, request: Request, on_text: Callable[[str], None] | None = None
    ) -> Completion:
        """The completion; `on_text` is called in the computing thread."""
        answer = asyncio.get_running_loop().create_future()
        self._waiting.append(_Waiting(request, on_text, answer))
        self._came.set()
        return await answer

    async def run(self) -> None:
        """Answers until it is cancelled."""
        while True:
            await self._came.wait()
            self._came.clear()
            batch = [waiting for waiting in self._waiting if not waiting.answer.done()]
            self._waiting.clear()
            if batch:
                await self._answer(batch)

    async def _answer(self, batch: list[_Waiting]) -> None:
        self.batches.append(len(batch))
        del self.batches[:-1000]

        def tell(index: int, text: str) -> None:
            on_text = batch[index].on_text
            if on_text is not None:
                on_text(text)

        is_heard = any(waiting.on_text for waiting in batch)
        try:
            completions = await self.executor.complete(
                [waiting.request for waiting in batch],
                on_text=tell if is_heard else None,
            )
        except Exception as error:
            for waiting in batch:
                if not waiting.answer.done():
                    waiting.answer.set_exception(error)
            return
        for waiting, completion in zip(batch, completions, strict=True):
            if not waiting.answer.done():
                waiting.answer.set_result(completion)


def chat_app(
    model: LoadedModel, executor: LocalExecutor, *, name: str, api_key: str = ""
) -> Starlette:
    """The application that serves `executor`.

    Args:
      model: whose tokenizer names tokens.
      executor: what answers.
      name: of the model, for clients.
      api_key: that clients must send; none is asked for if it is empty.

    Raises:
      MissingExtraError: the library is not installed.
    """
    try:
        from starlette.applications import Starlette
        from starlette.exceptions import HTTPException
        from starlette.routing import Route
    except ImportError as error:
        raise MissingExtraError("starlette", "serve") from error
    service = _Service(model, Gatherer(executor), name, api_key)

    @asynccontextmanager
    async def lifespan(app: Starlette) -> AsyncIterator[None]:
        task = asyncio.create_task(service.gatherer.run())
        try:
            yield
        finally:
            task.cancel()
            await asyncio.gather(task, return_exceptions=True)

    app = Starlette(
        routes=[
            Route("/v1/chat/completions", service.chat, methods=["POST"]),
            Route("/v1/models", service.models),
            Route("/health", service.health),
        ],
        lifespan=lifespan,
        exception_handlers={
            ApiError: _refuse,
            HTTPException: _refuse_http,
            Exception: _apologise,
        },
    )
    app.state.gatherer = service.gatherer
    return app


class _Service:
    """The endpoints."""

    def __init__(self, model: LoadedModel, gatherer: Gatherer, name: str, key: str):
        self.gatherer = gatherer
        self._tokenizer, self._name, self._key = model.tokenizer, name, key
        self._max_tokens = min(_MAX_TOKENS, model.config.context_length // 2)
        fingerprint = hashlib.sha256(gatherer.executor.fingerprint.encode())
        self._fingerprint = f"fp_{fingerprint.hexdigest()[:12]}"

    async def health(self, request: Any) -> Any:
        """Whether the server is there."""
        from starlette.responses import JSONResponse

        return JSONResponse({"status": "ok"})

    async def models(self, request: Any) -> Any:
        """The one model."""
        from starlette.responses import JSONResponse

        self._check_key(request)
        entry = {"id": self._name, "object": "model", "created": 0, "owned_by": "jerp"}
        return JSONResponse({"object": "list", "data": [entry]})

    async def chat(self, request: Any) -> Any:
        """An answer, whole or streamed."""
        from starlette.responses import JSONResponse, StreamingResponse

        self._check_key(request)
        asked = read_chat_request(
            await _body(request),
            model=self._name,
            max_tokens=self._max_tokens,
            new_seed=secrets.randbelow(2**31),
        )
        head = {
            "id": f"chatcmpl-{secrets.token_hex(12)}",
            "created": int(time.time()),
            "model": self._name,
            "system_fingerprint": self._fingerprint,
        }
        if asked.stream:
            events = self._events(asked.request)
            first = await anext(events)  # what is refused has a status of its own
            chunks = self._chunks(head, asked, first, events)
            return StreamingResponse(chunks, media_type="text/event-stream")
        completion = _answered(await self.gatherer.ask(asked.request))
        log_probs = self._log_probs(completion) if asked.log_probs else None
        return JSONResponse(whole_answer(head, completion, log_probs))

    async def _events(self, request: Request) -> AsyncIterator[str | Completion]:
        """Text so far, again and again, and then the completion."""
        loop, events = asyncio.get_running_loop(), asyncio.Queue()

        def tell(text: str) -> None:
            loop.call_soon_threadsafe(events.put_nowait, text)

        task = asyncio.create_task(self.gatherer.ask(request, tell))
        task.add_done_callback(events.put_nowait)
        try:
            while (event := await events.get()) is not task:
                yield event
            yield _answered(await task)
        finally:
            task.cancel()

    async def _chunks(
        self,
        head: dict[str, Any],
        asked: ChatRequest,
        event: str | Completion,
        events: AsyncIterator[str | Completion],
    ) -> AsyncIterator[str]:
        sent = ""
        yield _line(chunk(head, {"role": "assistant", "content": ""}))
        while isinstance(event, str):
            if len(event) > len(sent):
                yield _line(chunk(head, {"content": event[len(sent) :]}))
                sent = event
            event = await anext(events)
        rest = {"content": event.text[len(sent) :]}
        log_probs = self._log_probs(event) if asked.log_probs else None
        yield _line(chunk(head, rest, log_probs=log_probs))
        yield _line(chunk(head, {}, reason=finish_reason(event)))
        if asked.include_usage:
            last = {**chunk(head, {}), "choices": [], "usage": usage(event)}
            yield _line(last)
        yield "data: [DONE]\n\n"

    def _log_probs(self, completion: Completion) -> dict[str, Any]:
        decode = partial(self._tokenizer.decode, skip_special_tokens=False)
        return log_prob_list(completion, [decode([t]) for t in completion.tokens])

    def _check_key(self, request: Any) -> None:
        given = request.headers.get("authorization", "").encode()
        if self._key and not hmac.compare_digest(given, f"Bearer {self._key}".encode()):
            raise ApiError(401, "the key is missing or wrong", code="invalid_api_key")


def _answered(completion: Completion) -> Completion:
    if completion.status == "error":
        raise ApiError(400, completion.error, code="context_length_exceeded")
    return completion


def _line(piece: dict[str, Any]) -> str:
    return f"data: {json.dumps(piece)}\n\n"


async def _body(request: Any) -> bytes:
    body = b""
    async for piece in request.stream():
        body += piece
        if len(body) > _MAX_BODY:
            raise ApiError(413, f"expected at most {_MAX_BODY} bytes")
    return body


async def _refuse(request: Any, error: Any) -> Any:
    from starlette.responses import JSONResponse

    return JSONResponse(error.body, error.status)


async def _refuse_http(request: Any, error: Any) -> Any:
    return await _refuse(request, ApiError(error.status_code, str(error.detail)))


async def _apologise(request: Any, error: Any) -> Any:
    return await _refuse(request, ApiError(500, "the server failed; its log says why"))
