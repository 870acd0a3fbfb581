"""`jerp serve`: a model of this machine behind HTTP."""

from __future__ import annotations

import os
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from tyro.conf import Positional

from jerp.errors import ConfigError, MissingExtraError

__all__ = ["Serve"]

_HERE = ("127.0.0.1", "localhost", "::1")


@dataclass(frozen=True)
class Serve:
    """Serve a model by the chat completions protocol; Ctrl-C ends it.

    Attributes:
      model: a name of `jerp models list`, whose weights are fetched unless they are
        cached, or a path to weights.
      host: the address to listen at.
      port: 0 takes a free one.
      api_key_env: the environment variable with the key that clients must send.
      numerics: of the products with the weights.
    """

    model: Positional[str]
    host: str = "127.0.0.1"
    port: int = 8000
    api_key_env: str | None = None
    numerics: Literal["bfloat16", "float32"] = "bfloat16"

    def __call__(self) -> int:
        """Serves until it is interrupted."""
        key = self._key()
        if not 0 <= self.port < 2**16:
            raise ConfigError(f"--port: expected 0 to 65535, got {self.port}")
        try:
            import uvicorn
        except ImportError as error:
            raise MissingExtraError("uvicorn", "serve") from error
        import socket

        from jerp.bridge.local import LocalExecutor
        from jerp.bridge.serving import chat_app
        from jerp.bridge.xla_flags import compute_late
        from jerp.storage.pull import pull
        from jerp.storage.weights import MODELS, load_weights

        compute_late()  # long prompts take a third less memory
        family = socket.AF_INET6 if ":" in self.host else socket.AF_INET
        with socket.create_server((self.host, self.port), family=family) as listening:
            if self.model in MODELS:
                pull(self.model)
            weights = load_weights(self.model)
            executor = LocalExecutor(weights, numerics=self.numerics)
            name = Path(self.model).name
            app = chat_app(weights, executor, name=name, api_key=key)
            # Python's own logging shows warnings; nothing of it is rearranged.
            config = uvicorn.Config(app, log_config=None, timeout_graceful_shutdown=5)
            host = f"[{self.host}]" if ":" in self.host else self.host
            url = f"http://{host}:{listening.getsockname()[1]}/v1"
            print(f"{name} is served at {url}; Ctrl-C ends it", file=sys.stderr)
            uvicorn.Server(config).run(sockets=[listening])
        return 0

    def _key(self) -> str:
        if self.api_key_env is None:
            if self.host not in _HERE:
                raise ConfigError(
                    f"--api-key-env: expected a variable with a key for {self.host}, "
                    "which other machines reach; set one, or leave --host out"
                )
            return ""
        key = os.environ.get(self.api_key_env, "").strip()
        if not key:
            raise ConfigError(
                f"--api-key-env: expected {self.api_key_env} to hold a key, it is not "
                "set or empty"
            )
        return key
