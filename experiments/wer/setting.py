"""Whose tasks a language model writes skills for, and who follows them."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any, Literal, get_args

from experiments.executors.endpoint import NO_ENDPOINT, Endpoint
from experiments.executors.opened import check_executor
from jerp.domains.tool_use import Calling
from jerp.errors import ConfigError, UnknownNameError
from jerp.ops.checks import check_choice

__all__ = ["CODING", "ENVS", "TextSetting"]

ENVS = ("bfcl", "tau2", "tau2-retail", "tau2-airline", "tau2-telecom")
"""Benchmarks, `tau2` being that of its shop; without one small programs are written."""


@dataclass(frozen=True)
class TextSetting:
    """What a run of a language model is about, beside its sizes.

    Attributes:
      env: one of `ENVS`, or "" for small programs.
      data: of the benchmark, see `jerp.domains.catalogue.make_benchmark`.
      calling: how tools are called.
      user: who plays the user of `tau2`: who follows skills, or a script.
      executor: who follows skills, see `open_live`; "" is the model that writes them,
        without its adapters.
      endpoint: of an address.
    """

    env: str = ""
    data: Path | None = None
    calling: Calling = "text"
    user: Literal["executor", "scripted"] = "executor"
    executor: str = ""
    endpoint: Endpoint = NO_ENDPOINT

    def __post_init__(self):
        if self.env and self.env not in ENVS:
            raise UnknownNameError("env", self.env, ENVS)
        check_choice("calling", self.calling, get_args(Calling))
        check_choice("user", self.user, ("executor", "scripted"))
        for name in ("data", "calling", "user"):
            value = getattr(self, name)
            if not self.env and value != getattr(type(self), name):
                raise ConfigError(f"{name}: expected with --env, got {value}")
        if self.executor or self.endpoint != NO_ENDPOINT:
            check_executor(self.executor or "the model itself", self.endpoint)

    @property
    def identity(self) -> dict[str, Any]:
        """What must agree for a run to be resumed; caps may change."""
        found = {
            "env": self.env,
            "executor": self.executor,
            "model": self.endpoint.model,
            "calling": self.calling if self.calling != "text" else "",
            "user": self.user if self.env.startswith("tau2") else "",
        }
        return {name: value for name, value in found.items() if value}

    def to_json(self) -> str:
        """For another process; no key is in it."""
        return json.dumps(asdict(self), default=str)

    @classmethod
    def from_json(cls, text: str) -> TextSetting:
        """What `to_json` wrote."""
        record: Mapping[str, Any] = json.loads(text)
        endpoint = Endpoint(**record["endpoint"])
        paths = {n: _path(getattr(endpoint, n)) for n in ("prices", "wire")}
        return cls(
            **{
                **record,
                "data": _path(record["data"]),
                "endpoint": replace(endpoint, **paths),
            }
        )


def _path(text: Any) -> Path | None:
    return None if text is None else Path(text)


CODING = TextSetting()
"""Small programs, which the model itself writes."""
