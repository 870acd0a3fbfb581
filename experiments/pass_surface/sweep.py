"""Settings of the study under stable ids; the tuple only grows."""

from __future__ import annotations

from experiments.pass_surface.config import PassSurfaceConfig

__all__ = ["SETTINGS"]

SETTINGS = (
    PassSurfaceConfig(),
    PassSurfaceConfig(seed=1),
    PassSurfaceConfig(full=True),
    PassSurfaceConfig(arms=("sft", "grpo", "ppo")),
    PassSurfaceConfig(executor="smollm2"),
)
