"""`jerp version`."""

from __future__ import annotations

from dataclasses import dataclass

__all__ = ["Version"]


@dataclass(frozen=True)
class Version:
    """Versions of jerp and what it stands on, JAX's backend and devices."""

    def __call__(self) -> int:
        """Prints them."""
        from jerp.storage.manifest import devices, versions

        for name, version in versions().items():
            print(f"{name:8}{version}")
        found = devices()
        print(f"{'backend':8}{found['backend']}")
        print(f"{'devices':8}{', '.join(found['devices'])}")
        return 0
