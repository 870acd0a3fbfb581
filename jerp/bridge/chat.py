"""Between messages and tokens: chat templates, and text out of sampled tokens."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, NoReturn

import jinja2
import jinja2.sandbox

from jerp.bridge.executor import Message
from jerp.errors import ExecutorError

__all__ = ["ChatTemplate", "before_stop", "settled_text", "visible_text"]

_REPLACEMENT = "\N{REPLACEMENT CHARACTER}"


class ChatTemplate:
    """Renders messages to the prompt text that a model was tuned on.

    Args:
      source: Jinja, as in tokenizer_config.json or GGUF metadata; run in a sandbox.
      variables: such as `bos_token`, for templates that use them.
    """

    def __init__(self, source: str, variables: Mapping[str, str] | None = None):
        environment = jinja2.sandbox.ImmutableSandboxedEnvironment(
            trim_blocks=True, lstrip_blocks=True
        )
        environment.globals["raise_exception"] = _refuse
        try:
            self._template = environment.from_string(source)
        except jinja2.TemplateError as error:
            raise ExecutorError(f"the chat template is broken: {error}") from error
        self._variables = dict(variables or {})

    def render(self, messages: Sequence[Message]) -> str:
        """The prompt; an assistant message at the end is left open to be continued.

        Raises:
          ValueError: the template refuses these messages.
        """
        closed, opened = list(messages), ""
        if closed and closed[-1].role == "assistant":
            opened = closed.pop().content
        if not closed:
            raise ValueError("expected a system or user message, got none")
        if any(m.role == "tool" or m.tool_calls for m in messages):
            raise ValueError("tools are not rendered; ask an endpoint that has them")
        try:
            text = self._template.render(
                messages=[{"role": m.role, "content": m.content} for m in closed],
                add_generation_prompt=True,
                **self._variables,
            )
        except jinja2.TemplateError as error:
            raise ValueError(f"the chat template refuses them: {error}") from error
        return text + opened


def _refuse(message: str) -> NoReturn:
    raise jinja2.TemplateError(message)


def visible_text(tokenizer: Any, tokens: Sequence[int]) -> str:
    """Text of `tokens` without control tokens or a character cut in the middle.

    A byte-level tokenizer may stop inside a UTF-8 sequence, which decodes to one
    replacement character at the end; it goes, unless the model wrote it on purpose.
    """
    text = tokenizer.decode(list(tokens), skip_special_tokens=True)
    if text.endswith(_REPLACEMENT):
        whole = tokenizer.encode(_REPLACEMENT, add_special_tokens=False).ids
        if list(tokens[-len(whole) :]) != whole:
            return text[:-1]
    return text


def before_stop(text: str, stops: Sequence[str]) -> str | None:
    """`text` before the first stop string in it; None if there is none."""
    found = [text.index(stop) for stop in stops if stop and stop in text]
    return text[: min(found)] if found else None


def settled_text(text: str, stops: Sequence[str]) -> str:
    """The part of an unfinished `text` that stays, whatever tokens follow.

    A character may still be completed, and the end may become a stop string.
    """
    text = text.rstrip(_REPLACEMENT)
    before = before_stop(text, stops)
    if before is not None:
        return before
    held = (n for stop in stops for n in range(1, len(stop)) if text.endswith(stop[:n]))
    return text[: len(text) - max(held, default=0)]
