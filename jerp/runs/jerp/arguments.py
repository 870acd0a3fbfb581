"""Arguments of a joint run that are not what they are taken for, before it begins."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from jerp.errors import ConfigError
from jerp.ops.checks import check_whole
from jerp.runs.jerp.settings import Learns, RuleSettings
from jerp.storage.rule_documents import PoolDocument
from jerp.training.joint import RuleConfig

__all__ = ["check_arguments", "check_learns", "numbers_of", "texts_of"]


def check_arguments(rules: Any, start_pool: Any, keep: Any) -> None:
    """Raises `ConfigError` for arguments of `train_jerp` that are of another kind."""
    if isinstance(rules, RuleConfig):
        raise ConfigError(
            "rules: expected RuleSettings, got a RuleConfig; say RuleSettings(config)"
        )
    if not isinstance(rules, RuleSettings):
        raise ConfigError(f"rules: expected RuleSettings, got {rules!r:.80}")
    if start_pool is not None and not isinstance(start_pool, PoolDocument):
        raise ConfigError(
            f"start_pool: expected a PoolDocument, got {start_pool!r:.80}; a file is "
            "read by jerp.storage.rule_files.read_pool"
        )
    check_whole("keep", keep, least=1, optional=True)


def check_learns(learns: Learns, retire: Any) -> None:
    """Raises `ConfigError` where nothing would change from iteration to iteration."""
    if not (learns.policy or learns.rules or retire is not None):
        raise ConfigError(
            "learn_policy, learn_rules: expected one of them at least, got False twice"
        )


def texts_of(name: str, given: Any) -> tuple[str, ...]:
    """A sequence of texts; raises `ConfigError` for a text, which is one of letters."""
    if isinstance(given, str) or not isinstance(given, Sequence | np.ndarray):
        raise ConfigError(f"{name}: expected a sequence of texts, got {given!r:.80}")
    return tuple(given)


def numbers_of(name: str, given: Any) -> np.ndarray:
    """An array of what has the form of one; raises `ConfigError` if it has none."""
    try:
        return np.asarray(given)
    except ValueError as error:
        raise ConfigError(
            f"{name}: expected an integer a task, got rows of several lengths"
        ) from error
