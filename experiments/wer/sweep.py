"""Settings of the experiment under stable ids; the tuple only grows."""

from __future__ import annotations

from experiments.wer.config import WerConfig

__all__ = ["SETTINGS"]

SETTINGS = (
    WerConfig(),
    WerConfig(seed=1),
    WerConfig(full=True),
    WerConfig(ablations=("failure",)),
    WerConfig(ablations=("success",)),
    WerConfig(ablations=("none",)),
    WerConfig(ablations=("wrong",)),
    WerConfig(policy="smollm2-135m"),
)
