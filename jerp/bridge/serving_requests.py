"""What a client of `jerp serve` may ask, and the JSON that it gets.

What this server would have to ignore it refuses by name: a client never gets something
else than it asked for.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from jerp.bridge.executor import Completion, Message, Request, Sampling
from jerp.errors import ConfigError

__all__ = ["ApiError", "ChatRequest", "chunk", "read_chat_request", "whole_answer"]

_READ = frozenset(
    {
        *("model", "messages", "temperature", "top_p", "top_k", "stop", "seed"),
        *(
            "max_tokens",
            "max_completion_tokens",
            "stream",
            "stream_options",
            "logprobs",
        ),
    }
)
_WITHOUT_EFFECT = frozenset(
    {"user", "metadata", "store", "service_tier", "safety_identifier"}
)
_ONLY: Mapping[str, tuple[Any, ...]] = {
    "n": (None, 1),
    "top_logprobs": (None, 0),
    "tools": (None, []),
    "tool_choice": (None, "none", "auto"),
    "parallel_tool_calls": (None, True, False),
    "response_format": (None, {"type": "text"}),
    "frequency_penalty": (None, 0),
    "presence_penalty": (None, 0),
    "logit_bias": (None, {}),
    # An assistant message at the end is always continued.
    "continue_final_message": (None, True),
    "add_generation_prompt": (None, False),
}
"""Fields with values that ask for nothing that this server does not do."""

_ROLES = ("system", "user", "assistant")


class ApiError(Exception):
    """What a client did wrong, in the protocol's form; never leaves the server."""

    def __init__(
        self,
        status: int,
        message: str,
        *,
        param: str | None = None,
        code: str | None = None,
    ):
        super().__init__(message)
        self.status = status
        kind = "invalid_request_error" if status < 500 else "server_error"
        detail = {"message": message, "type": kind, "param": param, "code": code}
        self.body = {"error": detail}


@dataclass(frozen=True)
class ChatRequest:
    """A request, and the form that its answer shall have."""

    request: Request
    stream: bool = False
    include_usage: bool = False
    log_probs: bool = False


def read_chat_request(
    body: bytes, *, model: str, max_tokens: int, new_seed: int
) -> ChatRequest:
    """The request in a body.

    Args:
      body: JSON.
      model: the name that is served.
      max_tokens: where the client names none.
      new_seed: likewise.

    Raises:
      ApiError: it is none, or asks for what this server does not do.
    """
    try:
        asked = json.loads(body)
    except (ValueError, RecursionError):
        raise ApiError(400, "the body is not JSON") from None
    if not isinstance(asked, dict):
        raise ApiError(400, "expected a JSON object")
    _check_fields(asked)
    if asked.get("model") != model:
        message = f"the model {asked.get('model')!r} is not served here; {model!r} is"
        raise ApiError(404, message, param="model", code="model_not_found")
    max_tokens = _number(asked, "max_tokens", max_tokens, int)
    seed = _number(asked, "seed", new_seed, int)
    try:
        sampling = Sampling(
            temperature=_number(asked, "temperature", 1.0, float),
            top_k=_number(asked, "top_k", 0, int),
            top_p=_number(asked, "top_p", 1.0, float),
            max_tokens=_number(asked, "max_completion_tokens", max_tokens, int),
            stop=_stops(asked.get("stop")),
        )
    except ConfigError as error:
        raise ApiError(400, str(error), param=str(error).split(":")[0]) from None
    options = asked.get("stream_options") or {}
    return ChatRequest(
        Request(_messages(asked.get("messages")), sampling, seed=seed % 2**31),
        stream=bool(asked.get("stream")),
        include_usage=bool(isinstance(options, dict) and options.get("include_usage")),
        log_probs=bool(asked.get("logprobs")),
    )


