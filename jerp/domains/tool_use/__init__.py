"""Any benchmark whose tasks are done by calling tools, under the seven actions."""

from __future__ import annotations

from jerp.domains.tool_use.domain import Calling, ToolUseDomain

__all__ = ["Calling", "ToolUseDomain"]
