"""What a frozen LLM executor is: requests in, completions out, errors as data.

A message list that ends with an assistant message is continued from that text
(prefilled); otherwise the executor answers the last user message. The sample index
tells apart repeated samples of one prompt; the tokens of a completion depend on the
request (messages, tools, sampling, sample index) and the model alone, never on its
batch.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal, Protocol, runtime_checkable

from jerp.bridge.tools import Tool, ToolCall
from jerp.errors import ConfigError, ExecutorError, JerpError

__all__ = [
    "FAILED",
    "Completion",
    "EagerExecutor",
    "Executor",
    "Message",
    "OnAnswer",
    "Request",
    "Sampling",
    "Status",
    "complete_checked",
]

Status = Literal["ok", "empty", "refused", "malformed", "truncated", "timeout", "error"]
"""`timeout` and `error` are nobody's answer: the episode becomes INFRASTRUCTURE."""


@dataclass(frozen=True)
class Message:
    """One chat message.

    Attributes:
      role: who says it; `tool` is what a called tool gave back.
      content: the text.
      tool_calls: of an assistant message.
      tool_call_id: which call a message of a tool answers.
    """

    role: Literal["system", "user", "assistant", "tool"]
    content: str
    tool_calls: tuple[ToolCall, ...] = ()
    tool_call_id: str = ""


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
    """One request to an executor.

    Attributes:
      messages: the conversation so far.
      sampling: how tokens are drawn.
      sample_index: tells repeated samples of one prompt apart.
      tools: what the model may call.
      seed: of the draws, in [0, 2**31); None derives it from all of the above.
    """

    messages: tuple[Message, ...]
    sampling: Sampling = field(default_factory=Sampling)
    sample_index: int = 0
    tools: tuple[Tool, ...] = ()
    seed: int | None = None

    def __post_init__(self):
        if self.seed is not None and not 0 <= self.seed < 2**31:
            raise ConfigError(f"seed: expected in [0, 2**31), got {self.seed}")


@dataclass(frozen=True)
class Completion:
    """What came back. Empty `tokens` where the executor gives text alone.

    `dollars` are those of all attempts, where a price is known.
    """

    text: str
    status: Status = "ok"
    tokens: tuple[int, ...] = ()
    log_probs: tuple[float, ...] = ()
    tokens_in: int = 0
    tokens_out: int = 0
    seconds: float = 0.0
    error: str = ""
    tool_calls: tuple[ToolCall, ...] = ()
    dollars: float = 0.0


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


OnAnswer = Callable[[int, Completion], None]
"""Takes the position of a request and its completion, as soon as it is there."""


@runtime_checkable
class EagerExecutor(Protocol):
    """An executor that hands over each completion when it comes.

    What was answered is then kept, whatever ends the call before all is.
    """

    @property
    def fingerprint(self) -> str:
        """As an `Executor` has it."""
        ...

    async def complete_each(
        self, requests: Sequence[Request], on_answer: OnAnswer
    ) -> list[Completion]:
        """`Executor.complete`, calling `on_answer` once for each completion."""
        ...


FAILED = frozenset({"timeout", "error"})
"""Statuses that are nobody's answer: never stored, never judged."""


async def complete_checked(
    executor: Executor,
    requests: Sequence[Request],
    *,
    on_answer: OnAnswer | None = None,
) -> list[Completion]:
    """`executor.complete`, held to its contract.

    A batch lost to the network or to time becomes statuses, so that one bad minute ends
    some episodes and not a run. `on_answer` is called once for each completion: of an
    `EagerExecutor` as soon as it is there, of others in the end.

    Raises:
      ExecutorError: it raised anything else, or returned not one completion each.
    """
    hand_over = on_answer
    try:
        if hand_over is not None and isinstance(executor, EagerExecutor):
            completions = await executor.complete_each(requests, hand_over)
            hand_over = None
        else:
            completions = await executor.complete(requests)
    except JerpError:
        raise
    except TimeoutError as error:
        lost = Completion("", "timeout", error=str(error) or "timed out")
        completions = [lost] * len(requests)
    except ConnectionError as error:
        lost = Completion("", "error", error=str(error))
        completions = [lost] * len(requests)
    except Exception as error:
        raise ExecutorError(
            f"executor {executor.fingerprint!r} raised {type(error).__name__}: {error}"
            "; one failed request must be a status of its completion, not an exception"
        ) from error
    answers = _checked(executor.fingerprint, completions, len(requests))
    if hand_over is not None:
        for index, completion in enumerate(answers):
            hand_over(index, completion)
    return answers


def _checked(fingerprint: str, completions: Any, expected: int) -> list[Completion]:
    if not isinstance(completions, list | tuple):
        got = f"a {type(completions).__name__}"
    elif len(completions) != expected:
        got = f"{len(completions)} of them"
    elif not all(isinstance(c, Completion) for c in completions):
        got = f"{next(c for c in completions if not isinstance(c, Completion))!r}"
    else:
        return list(completions)
    raise ExecutorError(
        f"executor {fingerprint!r}: expected {expected} completions in the order of "
        f"the requests, got {got}"
    )
