"""A policy of which some parameters are given: those of a decoder beside adapters.

What is trained is the rest, so that neither gradients nor an optimizer's state are ever
made for what stays.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple, cast

from jerp.errors import ConfigError
from jerp.models.policy import Evaluated, SequencePolicy
from jerp.trajectory import Trajectory
from jerp.typing import Key

__all__ = ["beside_frozen", "check_apart"]


def beside_frozen(
    policy: SequencePolicy, frozen: Mapping[str, Any] | None
) -> SequencePolicy:
    """The policy as one of its other parameters, to be evaluated alone.

    Args:
      policy: whose parameters are a dict.
      frozen: entries of that dict; None leaves the policy as it is.

    Returns:
      What evaluates `{**frozen, **params}` when it is given `params`; entries that both
      have are a `ConfigError`.
    """
    return policy if frozen is None else cast(Any, _Beside(policy, frozen))


def check_apart(params: Mapping[str, Any], frozen: Mapping[str, Any]) -> None:
    """Raises `ConfigError` for what would be frozen and trained at once."""
    both = sorted(params.keys() & frozen.keys())
    if both:
        raise ConfigError(
            f"frozen: expected entries that are not in params, got {both[0]!r} in "
            "both; leave out of params what is not trained"
        )


class _Beside(NamedTuple):
    policy: SequencePolicy
    frozen: Mapping[str, Any]

    def evaluate(
        self,
        params: Mapping[str, Any],
        trajectory: Trajectory,
        *,
        key: Key | None = None,
    ) -> Evaluated:
        check_apart(params, self.frozen)
        return self.policy.evaluate({**self.frozen, **params}, trajectory, key=key)
