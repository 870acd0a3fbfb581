"""The chat completions protocol: a request as its body, and a reply as a completion.

A reply is believed only if it is JSON of the right shape. Anything else (a proxy's
error page, half a body) is a failure of the endpoint, never text of the model.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

from jerp.bridge.executor import Completion, Message, Request, Status
from jerp.bridge.request_records import request_seed
from jerp.bridge.retry import Failure
from jerp.bridge.tools import Tool, ToolCall, read_tool_call
from jerp.errors import ConfigError

__all__ = ["Reply", "WireOptions", "most_tokens_in", "read_reply", "request_body"]

_OURS = ("model", "messages", "tools", "temperature", "top_p", "stop", "seed", "n")
_TEMPLATE_TOKENS = 16
"""More than chat templates add to a message."""


@dataclass(frozen=True)
class WireOptions:
    """How requests are put; endpoints differ.

    Attributes:
      log_probs: asks for those of the tokens.
      send_seed: sends the request's seed; some endpoints refuse it.
      prefill: an assistant message at the end is continued: `continue` says so in the
        way of vLLM and SGLang, `plain` for endpoints that continue without being told.
      max_tokens_name: what the endpoint calls it.
      extra_body: further fields of every request, such as `chat_template_kwargs`.
    """

    log_probs: bool = False
    send_seed: bool = True
    prefill: Literal["continue", "plain"] = "continue"
    max_tokens_name: Literal["max_tokens", "max_completion_tokens"] = "max_tokens"
    extra_body: Mapping[str, Any] = field(default_factory=dict)

    def __post_init__(self):
        taken = [name for name in self.extra_body if name in (*_OURS, "stream")]
        if taken:
            raise ConfigError(
                f"extra_body: expected fields that a request does not have, got {taken}"
            )


@dataclass(frozen=True)
class Reply:
    """What one attempt gave.

    Attributes:
      completion: the answer, if there is no failure.
      failure: why there is none.
      tokens: in and out, as the endpoint counts them; None where it does not.
      model: that the endpoint says it answered with.
      system_fingerprint: of what it runs.
    """

    completion: Completion = field(default_factory=lambda: Completion(""))
    failure: Failure | None = None
    tokens: tuple[int, int] | None = None
    model: str = ""
    system_fingerprint: str = ""


def request_body(request: Request, model: str, options: WireOptions) -> dict[str, Any]:
    """The JSON of a request."""
    sampling = request.sampling
    body: dict[str, Any] = {
        "model": model,
        "messages": [_message(message) for message in request.messages],
        "temperature": sampling.temperature,
        options.max_tokens_name: sampling.max_tokens,
    }
    if sampling.top_p < 1:
        body["top_p"] = sampling.top_p
    if sampling.top_k:
        body["top_k"] = sampling.top_k
    if sampling.stop:
        body["stop"] = list(sampling.stop)
    if options.send_seed:
        body["seed"] = request_seed(request)
    if options.log_probs:
        body["logprobs"] = True
    if request.tools:
        body["tools"] = [_tool(tool) for tool in request.tools]
    last = request.messages[-1] if request.messages else None
    if last and last.role == "assistant" and options.prefill == "continue":
        body |= {"continue_final_message": True, "add_generation_prompt": False}
    return body | dict(options.extra_body)


def _message(message: Message) -> dict[str, Any]:
    record: dict[str, Any] = {"role": message.role, "content": message.content}
    if message.tool_calls:
        record["tool_calls"] = [_call(call) for call in message.tool_calls]
    if message.tool_call_id:
        record["tool_call_id"] = message.tool_call_id
    return record


def _call(call: ToolCall) -> dict[str, Any]:
    function = {"name": call.name, "arguments": call.arguments}
    return {"id": call.call_id, "type": "function", "function": function}


def _tool(tool: Tool) -> dict[str, Any]:
    function = {"name": tool.name, "parameters": json.loads(tool.parameters)}
    if tool.description:
        function["description"] = tool.description
    return {"type": "function", "function": function}


def most_tokens_in(request: Request) -> int:
    """A bound on a prompt's tokens: no byte makes more than one."""
    texts = [message.content for message in request.messages]
    texts += [f"{t.name}{t.description}{t.parameters}" for t in request.tools]
    calls = [call for message in request.messages for call in message.tool_calls]
    texts += [f"{call.name}{call.arguments}{call.call_id}" for call in calls]
    num_bytes = sum(len(text.encode("utf-8", "surrogatepass")) for text in texts)
    return num_bytes + _TEMPLATE_TOKENS * (len(texts) + 1)


