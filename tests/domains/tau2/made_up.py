"""A domain of tau2's form that is made up, and a worker that is played here."""

from dataclasses import dataclass, field

from jerp.domains.tau2.entries import read_domain
from jerp.errors import InfrastructureError

LAMP = {"type": "object", "properties": {"on": {"type": "boolean"}}}


def task(key, *actions, communicate=(), basis=("DB", "COMMUNICATE")):
    return {
        "id": key,
        "scenario": "You are Ada and sit in the dark.",
        "known": ["You sit in the dark.", None],
        "actions": [{"by": by, "tool": t, "arguments": a} for by, t, a in actions],
        "communicate": list(communicate),
        "basis": list(basis),
    }


TOLD = {
    "version": "1",
    "policy": "Be kind.",
    "greeting": "Hello?",
    "guidelines": "Play a customer, officially.",
    "signs": ["#STOP#", "#MOVED#", "#LOST#"],
    "tools": [{"name": "power", "description": "Cuts it.", "parameters": LAMP}],
    "user_tools": [{"name": "lamp", "description": "Yours.", "parameters": LAMP}],
    "tasks": [
        task("agent", ("assistant", "power", {"on": True}), communicate=["7", "x"]),
        task("nothing"),
        task(
            "both",
            ("user", "lamp", {"on": True}),
            ("assistant", "power", {"on": False}),
            ("assistant", "power", {"on": True}),
            ("user", "lamp", {"on": False}),
            ("user", "lamp", {"on": True}),
            basis=("ACTION", "NL_ASSERTION"),
        ),
    ],
    "splits": {"base": ["agent", "nothing", "both"]},
}
DOMAIN = read_domain(TOLD)


@dataclass
class Played:
    """In place of `Apart`: keeps what it was told, and loses it when it is told to."""

    keeps: bool = True
    reward: float = 1.0
    parts: dict = field(default_factory=lambda: {"DB": [1.0, ""]})
    told: dict = field(default_factory=dict)
    opened: list = field(default_factory=list)
    running: bool = True

    def ask(self, request):
        request = dict(request)
        wish, number = request.pop("do"), request.pop("episode")
        if wish == "open":
            self.opened.append(request["task"])
            if self.keeps:
                self.told[number] = []
        elif wish == "close":
            self.told.pop(number, None)
        elif number not in self.told:
            return {"lost": True}
        elif wish == "score":
            return {"reward": self.reward, "parts": self.parts}
        else:
            return self.take(wish, number, request)
        return {}

    def take(self, wish, number, request):
        if request.get("tool") == "break":
            self.told.clear()
            raise InfrastructureError("it died")
        self.told[number].append((wish, *request.values()))
        if wish == "say":
            return {}
        error = request["tool"] not in ("power", "lamp")
        return {"text": f"{len(self.told[number])}", "error": error}
