"""Rules in a prompt: a heading, a line for each rule, and nothing that a rule added.

The text of a rule is data. It is checked again here, and quoted: no line break, no
character that tokens of a chat template are made of, and no line that begins with
anything of its own is left in it, so the block has a line for each rule, and reads back
to exactly those.
"""

from __future__ import annotations

from collections.abc import Sequence

from jerp.errors import InputError
from jerp.rules.text import check_rule_text, quoted, unquoted

__all__ = ["read_rules_block", "rules_block"]

HEADING = "Rules:"
BULLET = "- "


def rules_block(texts: Sequence[str]) -> str:
    r"""What a prompt says of the rules of an episode; nothing if there are none.

    Args:
      texts: of the rules, best first.

    Returns:
      Lines, each with its line break; "" without rules.

    Raises:
      InputError: a text that no rule may be; see `jerp.rules.text.check_rule_text`.

    Example:
      >>> rules_block(["Heat it.", "When it is <b>, cool it."])
      'Rules:\n- Heat it.\n- When it is &lt;b&gt;, cool it.\n'
    """
    if isinstance(texts, str):
        raise InputError(f"texts: expected a list of texts, got one: {texts!r}")
    lines = [f"{BULLET}{quoted(check_rule_text(text))}\n" for text in texts]
    return "".join([f"{HEADING}\n", *lines]) if lines else ""


def read_rules_block(block: str) -> tuple[str, ...]:
    r"""The texts that `rules_block` was given.

    Args:
      block: as `rules_block` returns it.

    Raises:
      InputError: it is not of that form.

    Example:
      >>> read_rules_block("Rules:\n- When it is &lt;b&gt;, cool it.\n")
      ('When it is <b>, cool it.',)
    """
    lines = block.split("\n")[1:-1]
    bulleted = all(line.startswith(BULLET) for line in lines)
    texts = tuple(unquoted(line.removeprefix(BULLET)) for line in lines)
    if not bulleted or rules_block(texts) != block:
        raise InputError(
            f"block: expected {HEADING!r} and a line for each rule that begins with "
            f"{BULLET!r}, as rules_block writes them, got {block[:80]!r}"
        )
    return texts
