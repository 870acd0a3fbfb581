"""Worlds as text for a language model: states to tokens, actions to tokens.

An episode reads as a log: what is asked, then by turns what is seen and what was done.

    Put a clean mug in or on a shelf.
    In the kitchen: fridge, sink, counter.
    You stand in the hall. Your hand is empty.
    > go to the fridge
    You stand at the fridge in the kitchen. It is closed. Your hand is empty.
    >

Each piece is tokenised by itself and appended to what was read, so that the ids that
were acted on are the ids that are learned from; nothing is ever tokenised again. An
action ends with a line break: none is the beginning of another. The rules of an
episode, if it has any, stand before what is asked (see `jerp.bridge.rule_prompt`), as
many of the best as there is room for beside what is asked and seen.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import jax
import numpy as np

from jerp.bridge.rule_prompt import rules_block
from jerp.envs.base import WorldText
from jerp.errors import ConfigError, InputError
from jerp.trajectory import Trajectory

__all__ = ["TextView", "rows_of"]

PROMPT = "\n>"
"""Between what is seen and what is done."""


class TextView:
    """Shows the states of a world as tokens of a text tokenizer.

    Token 0 is padding, as in `jerp.models.token_policy`: no text may contain it.

    Args:
      text: the world in words.
      tokenizer: a `tokenizers.Tokenizer`; special tokens that it would add to a text,
        such as one at its beginning, are left out.
      num_actions: A, of the world.
      num_observation_tokens: L_o; a text that is longer loses its end, and is counted;
        no rule takes room from it.
      num_action_tokens: L_a; a longer action is refused.
      max_cut_share: the share that may be cut, of observations, of first ones, and of
        rules.

    Attributes:
      num_shown, num_cut: observations so far, and how many of them were cut.
      num_first, num_first_cut: the same of first ones, which say what is asked.
      num_rules, num_rules_cut: rules so far, and for how many there was no room.
    """

    def __init__(
        self,
        text: WorldText,
        tokenizer: Any,
        *,
        num_actions: int,
        num_observation_tokens: int,
        num_action_tokens: int,
        max_cut_share: float = 0.01,
    ):
        self.text = text
        self.num_actions = num_actions
        self.num_observation_tokens = num_observation_tokens
        self.num_action_tokens = num_action_tokens
        self.max_cut_share = max_cut_share
        self.num_shown = self.num_cut = 0
        self.num_first = self.num_first_cut = 0
        self.num_rules = self.num_rules_cut = 0
        self._tokenizer = tokenizer
        self._known: dict[str, list[int]] = {}
        self._prompt = self._ids(PROMPT)
        if num_observation_tokens <= len(self._prompt):
            raise ConfigError(
                f"num_observation_tokens: expected more than {len(self._prompt)}, the "
                f"prompt's, got {num_observation_tokens}"
            )

    def __repr__(self) -> str:
        return (
            f"TextView({type(self.text).__name__}, {self.num_actions}, "
            f"{self.num_observation_tokens}, {self.num_action_tokens})"
        )

    def actions(self, tasks: Any) -> np.ndarray:
        """`[B, A, L_a]` int32: what is written to take each action of each task.

        Args:
          tasks: parameters of the world, leaves `[B, ...]`.

        Raises:
          ConfigError: an action that is too long.
        """
        rows = [self._actions_of(task) for task in rows_of(tasks)]
        return np.stack(rows)

    def observations(
        self,
        states: Any,
        tasks: Any,
        *,
        first: bool,
        rules: Sequence[Sequence[str]] | None = None,
    ) -> np.ndarray:
        """`[B, L_o]` int32, padded with 0 at the end.

        Args:
          states: of the world, leaves `[B, ...]`.
          tasks: its parameters, leaves `[B, ...]`.
          first: nothing was read yet: what is asked comes before what is seen.
          rules: texts of `B` working sets, best first; they come before what is asked,
            and so at first alone. The last ones are left out where there is no room.
        """
        room = self.num_observation_tokens - len(self._prompt)
        found = np.zeros((len(rows_of(tasks)), self.num_observation_tokens), np.int32)
        pairs = zip(rows_of(states), rows_of(tasks), strict=True)
        for row, (state, task) in enumerate(pairs):
            ids = self._said(state, task, first=first)
            cut = len(ids) > room
            self.num_cut += cut
            if first:
                self.num_first_cut += cut
                ids = [*self._ruled(rules[row] if rules else (), ids), *ids]
            ids = [*ids[:room], *self._prompt]
            found[row, : len(ids)] = ids
        self.num_shown += len(found)
        self.num_first += first * len(found)
        return found

    def num_fitting(
        self, states: Any, tasks: Any, rules: Sequence[Sequence[str]]
    ) -> np.ndarray:
        """`[B]` int32, for how many rules first observations have room.

        Args:
          states: of the world, leaves `[B, ...]`.
          tasks: its parameters, leaves `[B, ...]`.
          rules: texts of `B` working sets, best first.
        """
        rows = zip(rows_of(states), rows_of(tasks), rules, strict=True)
        number = [
            len(self._fitting(texts, self._said(state, task, first=True)))
            for state, task, texts in rows
        ]
        return np.asarray(number, np.int32)

    def transcripts(self, data: Trajectory) -> list[str]:
        """What was read and written in each of `B` episodes, as text.

        Args:
          data: episodes that this view showed, on the host.
        """
        seen: Any = data.observation
        last: Any = data.final_observation
        action = np.asarray(data.action)[..., None, None]
        written = np.take_along_axis(seen["actions"], action, axis=2)[:, :, 0]
        pieces = np.concatenate([seen["tokens"], written], axis=2)
        real = np.asarray(data.mask)[..., None]
        body = np.where(real, pieces, 0).reshape(len(pieces), -1)
        rows = np.concatenate([body, last["tokens"]], axis=1)
        return [self._text(row[row != 0].tolist()) for row in rows]

    def check_distinct(self, actions: np.ndarray, legal: Any, tasks: Any) -> None:
        """Raises `ConfigError` if two actions that are open at once read alike.

        Args:
          actions: `[B, A, L_a]` of `actions`.
          legal: `[B, A]` bool.
          tasks: parameters of the world, leaves `[B, ...]`.
        """
        for row in range(len(actions)):
            numbers: dict[bytes, int] = {}
            for action in map(int, np.flatnonzero(legal[row])):
                other = numbers.setdefault(actions[row, action].tobytes(), action)
                if other != action:
                    said = self.text.action(action, rows_of(tasks)[row])
                    raise ConfigError(
                        f"text: expected every action in other words, got {said!r} "
                        f"for {other} and {action}"
                    )

    def check_cuts(self) -> None:
        """Raises `InputError` if too many texts lost their end, or rules their place.

        First observations are counted apart too: they are few, and say what is asked.
        """
        counts = (
            ("observations", self.num_cut, self.num_shown),
            ("first observations", self.num_first_cut, self.num_first),
        )
        for what, cut, number in counts:
            if cut > self.max_cut_share * number:
                raise InputError(
                    f"num_observation_tokens: {cut} of {number} {what} are longer than "
                    f"{self.num_observation_tokens} tokens, expected at most "
                    f"{self.max_cut_share:.0%}; raise it or max_cut_share"
                )
        if self.num_rules_cut > self.max_cut_share * self.num_rules:
            raise InputError(
                f"num_observation_tokens: {self.num_rules_cut} of {self.num_rules} "
                f"rules have no room in {self.num_observation_tokens} tokens beside "
                f"what is asked and seen, expected at most {self.max_cut_share:.0%}; "
                "raise it or max_cut_share, or show fewer or shorter rules"
            )

    def _said(self, state: Any, task: Any, *, first: bool) -> list[int]:
        """What is asked, at first, and what is seen."""
        seen = self.text.observation(state, task)
        return self._ids(f"{self.text.task(state, task)}\n{seen}" if first else seen)

    def _ruled(self, texts: Sequence[str], said: Sequence[int]) -> Sequence[int]:
        """What stands of the rules before what is said; the rest is counted."""
        kept = self._fitting(texts, said)
        self.num_rules += len(texts)
        self.num_rules_cut += len(texts) - len(kept)
        return self._block(kept)

    def _fitting(self, texts: Sequence[str], said: Sequence[int]) -> Sequence[str]:
        """The first rules, as many as have room beside what is said."""
        room = self.num_observation_tokens - len(self._prompt) - len(said)
        while texts and len(self._block(texts)) > room:
            texts = texts[:-1]
        return texts

    def _block(self, texts: Sequence[str]) -> Sequence[int]:
        """Apart, so that a task has the same ids whatever stands before it."""
        return self._ids(rules_block(texts)) if texts else ()

    def _actions_of(self, task: Any) -> np.ndarray:
        found = np.zeros((self.num_actions, self.num_action_tokens), np.int32)
        for action in range(self.num_actions):
            said = self.text.action(action, task)
            ids = self._ids(f" {said}\n")
            if len(ids) > self.num_action_tokens:
                raise ConfigError(
                    f"num_action_tokens: expected at least {len(ids)}, for action "
                    f"{action} ({said!r}), got {self.num_action_tokens}"
                )
            found[action, : len(ids)] = ids
        return found

    def _text(self, ids: list[int]) -> str:
        text: str = self._tokenizer.decode(ids, skip_special_tokens=False)
        return text.removesuffix(PROMPT)

    def _ids(self, text: str) -> list[int]:
        """Tokens; a text is tokenised once, as worlds say the same again and again."""
        if text not in self._known:
            ids: list[int] = self._tokenizer.encode(text, add_special_tokens=False).ids
            if 0 in ids:
                raise ConfigError(
                    f"tokenizer: token 0 stands for padding, and {text!r} contains it "
                    f"({self._tokenizer.id_to_token(0)!r}); put it in other words"
                )
            self._known[text] = ids
        return self._known[text]


def rows_of(tree: Any) -> Sequence[Any]:
    """A tree of `[B, ...]` as `B` trees."""
    leaves, structure = jax.tree.flatten(tree)
    leaves = [np.asarray(leaf) for leaf in leaves]
    return [structure.unflatten([x[i] for x in leaves]) for i in range(len(leaves[0]))]
