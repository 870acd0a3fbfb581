"""A reflector that is made to err, to see what becomes of wrong rules."""

from __future__ import annotations

import hashlib
from collections.abc import Collection, Sequence
from dataclasses import replace

import numpy as np

from jerp.bridge.reflection import Occasion, Operation, Reflection, Reflector, judged
from jerp.envs.rule_language import RuleLanguage, read_sentence, sentence
from jerp.errors import ConfigError
from jerp.rules.edits import EditOp

__all__ = ["Misled"]


class Misled:
    """Of what a reflector adds, makes a share plausible but wrong.

    Such a rule has the situation of the right one and another move, one that the trials
    made there, or anywhere if they made no other there. What is replaced follows from
    the seed and what is reflected on alone, so that a run which resumes errs as one
    that never stopped. A text that the language cannot read stays as it is, and so does
    one of which every wrong rule is there already.

    Args:
      reflector: what is misled.
      language: of its rules.
      share: of added rules to replace, in [0, 1].
      seed: another one errs elsewhere.
    """

    def __init__(
        self,
        reflector: Reflector,
        language: RuleLanguage,
        *,
        share: float = 0.1,
        seed: int = 0,
    ):
        if not 0 <= share <= 1:
            raise ConfigError(f"share: expected in [0, 1], got {share}")
        self.reflector, self.language = reflector, language
        self.share, self.seed = share, seed
        # Not a setting, which would tell a run from one that goes on.
        self._num_misled = 0
        self.name = f"{reflector.name}, {share:.0%} misled"

    @property
    def num_misled(self) -> int:
        """Rules that this object replaced so far."""
        return self._num_misled

    @property
    def needs_references(self) -> bool:
        """As of the reflector that is misled."""
        return getattr(self.reflector, "needs_references", False)

    @property
    def needs_text(self) -> bool:
        """As of the reflector that is misled."""
        return getattr(self.reflector, "needs_text", False)

    def reflect(self, occasions: Sequence[Occasion]) -> list[Reflection]:
        """See `jerp.bridge.reflection.Reflector`."""
        found = self.reflector.reflect(occasions)
        return [self._misled(*pair) for pair in zip(occasions, found, strict=True)]

    def _misled(self, occasion: Occasion, reflection: Reflection) -> Reflection:
        there = {rule.text for rule in occasion.rules}
        there |= {operation.text for operation in reflection.operations}
        operations = []
        for operation in reflection.operations:
            text = self._instead(occasion, operation, there)
            self._num_misled += text != operation.text
            there.add(text)
            operations.append(replace(operation, text=text))
        return replace(reflection, operations=tuple(operations))

    def _instead(
        self, occasion: Occasion, operation: Operation, there: Collection[str]
    ) -> str:
        """The text of an operation, or a wrong one."""
        pair = read_sentence(self.language, operation.text)
        if operation.op != EditOp.ADD or pair is None:
            return operation.text
        chance, choice = self._drawn(occasion, operation.text)
        moves = _other_moves(occasion, *pair)
        wrong = [sentence(self.language, pair[0], move) for move in moves]
        wrong = [text for text in wrong if text not in there]
        if chance >= self.share or not wrong:
            return operation.text
        return wrong[choice % len(wrong)]

    def _drawn(self, occasion: Occasion, text: str) -> tuple[float, int]:
        """A number in [0, 1), and a whole one."""
        names = [t.episode for t in occasion.trials]
        said = repr((self.seed, occasion.task_key, text, names))
        digest = hashlib.sha256(said.encode("utf-8", "surrogatepass")).digest()
        first, second = digest[:4], digest[4:8]
        return int.from_bytes(first, "big") / 2**32, int.from_bytes(second, "big")


def _other_moves(occasion: Occasion, situation: int, move: int) -> list[int]:
    """What trials did there and a rule does not say, or else what they did at all."""
    trials = judged(occasion.trials)
    at = np.concatenate([np.zeros(0, np.int32), *(t.situation for t in trials)])
    made = np.concatenate([np.zeros(0, np.int32), *(t.move for t in trials)])
    there, anywhere = ({*x.tolist()} - {0, move} for x in (made[at == situation], made))
    return sorted(there or anywhere)
