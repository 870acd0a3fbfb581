"""`jerp sandbox`: what holds model-written code and SQL on this machine."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

__all__ = ["SandboxReport"]


@dataclass(frozen=True)
class SandboxReport:
    """What protects this machine from model-written Python and SQL.

    Each protection is tried by what it is to prevent; one that did not hold is not
    there.

    Attributes:
      allow_weaker: report what `allow_weaker=True` would run with.
    """

    allow_weaker: bool = False

    def __call__(self) -> int:
        """Prints the isolation and the protections; 1 if untrusted code is refused."""
        from jerp.bridge.sandbox import Sandbox
        from jerp.bridge.sql_sandbox import SqlSandbox
        from jerp.errors import SandboxError

        status = 0
        for name, kind in (("Python", Sandbox), ("SQL", SqlSandbox)):
            with kind(allow_weaker=self.allow_weaker) as sandbox:
                try:
                    print(f"{name}: isolation {sandbox.isolation}")
                except SandboxError as error:
                    print(f"{name}: refused: {error}")
                    status = 1
                    continue
                for protection, how in sandbox.protections.items():
                    print(f"  {protection:13}{how}")
                for missing in _missing(sandbox.protections):
                    print(f"  {missing:13}NOT PROTECTED")
        return status


def _missing(protections: Mapping[str, str]) -> list[str]:
    from jerp.bridge.sandbox import REQUIRED_PROTECTIONS

    wanted = (*REQUIRED_PROTECTIONS, "reads")
    return [name for name in wanted if name not in protections]
