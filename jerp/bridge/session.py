"""A domain's episodes as arrays: the session that a scan or a host loop steps.

Text lives here, behind an integer handle. A `HarnessDomain` says what an action asks of
the executor and what becomes of a workspace; the `Session` batches the executor calls
of all episodes and turns failures into status codes, never exceptions.
"""

from __future__ import annotations

from collections.abc import Hashable
from typing import Any, Protocol

import numpy as np

from jerp.bridge.executor import Completion, Request
from jerp.records import ProcessStep, Task, Verdict

__all__ = ["HarnessDomain", "Workspace"]


class Workspace(Protocol):
    """One episode in progress, as the session reads it. Immutable."""

    @property
    def task(self) -> Task:
        """The task at hand."""
        ...

    @property
    def sample_index(self) -> int:
        """Sample index of every request of this episode."""
        ...

    @property
    def terminated(self) -> bool:
        """Submitted and judged."""
        ...

    @property
    def truncated(self) -> bool:
        """The step budget ran out before a submit."""
        ...

    @property
    def verdict(self) -> Verdict | None:
        """The verifier's judgement, once submitted."""
        ...

    @property
    def trace(self) -> tuple[ProcessStep, ...]:
        """What each step did."""
        ...

    @property
    def transcript(self) -> tuple[dict[str, Any], ...]:
        """JSON-able text of each step."""
        ...


class HarnessDomain(Protocol):
    """Tasks, what actions mean on them, and their verifier.

    All methods are deterministic given their arguments, so that an episode replays from
    recorded completions; `request` and `advance` never mutate a workspace.
    """

    @property
    def name(self) -> str:
        """Name in tables and file names."""
        ...

    @property
    def max_steps(self) -> int:
        """Step budget of an episode."""
        ...

    def begin(self, task: Task, sample_index: int) -> Any:
        """A fresh workspace."""
        ...

    def legal(self, workspace: Any) -> np.ndarray:
        """`[A]` bool; at least one is legal until the episode ends."""
        ...

    def features(self, workspace: Any) -> np.ndarray:
        """`[F]` float32, see `jerp.harness.state`."""
        ...

    def request(self, workspace: Any, action: int) -> Request | None:
        """What `action` asks of the executor; None where it asks nothing."""
        ...

    def advance(
        self, workspace: Any, action: int, completion: Completion | None
    ) -> Any:
        """The workspace after `action`: tools and tests run, a submit is judged."""
        ...

    def anchor(self, workspace: Any) -> Hashable:
        """All that later requests, legality and score depend on, but no counters."""
        ...
