"""The one rule for the seed of a command, whatever it draws.

Light to import, as the settings that ask it are.
"""

from __future__ import annotations

from jerp.errors import ConfigError

__all__ = ["check_seed"]


def check_seed(seed: int) -> None:
    """Refuses what `jax.random.key` would refuse, or take for another seed.

    Raises:
      ConfigError: it is not in [0, 2^32).
    """
    if not 0 <= seed < 2**32:
        raise ConfigError(f"--seed: expected in [0, 2^32), got {seed}")
