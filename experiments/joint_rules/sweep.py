"""Settings of the experiment under stable ids; the tuple only grows."""

from __future__ import annotations

from experiments.joint_rules.config import JerpConfig

__all__ = ["SETTINGS"]

SETTINGS = (
    JerpConfig(),
    JerpConfig(seed=1),
    JerpConfig(full=True),
    JerpConfig(by="instance"),
    JerpConfig(policy="smollm2-135m"),
)