def read_reply(content: bytes, content_type: str, request: Request) -> Reply:
    """The reply in the body of a response with status 200."""
    if "json" not in content_type.lower():
        shown = " ".join(content[:120].decode("utf-8", "replace").split())
        return _garbled(f"content type {content_type!r}, not JSON: {shown!r}")
    try:
        body = json.loads(content)
        if "error" in body and not body.get("choices"):
            return _garbled(f"an error with status 200: {str(body['error'])[:200]}")
        return _read(body, request)
    except (ValueError, RecursionError):
        return _garbled("the body is not whole JSON")
    except (TypeError, KeyError, AttributeError, IndexError) as error:
        return _garbled(f"no chat completion ({type(error).__name__}: {error})")


def _garbled(message: str) -> Reply:
    return Reply(failure=Failure("garbled", message, may_be_billed=True))


def _read(body: Mapping[str, Any], request: Request) -> Reply:
    tokens = _tokens(body.get("usage"))
    known = {
        "tokens": tokens,
        "model": str(body.get("model") or ""),
        "system_fingerprint": str(body.get("system_fingerprint") or ""),
    }
    choices = body["choices"]
    if not choices:
        nothing = Failure("empty", "the reply has no choices", may_be_billed=True)
        return Reply(failure=nothing, **known)
    choice = choices[0]
    message, reason = choice["message"], choice.get("finish_reason") or "stop"
    if reason == "error":
        return _garbled("the endpoint broke off its own answer")
    text, refusal = _text(message.get("content")), message.get("refusal")
    calls = tuple(
        read_tool_call(
            call["function"]["name"],
            _arguments(call["function"].get("arguments")),
            request.tools,
            call_id=str(call.get("id") or ""),
            is_cut_off=reason in ("length", "content_filter"),
        )
        for call in message.get("tool_calls") or ()
    )
    faults = [call.fault for call in calls if call.fault]
    if reason == "tool_calls" and not calls:
        faults.append("the reply announces a tool call and has none")
    status = _status(text, reason, refusal=bool(refusal), calls=calls, faults=faults)
    completion = Completion(
        text=text,
        status=status,
        log_probs=_log_probs(choice.get("logprobs")),
        tokens_in=tokens[0] if tokens else 0,
        tokens_out=tokens[1] if tokens else 0,
        error=str(refusal or "") or "; ".join(faults),
        tool_calls=calls,
    )
    return Reply(completion, **known)


def _status(
    text: str, reason: str, *, refusal: bool, calls: tuple[ToolCall, ...], faults: list
) -> Status:
    if refusal or reason == "content_filter":
        return "refused"
    if reason == "length":
        return "truncated"
    if faults:
        return "malformed"
    return "ok" if calls or text.strip() else "empty"


def _text(content: Any) -> str:
    """Of a text, of parts that have one, or of nothing."""
    if isinstance(content, list):
        return "".join(part["text"] for part in content if part.get("type") == "text")
    if content is not None and not isinstance(content, str):
        raise TypeError(f"content is a {type(content).__name__}")
    return content or ""


def _arguments(arguments: Any) -> str:
    # Some servers send the object itself, which the protocol has as text.
    return arguments if isinstance(arguments, str) else json.dumps(arguments)


def _tokens(usage: Any) -> tuple[int, int] | None:
    if not isinstance(usage, Mapping):
        return None
    counts = usage.get("prompt_tokens"), usage.get("completion_tokens")
    if not all(isinstance(c, int) and c >= 0 for c in counts):
        return None
    return counts  # type: ignore[return-value]


def _log_probs(log_probs: Any) -> tuple[float, ...]:
    content = (log_probs or {}).get("content") or ()
    return tuple(float(token["logprob"]) for token in content)
