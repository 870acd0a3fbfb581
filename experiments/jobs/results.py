"""What the results of all experiments of jobs say alike, and are drawn from."""

from __future__ import annotations

import json
from dataclasses import asdict
from typing import Any

import jax

import jerp
from jerp.typing import Key

__all__ = ["analysis_key", "origin", "sizes_document"]

ANALYSIS = 1_000_000
"""Stream of random keys; those below belong to seeds."""


def analysis_key(seed: int) -> Key:
    """Of all intervals of a run, whose jobs share none of its streams."""
    return jax.random.fold_in(jax.random.key(seed), ANALYSIS)


def origin(config: Any) -> dict[str, Any]:
    """What results say of where they came from.

    Args:
      config: with `command` and `smoke`.
    """
    return {
        "command": config.command,
        "version": jerp.__version__,
        "smoke": config.smoke,
    }


def sizes_document(sizes: Any) -> dict[str, Any]:
    """A dataclass of sizes as JSON has it, where a tuple is a list."""
    return json.loads(json.dumps(asdict(sizes)))
