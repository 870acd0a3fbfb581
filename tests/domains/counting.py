"""A benchmark made up for tests: count to a number. It can be made to misbehave."""

from dataclasses import dataclass, field

from jerp.domains.benchmark import Call, Reply, Say, ToolSpec
from jerp.records import Criterion, Task, Verdict

ADD = ToolSpec(
    "add",
    "Adds to the count.",
    {"type": "object", "properties": {"number": {"type": "integer"}}},
)


@dataclass
class CountingSession:
    """One count; `leak` is one for all sessions, `raises` breaks on a wrong tool."""

    goal: int
    leak: list[int] | None = None
    raises: bool = False
    silent: bool = False
    count: int = 0
    ended: bool = False
    closed: int = 0
    tools = (ADD,)

    @property
    def opening(self):
        return f"Count to {self.goal}."

    def move(self, move):
        if isinstance(move, Say):
            self.ended = move.text == "done"
            return Reply("", ended=self.ended)
        number = move.arguments.get("number")
        if move.tool != "add" or not isinstance(number, int):
            if self.raises:
                raise KeyError(move.tool)
            return Reply("no such tool or argument", error=not self.silent)
        self.count += number
        if self.leak is not None:
            self.leak[0] += number
            self.count = self.leak[0]
        return Reply(str(self.count))

    def score(self):
        won = self.count == self.goal
        return Verdict((Criterion("count", float(won), 1.0),), won)

    def close(self):
        self.closed += 1


@dataclass
class Counting:
    """Tasks of several kinds; the reference counts by twos and ones, then is done."""

    number: int = 12
    kinds: int = 3
    fault: str = ""
    broken: dict = field(default_factory=dict)
    leak: list = field(default_factory=lambda: [0])
    name = "counting"
    version = "1"
    splits = ("all", "empty")

    def tasks(self, split):
        number = self.number if split == "all" else 0
        return tuple(
            Task(f"counting/{i}", "counting", 0, "", {"kind": i % self.kinds, "to": i})
            for i in range(1, number + 1)
        )

    def start(self, task, *, seed=0):
        return CountingSession(
            task.payload["to"] + (task.key in self.broken),
            leak=self.leak if self.fault == "leak" else None,
            raises=self.fault == "raise",
            silent=self.fault == "silent",
        )

    def oracle(self, task):
        twos, one = divmod(task.payload["to"], 2)
        calls = [Call("add", {"number": 2})] * twos + [Call("add", {"number": 1})] * one
        return (*calls, Say("done"))

    def close(self):
        pass
