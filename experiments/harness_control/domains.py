"""The controlled domains by name; each is imported where it is made."""

from __future__ import annotations

from typing import TYPE_CHECKING

from jerp.errors import UnknownNameError

if TYPE_CHECKING:
    from jerp.bridge.store import ResponseStore
    from jerp.domains.base import ControlledDomain

__all__ = ["DOMAINS", "NUM_TASKS", "make_domain"]

DOMAINS = (
    "knowledge-work",
    "coding",
    "research",
    "multi-tool",
    "long-memory",
    "planning",
)
NUM_TASKS = 300
"""Tasks that a generator makes of one seed; sizes take a stratified part."""


def make_domain(name: str, store: ResponseStore) -> ControlledDomain:
    """The domain called `name`; verdicts of run code are kept in `store`.

    Raises:
      UnknownNameError: there is none of that name.
    """
    match name:
        case "coding":
            from jerp.bridge.sandbox import Sandbox
            from jerp.domains.controlled.coding import CodingDomain

            return CodingDomain(Sandbox(store=store))
        case "research":
            from jerp.domains.controlled.research import ResearchDomain

            return ResearchDomain()
        case "long-memory":
            from jerp.domains.controlled.long_memory import LongMemoryDomain

            return LongMemoryDomain()
        case "multi-tool":
            from jerp.domains.controlled.multi_tool import MultiToolDomain

            return MultiToolDomain()
        case "knowledge-work":
            from jerp.domains.controlled.knowledge_work import KnowledgeWorkDomain

            return KnowledgeWorkDomain()
        case "planning":
            from jerp.domains.controlled.planning import PlanningDomain

            return PlanningDomain()
        case _:
            raise UnknownNameError("domain", name, DOMAINS)
