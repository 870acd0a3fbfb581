"""Settings of the experiment by stable id; append only, never reorder.

`harness_control/0` is the default command. The ids that follow vary the training seed
root, so that the spread over whole runs can be seen.
"""

from __future__ import annotations

from experiments.harness_control.config import HarnessConfig

__all__ = ["SETTINGS", "SMOKE"]

SETTINGS: tuple[HarnessConfig, ...] = (
    HarnessConfig(),
    HarnessConfig(domain=("coding",), seeds=8),
    HarnessConfig(domain=("research",), seeds=8),
    HarnessConfig(seed=1),
    HarnessConfig(seed=2),
)

SMOKE = 0
"""The id that tests run with `--smoke`."""
