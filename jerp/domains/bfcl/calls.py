"""Calls as BFCL writes them: Python, which its executor evaluates.

What a model wrote never reaches that text as it is: a tool is one that was offered,
names of arguments are identifiers, and values are literals of what JSON can say.
"""

from __future__ import annotations

import ast
import json
import keyword
from collections.abc import Mapping, Sequence

from jerp.domains.benchmark import Call
from jerp.errors import InputError

__all__ = ["call_from_text", "call_to_text"]


def call_to_text(call: Call) -> str:
    """A call as the source that BFCL evaluates.

    Args:
      call: its tool is one that exists.

    Raises:
      InputError: an argument's name is no identifier, or its value not of JSON.

    Example:
      >>> call_to_text(Call("mv", {"source": "a.txt", "destination": "b"}))
      "mv(source='a.txt',destination='b')"
    """
    for name in call.arguments:
        if not name.isidentifier() or keyword.iskeyword(name):
            raise InputError(f"arguments: expected names of parameters, got {name!r}")
    try:
        # Through JSON, because `repr` of what else there is may say anything.
        values = json.loads(json.dumps(dict(call.arguments)))
    except (TypeError, ValueError, RecursionError) as error:
        raise InputError(f"arguments: expected values of JSON, got {error}") from error
    named = ",".join(f"{name}={value!r}" for name, value in values.items())
    return f"{call.tool}({named})"


def call_from_text(text: str, parameters: Mapping[str, Sequence[str]]) -> Call:
    """A reference call; what it gives by place is given by name.

    Args:
      text: source of one call with literals.
      parameters: names in order, by tool.

    Raises:
      InputError: the text is something else.

    Example:
      >>> call_from_text("sort('a.txt')", {"sort": ["file_name"]})
      Call(tool='sort', arguments={'file_name': 'a.txt'})
    """
    try:
        node = ast.parse(text.strip(), mode="eval").body
        if not (isinstance(node, ast.Call) and isinstance(node.func, ast.Name)):
            raise ValueError("no call of a name")
        names = [*parameters[node.func.id][: len(node.args)]]
        names += [word.arg for word in node.keywords if word.arg]
        nodes = [*node.args, *(word.value for word in node.keywords)]
        values = [ast.literal_eval(value) for value in nodes]
        return Call(node.func.id, dict(zip(names, values, strict=True)))
    except (SyntaxError, ValueError, KeyError) as error:
        raise InputError(f"reference call {text!r:.200}: {error}") from error
