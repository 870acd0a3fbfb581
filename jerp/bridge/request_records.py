"""Requests and completions as JSON: what is hashed, and what the response store keeps.

Recorded stores depend on every byte of it: `tests/bridge/test_executor.py` pins a key.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from typing import Any

from jerp.bridge.executor import Completion, Message, Request, Sampling
from jerp.bridge.tools import Tool, ToolCall

__all__ = [
    "completion_from_record",
    "completion_record",
    "request_from_record",
    "request_key",
    "request_record",
    "request_seed",
]

_CANONICAL = json.JSONEncoder(
    sort_keys=True, ensure_ascii=False, separators=(",", ":"), allow_nan=False
)


def request_record(request: Request) -> dict[str, Any]:
    """A request as JSON-able data: what is hashed, and what the store keeps.

    Numbers are brought to one type first, so that `temperature=0` and `0.0` are one
    request. What only some requests have (tools, a seed) is in their records alone:
    the keys of all others are what they were. A new field of `Request` or `Sampling`
    must be added here.
    """
    sampling = request.sampling
    record = {
        "messages": [_message_record(m) for m in request.messages],
        "sampling": {
            "temperature": float(sampling.temperature),
            "top_k": int(sampling.top_k),
            "top_p": float(sampling.top_p),
            "max_tokens": int(sampling.max_tokens),
            "stop": list(sampling.stop),
        },
        "sample_index": int(request.sample_index),
    }
    if request.tools:
        record["tools"] = [[t.name, t.description, t.parameters] for t in request.tools]
    if request.seed is not None:
        record["seed"] = int(request.seed)
    return record


def _message_record(message: Message) -> list[Any]:
    if not message.tool_calls and not message.tool_call_id:
        return [message.role, message.content]
    calls = [_call_record(call) for call in message.tool_calls]
    return [message.role, message.content, calls, message.tool_call_id]


def _call_record(call: ToolCall) -> list[str]:
    return [call.name, call.arguments, call.call_id, call.fault]


def _message(
    role: Any, content: str, calls: Sequence[Sequence[str]] = (), call_id: str = ""
) -> Message:
    return Message(role, content, tuple(ToolCall(*call) for call in calls), call_id)


def request_from_record(record: Mapping[str, Any]) -> Request:
    """Inverse of `request_record`."""
    sampling: dict[str, Any] = dict(record["sampling"])
    sampling["stop"] = tuple(sampling["stop"])
    return Request(
        messages=tuple(_message(*message) for message in record["messages"]),
        sampling=Sampling(**sampling),
        sample_index=record["sample_index"],
        tools=tuple(Tool(*tool) for tool in record.get("tools", ())),
        seed=record.get("seed"),
    )


def completion_record(completion: Completion) -> dict[str, Any]:
    """A completion as JSON-able data; log-probabilities keep five decimals.

    Tool calls and dollars are there where there are any.
    """
    record = asdict(completion)
    del record["tool_calls"], record["dollars"]
    if completion.tool_calls:
        record["tool_calls"] = [_call_record(call) for call in completion.tool_calls]
    if completion.dollars:
        record["dollars"] = float(completion.dollars)
    record["tokens"] = [int(token) for token in completion.tokens]
    record["log_probs"] = [round(float(p), 5) for p in completion.log_probs]
    record["seconds"] = round(float(completion.seconds), 4)
    return record


def completion_from_record(record: Mapping[str, Any]) -> Completion:
    """Inverse of `completion_record`."""
    fields: dict[str, Any] = dict(record)
    fields["tokens"] = tuple(fields["tokens"])
    fields["log_probs"] = tuple(fields["log_probs"])
    calls = fields.get("tool_calls", ())
    fields["tool_calls"] = tuple(ToolCall(*call) for call in calls)
    return Completion(**fields)


def request_key(fingerprint: str, request: Request) -> str:
    """The response store's key: SHA-256 over model and whole request, in hex."""
    identity = {"fingerprint": fingerprint, "request": request_record(request)}
    return hashlib.sha256(_hashable(identity)).hexdigest()


def request_seed(request: Request) -> int:
    """Sampling seed of a request, in [0, 2**31): a hash of the request, or its own."""
    if request.seed is not None:
        return request.seed
    digest = hashlib.sha256(_hashable(request_record(request))).digest()
    return int.from_bytes(digest[:4], "big") >> 1


def _hashable(value: object) -> bytes:
    return _CANONICAL.encode(value).encode("utf-8", "surrogatepass")
