"""A benchmark of commands made up for tests: open the door that the task names."""

from dataclasses import dataclass, field

from jerp.domains.commands import CommandSession, Outcome, command
from jerp.records import Task

COLOURS = ("red", "blue", "green")


@dataclass
class Doors:
    """Of each colour a kind; two tasks of a kind a split. The key comes first."""

    opened: list = field(default_factory=list)
    name = "doors"
    version = "1"
    splits = ("train", "test")
    broken: dict = field(default_factory=dict)

    def tasks(self, split):
        return tuple(
            Task(f"doors/{split}/{c}/{i}", "doors", 0, f"The {c} door", {"kind": c})
            for c in COLOURS
            for i in range(2)
        )

    def start(self, task, *, seed=0):
        state = {"key": False}
        colour = task.payload["kind"]
        self.opened.append(task.key)

        def act(line):
            if line == "take key":
                state["key"] = True
                return Outcome("You have a key.", 0.5, False, False)
            if line.startswith("open ") and state["key"]:
                won = line == f"open {colour}"
                return Outcome("It opens.", float(won), won, True)
            return Outcome("Nothing happens.", 0.0, False, False, known=False)

        opening = f"Go through the {colour} door.\nThree doors, a key."
        forms = ("take key", *(f"open {c}" for c in COLOURS))
        return CommandSession(opening, act, lambda: None, admissible=lambda: forms)

    def oracle(self, task):
        return command("take key"), command(f"open {task.payload['kind']}")

    def close(self):
        pass
