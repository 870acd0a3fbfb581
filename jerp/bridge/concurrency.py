"""How many requests are under way at once: as many as the endpoint takes.

    success:  n <- n + 1 until the first overload, then n + 1/n;  never above the cap
    overload: n <- max(1, n / 2), once for all that began before it

An answer that does not come in time is an overload too: the endpoint, or this machine,
may have too much to do.

Reference: Chiu and Jain, "Analysis of the Increase and Decrease Algorithms for
Congestion Avoidance in Computer Networks", 1989.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Awaitable, Callable
from dataclasses import dataclass

from jerp.errors import ConfigError

__all__ = ["Concurrency", "Limiter"]


@dataclass(frozen=True)
class Concurrency:
    """Bounds of the number of requests under way.

    Attributes:
      start: before anything is known of the endpoint.
      cap: never more.
    """

    start: int = 8
    cap: int = 64

    def __post_init__(self):
        if not 1 <= self.start <= self.cap:
            raise ConfigError(
                f"start, cap: expected 1 <= start <= cap, got {self.start}, {self.cap}"
            )


class Limiter:
    """Hands out places for requests under way; of one event loop.

    Args:
      bounds: where the limit starts and ends.
      clock: seconds that only grow.

    Attributes:
      limit: how many may be under way now; its whole part counts.
      in_flight: how many are.
    """

    def __init__(self, bounds: Concurrency, clock: Callable[[], float]):
        self.limit = float(bounds.start)
        self.in_flight = 0
        self._cap, self._clock = bounds.cap, clock
        self._resume = float("-inf")
        self._era = 0
        self._waiting: deque[asyncio.Future[None]] = deque()

    async def acquire(
        self,
        admit: Callable[[bool], bool],
        sleep: Callable[[float], Awaitable[None]],
    ) -> int:
        """Waits for a place, and returns the era to tell `overloaded` with.

        Args:
          admit: called when there is a place, with whether waiting would help; False
            waits until another request ends. It may raise, and then no place is taken.
          sleep: waits out a pause.
        """
        while True:
            pause = self._resume - self._clock()
            if pause > 0:
                await sleep(pause)
            elif self.in_flight < int(self.limit) and self._ask(admit):
                self.in_flight += 1
                return self._era
            else:
                await self._turn()

    def _ask(self, admit: Callable[[bool], bool]) -> bool:
        try:
            return admit(self.in_flight > 0)
        except Exception:
            self.wake()  # the place that is not taken is another's
            raise

    def release(self) -> None:
        """Gives a place back."""
        self.in_flight -= 1
        self.wake()

    def succeeded(self) -> None:
        """An answer came: a little more may be under way."""
        step = 1.0 if self._era == 0 else 1.0 / self.limit
        self.limit = min(float(self._cap), self.limit + step)
        self.wake()

    def overloaded(self, era: int, pause: float | None) -> None:
        """The endpoint has too much to do.

        Args:
          era: what `acquire` returned: overloads of one moment count once.
          pause: seconds until anything new begins, if the endpoint named any.
        """
        if era == self._era:
            self.limit = max(1.0, self.limit / 2)
            self._era += 1
        if pause is not None:
            self._resume = max(self._resume, self._clock() + pause)

    def wake(self) -> None:
        """Lets those that wait look again."""
        free = int(self.limit) - self.in_flight
        while self._waiting and free > 0:
            turn = self._waiting.popleft()
            if not turn.done():
                turn.set_result(None)
                free -= 1

    async def _turn(self) -> None:
        turn = asyncio.get_running_loop().create_future()
        self._waiting.append(turn)
        try:
            await turn
        except asyncio.CancelledError:
            if turn.done() and not turn.cancelled():
                self.wake()  # this turn goes to another
            raise