def _check_fields(asked: Mapping[str, Any]) -> None:
    for name, value in asked.items():
        if name in _READ or name in _WITHOUT_EFFECT:
            continue
        if name not in _ONLY:
            raise ApiError(400, f"{name}: this server does not know it", param=name)
        if value not in _ONLY[name]:
            allowed = " or ".join(json.dumps(only) for only in _ONLY[name][1:])
            message = f"{name}: this server takes {allowed} alone"
            raise ApiError(400, message, param=name, code="unsupported_value")


def _number(asked: Mapping[str, Any], name: str, default: Any, kind: type) -> Any:
    value = asked.get(name)
    if value is None:
        return default
    is_number = isinstance(value, int | float) and not isinstance(value, bool)
    if not is_number or (kind is int and value != int(value)):
        raise ApiError(400, f"{name}: expected a number, got {value!r}", param=name)
    return kind(value)


def _stops(stop: Any) -> tuple[str, ...]:
    stops = [stop] if isinstance(stop, str) else stop or []
    if not isinstance(stops, list) or not all(isinstance(s, str) and s for s in stops):
        message = "stop: expected a text or a list of texts, none of them empty"
        raise ApiError(400, message, param="stop")
    return tuple(stops)


def _messages(messages: Any) -> tuple[Message, ...]:
    if not isinstance(messages, list) or not messages:
        raise ApiError(400, "messages: expected a list of some", param="messages")
    return tuple(_message(i, message) for i, message in enumerate(messages))


def _message(index: int, message: Any) -> Message:
    where = f"messages[{index}]"
    if not isinstance(message, dict) or message.get("role") not in _ROLES:
        expected = f"{where}: expected a role of {', '.join(_ROLES)}"
        raise ApiError(400, expected, param=where)
    content = message.get("content")
    if isinstance(content, list):
        parts = [
            part.get("text") if isinstance(part, dict) else None for part in content
        ]
        texts = [part for part in parts if isinstance(part, str)]
        content = "".join(texts) if len(texts) == len(parts) else None
    if not isinstance(content, str) or message.get("tool_calls"):
        raise ApiError(400, f"{where}.content: expected text alone", param=where)
    return Message(message["role"], content)


def finish_reason(completion: Completion) -> str:
    """Why an answer ended; one that shows nothing is complete."""
    return "length" if completion.status == "truncated" else "stop"


def usage(completion: Completion) -> dict[str, int]:
    """Tokens as the protocol counts them."""
    tokens_in, tokens_out = completion.tokens_in, completion.tokens_out
    return {
        "prompt_tokens": tokens_in,
        "completion_tokens": tokens_out,
        "total_tokens": tokens_in + tokens_out,
    }


def log_prob_list(completion: Completion, texts: Sequence[str]) -> dict[str, Any]:
    """Log-probabilities of the tokens, whose texts are given."""
    return {
        "content": [
            {"token": text, "logprob": log_prob, "bytes": None, "top_logprobs": []}
            for text, log_prob in zip(texts, completion.log_probs, strict=True)
        ],
        "refusal": None,
    }


def whole_answer(
    head: Mapping[str, Any], completion: Completion, log_probs: dict[str, Any] | None
) -> dict[str, Any]:
    """The body of an answer that is not streamed."""
    message = {"role": "assistant", "content": completion.text, "refusal": None}
    choice = {
        "index": 0,
        "message": message,
        "logprobs": log_probs,
        "finish_reason": finish_reason(completion),
    }
    return {
        **head,
        "object": "chat.completion",
        "choices": [choice],
        "usage": usage(completion),
    }


def chunk(
    head: Mapping[str, Any],
    delta: Mapping[str, Any],
    *,
    log_probs: dict[str, Any] | None = None,
    reason: str | None = None,
) -> dict[str, Any]:
    """A piece of an answer that is streamed."""
    choice = {
        "index": 0,
        "delta": delta,
        "logprobs": log_probs,
        "finish_reason": reason,
    }
    return {**head, "object": "chat.completion.chunk", "choices": [choice]}
