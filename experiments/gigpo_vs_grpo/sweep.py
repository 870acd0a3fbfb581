"""Settings of the comparison under stable ids; the tuple only grows."""

from __future__ import annotations

from experiments.gigpo_vs_grpo.config import GigpoConfig

__all__ = ["SETTINGS"]

SETTINGS = (
    GigpoConfig(),
    GigpoConfig(seed=1),
    GigpoConfig(full=True),
    GigpoConfig(policy="smollm2-135m"),
)
