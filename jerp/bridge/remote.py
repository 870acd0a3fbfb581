"""An executor behind any endpoint that speaks chat completions.

Every attempt goes through one ledger, so that retries are charged like answers. What
one request meets is its completion's status; what concerns all of them (a cap, a key
that is refused) ends the call once all that is under way has ended.
"""

from __future__ import annotations

import asyncio
import ssl
from collections.abc import Iterator, Sequence
from functools import cache

from jerp.bridge.api_key import ApiKey
from jerp.bridge.budget import Ledger, RemoteUsage
from jerp.bridge.concurrency import Limiter
from jerp.bridge.executor import Completion, OnAnswer, Request
from jerp.bridge.remote_calls import Caller, Stop, Wire, response_type
from jerp.bridge.remote_settings import RemoteSettings, endpoint_fingerprint
from jerp.bridge.retry import Timing

__all__ = ["RemoteExecutor"]


class RemoteExecutor:
    """Answers requests with a model behind an endpoint; see `Executor`.

    Completions have no token ids. The address, the model and what is sent with every
    request make the fingerprint; keys are in none of it.

    Args:
      base_url: up to and without `/chat/completions`.
      model: its name there.
      settings: the rest.
      timing: clock and chance of retries.

    Raises:
      ConfigError: the address is none, or carries a secret; a cap in dollars without a
        price.
      MissingExtraError: the client library is not installed.
    """

    def __init__(
        self,
        base_url: str,
        model: str,
        *,
        settings: RemoteSettings | None = None,
        timing: Timing | None = None,
    ):
        self._url, self._settings = base_url, settings or RemoteSettings()
        self._timing = timing or Timing()
        self.fingerprint = endpoint_fingerprint(base_url, model, self._settings)
        self._key = ApiKey(self._settings.api_key_env)
        self._ledger = Ledger(
            self._settings.caps, self._settings.price, self._timing.clock
        )
        self._caller = Caller(
            model,
            self.fingerprint,
            self._settings,
            self._key,
            self._ledger,
            self._timing,
        )
        self._response_type = response_type()
        self._wires: dict[asyncio.AbstractEventLoop, Wire] = {}

    def __repr__(self) -> str:
        return f"RemoteExecutor({self.fingerprint!r}, {self._key!r})"

    @property
    def usage(self) -> RemoteUsage:
        """The account so far; may be read while requests are under way."""
        limiters = [wire.limiter for wire in list(self._wires.values())]
        return self._ledger.usage(
            concurrency=sum(int(limiter.limit) for limiter in limiters),
            in_flight=sum(limiter.in_flight for limiter in limiters),
        )

    async def __aenter__(self) -> RemoteExecutor:
        return self

    async def __aexit__(self, *exception: object) -> None:
        await self.aclose()

    async def aclose(self) -> None:
        """Closes the connections of the running event loop; a later call opens new."""
        wire = self._wires.pop(asyncio.get_running_loop(), None)
        if wire is not None:
            await wire.client.close()

    async def complete(self, requests: Sequence[Request]) -> list[Completion]:
        """Answers all requests, same length and order.

        Raises:
          BudgetExceededError: a cap was reached.
          ExecutorError: the endpoint refuses the key or the model.
        """
        return await self.complete_each(requests, lambda index, completion: None)

    async def complete_each(
        self, requests: Sequence[Request], on_answer: OnAnswer
    ) -> list[Completion]:
        """`complete`, handing over each completion as soon as it is there.

        Before it raises, all that is under way has ended and was handed over.
        """
        wire, stop = self._wire(), Stop(self._timing)
        completions: list[Completion | None] = [None] * len(requests)

        async def work(indices: Iterator[int]) -> None:
            for index in indices:
                if stop.error is not None:
                    return
                try:
                    completion = await self._caller.answer(wire, requests[index], stop)
                    completions[index] = completion
                    on_answer(index, completion)
                except Exception as error:
                    stop.set(error)
                    wire.limiter.wake()

        indices = iter(range(len(requests)))
        async with asyncio.TaskGroup() as group:
            for _ in range(min(self._settings.concurrency.cap, len(requests))):
                group.create_task(work(indices))
        if stop.error is not None:
            raise stop.error
        return [completion for completion in completions if completion is not None]

    def _wire(self) -> Wire:
        """Connections and limiter of the running loop; those of dead loops go."""
        import openai

        loop = asyncio.get_running_loop()
        if loop not in self._wires:
            self._wires = {k: w for k, w in self._wires.items() if not k.is_closed()}
            client = openai.AsyncOpenAI(
                api_key=self._key.for_client(),
                base_url=self._url,
                max_retries=0,  # every attempt is ours to charge
                timeout=None,  # ours is of the whole attempt
                http_client=openai.DefaultAsyncHttpxClient(verify=_tls()),
            )
            limiter = Limiter(self._settings.concurrency, self._timing.clock)
            self._wires[loop] = Wire(client, self._response_type, limiter)
        return self._wires[loop]


@cache
def _tls() -> ssl.SSLContext:
    """Certificates, read once: it takes longer than many a request."""
    import httpx2

    return httpx2.create_ssl_context()
