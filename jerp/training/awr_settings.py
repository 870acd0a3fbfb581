"""The settings of AWR: what is static, what may be swept in one compilation.

`AwrConfig` changes shapes or code paths and is hashable; the leaves of `AwrHyper` are
numbers that may be traced and vmapped. The defaults are those of arXiv:2607.05458.
"""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

import jax
import jax.numpy as jnp
from flax import struct

from jerp.errors import ConfigError
from jerp.typing import ArrayLike

__all__ = ["AwrConfig", "AwrHyper", "hyper_grid"]


@dataclass(frozen=True)
class AwrConfig:
    """What changes shapes or code paths; the paper's values.

    Attributes:
      advantage: "trajectory", return minus task mean, or "step", TD(lambda) return
        minus state value.
      epochs: passes over the buffer that train the policy.
      batch_size: steps a minibatch.
      hidden_size: width of the controller.
      standardize: scale the advantages over the buffer first; the released code of
        arXiv:1910.00177 does (with temperature 1), that of arXiv:2607.05458 does not.
      leave_one_out: leave an episode out of its own baseline ("trajectory" alone).
      value_epochs: passes that train the value ("step" alone).
    """

    advantage: Literal["trajectory", "step"] = "trajectory"
    epochs: int = 20
    batch_size: int = 256
    hidden_size: int = 64
    standardize: bool = False
    leave_one_out: bool = False
    value_epochs: int = 20

    def __post_init__(self):
        if self.advantage not in ("trajectory", "step"):
            raise ConfigError(
                f"advantage: expected 'trajectory' or 'step', got {self.advantage!r}"
            )
        for name in ("epochs", "batch_size", "hidden_size", "value_epochs"):
            if getattr(self, name) < 1:
                raise ConfigError(f"{name}: expected >= 1, got {getattr(self, name)}")
        if self.leave_one_out and self.advantage == "step":
            raise ConfigError(
                "leave_one_out: concerns the task mean of advantage='trajectory', got "
                "advantage='step'"
            )


class AwrHyper(struct.PyTreeNode):
    """What may be swept without compiling again; the paper's values.

    Attributes:
      temperature: > 0; infinity clones the behaviour.
      min_weight, max_weight: bounds of the weights.
      entropy_weight: of the policy's mean entropy, which is maximised.
      learning_rate: Adam's, for the policy.
      discount: of rewards; the paper has none.
      lambda_: of TD(lambda) ("step" alone).
      value_learning_rate: Adam's, for the value ("step" alone).
    """

    temperature: ArrayLike = 0.2
    min_weight: ArrayLike = 0.1
    max_weight: ArrayLike = 10.0
    entropy_weight: ArrayLike = 0.01
    learning_rate: ArrayLike = 1e-3
    discount: ArrayLike = 1.0
    lambda_: ArrayLike = 0.95
    value_learning_rate: ArrayLike = 1e-3


def hyper_grid(base: AwrHyper | None = None, **values: Sequence[float]) -> AwrHyper:
    """The product of lists of values, as one `AwrHyper` to vmap over.

    Args:
      base: holds what is not swept; the paper's values by default.
      **values: field name to values; the last one named varies fastest.

    Returns:
      `AwrHyper` whose leaves are `[number of combinations]` float32.

    Example:
      >>> grid = hyper_grid(temperature=[0.5, 1.0], discount=[0.75, 1.0])
      >>> grid.temperature.tolist(), grid.lambda_.shape
      ([0.5, 0.5, 1.0, 1.0], (4,))
    """
    rows = jnp.asarray(list(itertools.product(*values.values())), jnp.float32)
    base = AwrHyper() if base is None else base
    full = jax.tree.map(lambda x: jnp.full(len(rows), x, jnp.float32), base)
    return full.replace(**dict(zip(values, rows.T, strict=True)))
