"""What a frozen LLM executor is: requests in, completions out, errors as data.

A message list that ends with an assistant message is continued from that text
(prefilled); otherwise the executor answers the last user message. The sample index
tells apart repeated samples of one prompt; the tokens of a completion depend on the
request (messages, sampling, sample index) and the model alone, never on its batch.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from typing import Any, Literal, Protocol

from jerp.errors import ConfigError, ExecutorError, JerpError

__all__ = [
    "FAILED",
    "Completion",
    "Executor",
    "Message",
    "Request",
    "Sampling",
    "Status",
    "complete_checked",
    "completion_from_record",
    "completion_record",
    "request_from_record",
    "request_key",
    "request_record",
    "request_seed",
]

Status = Literal["ok", "empty", "refused", "malformed", "truncated", "timeout", "error"]
"""`timeout` and `error` are nobody's answer: the episode becomes INFRASTRUCTURE."""


@dataclass(frozen=True)
class Message:
    """One chat message."""

    role: Literal["system", "user", "assistant"]
    content: str


@dataclass(frozen=True)
class Sampling:
    """How tokens are drawn; part of the request's identity.

    Attributes:
      temperature: >= 0; 0 takes the most likely token.
      top_k: 0 keeps all.
      top_p: in (0, 1]; 1 keeps all.
      max_tokens: most tokens generated.
      stop: generation ends before the first of these strings.
    """

    temperature: float = 0.7
    top_k: int = 0
    top_p: float = 1.0
    max_tokens: int = 64
    stop: tuple[str, ...] = ()

    def __post_init__(self):
        if self.temperature < 0:
            raise ConfigError(f"temperature: expected >= 0, got {self.temperature}")
        if not 0 < self.top_p <= 1:
            raise ConfigError(f"top_p: expected in (0, 1], got {self.top_p}")
        if self.top_k < 0:
            raise ConfigError(f"top_k: expected >= 0, got {self.top_k}")
        if self.max_tokens < 1:
            raise ConfigError(f"max_tokens: expected >= 1, got {self.max_tokens}")


@dataclass(frozen=True)
class Request:
    """One request to an executor."""

    messages: tuple[Message, ...]
    sampling: Sampling = field(default_factory=Sampling)
    sample_index: int = 0


@dataclass(frozen=True)
class Completion:
    """What came back. Empty `tokens` where the executor gives text alone."""

    text: str
    status: Status = "ok"
    tokens: tuple[int, ...] = ()
    log_probs: tuple[float, ...] = ()
    tokens_in: int = 0
    tokens_out: int = 0
    seconds: float = 0.0
    error: str = ""


class Executor(Protocol):
    """A frozen language model.

    `fingerprint` names weights, quantisation and numerics mode; two executors of equal
    fingerprint give equal completions.
    """

    @property
    def fingerprint(self) -> str:
        """Identity of the model for the response store."""
        ...

    async def complete(self, requests: Sequence[Request]) -> list[Completion]:
        """Answers all requests, same length and order.

        One bad request becomes a status, never an exception; `ExecutorError` is for
        configuration or total failure. Cancellation propagates.
        """
        ...


FAILED = frozenset({"timeout", "error"})
"""Statuses that are nobody's answer: never stored, never judged."""


async def complete_checked(
    executor: Executor, requests: Sequence[Request]
) -> list[Completion]:
    """`executor.complete`, held to its contract.

    A batch lost to the network or to time becomes statuses, so that one bad minute ends
    some episodes and not a run.

    Raises:
      ExecutorError: it raised anything else, or returned not one completion each.
    """
    try:
        completions = await executor.complete(requests)
    except JerpError:
        raise
    except TimeoutError as error:
        return [Completion("", "timeout", error=str(error) or "timed out")] * len(
            requests
        )
    except ConnectionError as error:
        return [Completion("", "error", error=str(error))] * len(requests)
    except Exception as error:
        raise ExecutorError(
            f"executor {executor.fingerprint!r} raised {type(error).__name__}: {error}"
            "; one failed request must be a status of its completion, not an exception"
        ) from error
    if not isinstance(completions, list | tuple):
        got = f"a {type(completions).__name__}"
    elif len(completions) != len(requests):
        got = f"{len(completions)} of them"
    elif not all(isinstance(c, Completion) for c in completions):
        got = f"{next(c for c in completions if not isinstance(c, Completion))!r}"
    else:
        return list(completions)
    raise ExecutorError(
        f"executor {executor.fingerprint!r}: expected {len(requests)} completions in "
        f"the order of the requests, got {got}"
    )


_CANONICAL = json.JSONEncoder(
    sort_keys=True, ensure_ascii=False, separators=(",", ":"), allow_nan=False
)


def request_record(request: Request) -> dict[str, Any]:
    """A request as JSON-able data: what is hashed, and what the store keeps.

    Numbers are brought to one type first, so that `temperature=0` and `0.0` are one
    request. A new field of `Request` or `Sampling` must be added here.
    """
    sampling = request.sampling
    return {
        "messages": [[m.role, m.content] for m in request.messages],
        "sampling": {
            "temperature": float(sampling.temperature),
            "top_k": int(sampling.top_k),
            "top_p": float(sampling.top_p),
            "max_tokens": int(sampling.max_tokens),
            "stop": list(sampling.stop),
        },
        "sample_index": int(request.sample_index),
    }


def request_from_record(record: Mapping[str, Any]) -> Request:
    """Inverse of `request_record`."""
    sampling: dict[str, Any] = dict(record["sampling"])
    sampling["stop"] = tuple(sampling["stop"])
    return Request(
        messages=tuple(Message(role, content) for role, content in record["messages"]),
        sampling=Sampling(**sampling),
        sample_index=record["sample_index"],
    )


def completion_record(completion: Completion) -> dict[str, Any]:
    """A completion as JSON-able data; log-probabilities keep five decimals."""
    record = asdict(completion)
    record["tokens"] = [int(token) for token in completion.tokens]
    record["log_probs"] = [round(float(p), 5) for p in completion.log_probs]
    record["seconds"] = round(float(completion.seconds), 4)
    return record


def completion_from_record(record: Mapping[str, Any]) -> Completion:
    """Inverse of `completion_record`."""
    fields: dict[str, Any] = dict(record)
    fields["tokens"] = tuple(fields["tokens"])
    fields["log_probs"] = tuple(fields["log_probs"])
    return Completion(**fields)


def request_key(fingerprint: str, request: Request) -> str:
    """The response store's key: SHA-256 over model and whole request, in hex."""
    identity = {"fingerprint": fingerprint, "request": request_record(request)}
    return hashlib.sha256(_hashable(identity)).hexdigest()


def request_seed(request: Request) -> int:
    """Sampling seed of a request, in [0, 2**31): a hash of the request alone."""
    digest = hashlib.sha256(_hashable(request_record(request))).digest()
    return int.from_bytes(digest[:4], "big") >> 1


def _hashable(value: object) -> bytes:
    return _CANONICAL.encode(value).encode("utf-8", "surrogatepass")
