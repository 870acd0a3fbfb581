"""What a joint run is of, beside its policy: the rules, and what becomes of them."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from jerp.bridge.reflection import Reflector
from jerp.envs.rule_language import RuleLanguage, read_sentence, sentence
from jerp.errors import ConfigError, InputError
from jerp.ops.checks import check_whole
from jerp.storage.rule_documents import PoolDocument
from jerp.storage.rule_fields import check_key
from jerp.training.joint import RuleConfig

__all__ = [
    "Learns",
    "RuleSettings",
    "Tasks",
    "Teller",
    "check_readable",
    "check_reader",
    "check_reflector",
]

Teller = Callable[..., Any]
"""`(data, env_params) -> ...`, of episodes on the host and the tasks `[N, ...]`."""


@dataclass(frozen=True)
class RuleSettings:
    """Numbers of the rules' part.

    Attributes:
      config: of the pure steps.
      references: successes of earlier groups that are kept a task key, the newest.
      references_a_group: of one group's successes so many become references, the first;
        a larger number lets a group push out what other tasks were solved with.
      scores_every: iterations between two entries of all scores in the ledger; there is
        one as well when rules stop to be learned.
      retired_may_return: the text of a rule that was retired may be written again, for
        the same task key.
    """

    config: RuleConfig
    references: int = 8
    references_a_group: int = 2
    scores_every: int = 10
    retired_may_return: bool = False

    def __post_init__(self):
        if not isinstance(self.config, RuleConfig):
            raise ConfigError(f"config: expected a RuleConfig, got {self.config!r:.80}")
        least = {"references": 0, "references_a_group": 0, "scores_every": 1}
        for name, low in least.items():
            check_whole(name, getattr(self, name), least=low)


@dataclass(frozen=True)
class Learns:
    """Which variant of the method it is.

    Attributes:
      policy: is trained; False leaves its parameters as they are.
      rules: are revised; False leaves the pool as it is.
      rules_until: from this iteration on the pool stays as it is; None for never.
      references: reflection sees earlier successes.
    """

    policy: bool = True
    rules: bool = True
    rules_until: int | None = None
    references: bool = True

    def __post_init__(self):
        check_whole("rules_until", self.rules_until, least=0, optional=True)

    def rules_at(self, iteration: int) -> bool:
        """Whether an iteration revises the pool.

        Example:
          >>> [Learns(rules_until=2).rules_at(i) for i in (1, 2)]
          [True, False]
        """
        return self.rules and (self.rules_until is None or iteration < self.rules_until)


@dataclass(frozen=True, eq=False)
class Tasks:
    """The training tasks, whose pool each one's rules are in, and how they are told.

    Attributes:
      env_params: leaves `[N, ...]`.
      key: `[N]` int32, indices of `names`.
      names: of the task keys; each has a pool.
      digests: of each task, see `jerp.storage.rule_ledger.task_digests`.
      words: what each task asks for; () says the name of its key.
      language: numbers the situations and moves of a `jerp.envs.rule_language.Situated`
        world; None where only transcripts are known.
      tell: gives the transcripts of episodes, a text each; None for none.
      situate: gives situations and moves, `[B, T]` each, where observations do not say
        them.
    """

    env_params: Any
    key: np.ndarray
    names: tuple[str, ...]
    digests: tuple[str, ...]
    words: tuple[str, ...] = ()
    language: RuleLanguage | None = None
    tell: Teller | None = None
    situate: Teller | None = None

    def __post_init__(self):
        number = len(self.digests)
        if self.key.shape != (number,) or self.key.dtype.kind not in "iu":
            raise ConfigError(
                f"task_key: expected an integer for each of {number} tasks, got "
                f"{self.key.dtype}{list(self.key.shape)}"
            )
        known = (self.key >= 0) & (self.key < len(self.names))
        if not known.all():
            raise ConfigError(
                f"task_key: expected indices of {len(self.names)} task_keys, got "
                f"{self.key.min()} to {self.key.max()}"
            )
        if len(set(self.names)) < len(self.names) or not all(map(_is_key, self.names)):
            raise ConfigError(
                "task_keys: expected names of one plain line, each once, got "
                f"{list(self.names)}"
            )
        if self.words and len(self.words) != number:
            raise ConfigError(
                f"task_words: expected one for each of {number} tasks, got "
                f"{len(self.words)}"
            )
        for words in self.words:
            if not isinstance(words, str):
                raise ConfigError(f"task_words: expected texts, got {words!r:.80}")

    def words_of(self, task: int) -> str:
        """What a task asks for."""
        return self.words[task] if self.words else self.names[self.key[task]]


def _is_key(name: str) -> bool:
    """Whether a name is a task key in its one form."""
    try:
        return check_key(name) == name
    except InputError:
        return False


def check_reflector(
    reflector: Reflector | None,
    learns: Learns,
    settings: RuleSettings,
    tell: Teller | None,
) -> None:
    """Raises `ConfigError` where rules are to be learned and nobody would write them.

    A reflector with `needs_references` writes nothing without earlier successes, one
    with `needs_text` nothing without transcripts.
    """
    if not learns.rules:
        return
    if reflector is None:
        raise ConfigError(
            "reflector: expected one to learn rules with, got None; give a "
            "ContrastReflector or an LlmReflector, or learn_rules=False"
        )
    _check_is_reflector(reflector)
    if tell is None and getattr(reflector, "needs_text", False):
        raise ConfigError(
            f"tell: expected transcripts for the reflector {reflector.name!r}, which "
            "reads nothing else, got None; give what tells episodes in words, or a "
            "ContrastReflector, which compares numbers"
        )
    kept = {
        "use_references": learns.references,
        "rules.references": settings.references,
        "rules.references_a_group": settings.references_a_group,
    }
    for name, value in kept.items():
        if not value and getattr(reflector, "needs_references", False):
            raise ConfigError(
                f"{name}: expected references for the reflector {reflector.name!r}, "
                f"which writes rules only from several tasks, got {value}; keep them, "
                "or give it min_tasks=1"
            )


def _check_is_reflector(given: Any) -> None:
    """See `jerp.bridge.reflection.Reflector`."""
    if isinstance(given, type):
        raise ConfigError(
            f"reflector: expected an object, got the class {given.__name__}; make one "
            "of it"
        )
    if not callable(getattr(given, "reflect", None)):
        raise ConfigError(
            f"reflector: expected an object with a method `reflect`, such as a "
            f"ContrastReflector, got {given!r:.80}"
        )
    name = getattr(given, "name", None)
    if not isinstance(name, str) or not name.strip() or not name.isprintable():
        raise ConfigError(
            "reflector.name: expected a text of one line that says in ledgers who "
            f"wrote a rule, got {name!r:.80}"
        )


def check_readable(document: PoolDocument, language: RuleLanguage | None) -> None:
    """Raises `InputError` for a rule in other words than the policy's.

    Args:
      document: any.
      language: of a policy that reads rules in fields; None for any words.
    """
    if language is None:
        return
    for key, rules in document.pools.items():
        for rule in rules:
            if read_sentence(language, rule.text) is None:
                raise InputError(
                    f"start_pool: task key {key!r}: expected rules in the words that "
                    f"the policy reads, such as {sentence(language, 1, 1)!r}, got "
                    f"{rule.text!r}; take it out, or word it so"
                )


def check_reader(
    policy: Any, rules: RuleConfig, language: RuleLanguage | None, play: Any
) -> None:
    """Raises `ConfigError` where a policy cannot read the rules that it is given.

    A policy that reads rules in fields has `rule_sizes`; any other has them in a text,
    which is made on the host.
    """
    sizes, number = getattr(policy, "rule_sizes", ()), rules.num_rules
    if not sizes:
        if number and play is None:
            raise ConfigError(
                f"rules.config.num_rules: expected 0 for a policy that reads no rules, "
                f"got {number}; give it rule_sizes, or `play` with a view of the world "
                "as text"
            )
        return
    if number not in (0, policy.num_rules):
        raise ConfigError(
            f"rules.config.num_rules: expected the policy's {policy.num_rules}, or 0, "
            f"got {number}"
        )
    if number and language is None:
        raise ConfigError(
            "language: expected the one that the policy's rules are told in, got None"
        )
    if number and language is not None:
        wanted = (len(language.situations), len(language.moves))
        if sizes != wanted:
            raise ConfigError(
                f"policy.rule_sizes: expected the language's situations and moves, "
                f"{wanted}, got {sizes}"
            )
