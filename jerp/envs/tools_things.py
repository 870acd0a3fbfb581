"""Four small APIs: what there is, what can be called, what that needs and changes.

An API is a few variables with named values and a list of calls, a tool with arguments
each. A call needs variables to have certain values, some of which its caller is never
told of but by the error; else it sets or shifts variables. Variables are listed so that
to set one disturbs at most later ones: who repairs a state goes from first to last.
"""

from __future__ import annotations

from typing import NamedTuple

__all__ = ["APIS", "Api", "Call", "Effect", "Need", "Request", "Variable"]

ANYTHING = frozenset(range(16))


class Variable(NamedTuple):
    """Part of the state; value `i` is called `values[i]`, and `starts` may be first.

    `wish` is how a user asks for a value.
    """

    name: str
    values: tuple[str, ...]
    starts: tuple[int, ...]
    wish: str = ""


class Need(NamedTuple):
    """`variable` must be one of `values`, else the call brings `error`."""

    variable: str
    values: frozenset[int]
    error: str


class Effect(NamedTuple):
    """`variable` becomes `keep * itself + add`; `keep` is 0 or 1."""

    variable: str
    keep: int
    add: int


class Call(NamedTuple):
    """A tool with its arguments; shows `shown`, and sets the first effect's above all.

    Needs are asked in order, and the first that fails is the error.
    """

    tool: str
    arguments: tuple[str, ...]
    needs: tuple[Need, ...]
    effects: tuple[Effect, ...]
    shown: str


class Request(NamedTuple):
    """A user wants `variable` to have `value`, and says so only if `when` holds."""

    variable: str
    value: int
    when: tuple[Need, ...]


class Api(NamedTuple):
    """One domain."""

    name: str
    variables: tuple[Variable, ...]
    calls: tuple[Call, ...]
    requests: tuple[Request, ...]


def _sets(tool: str, variable: str, value: int, *needs: Need, says: str = "") -> Call:
    arguments = tuple(says.split(",")) if says else ()
    return Call(tool, arguments, needs, (Effect(variable, 0, value),), variable)


def _mistaken(tool: str, shown: str, says: str, error: str) -> Call:
    """A call with an argument that does not exist."""
    needs = (Need(shown, frozenset(), error),)
    return Call(tool, tuple(says.split(",")), needs, (), shown)


def _reads(tool: str, shown: str, says: str = "") -> Call:
    return Call(tool, tuple(says.split(",")) if says else (), (), (), shown)


def _is(variable: str, value: int, error: str) -> Need:
    return Need(variable, frozenset({value}), error)


def _not(variable: str, value: int, error: str) -> Need:
    return Need(variable, ANYTHING - {value}, error)


def _from(variable: str, least: int, error: str, most: int = 15) -> Need:
    return Need(variable, frozenset(range(least, most + 1)), error)


def _switch(on: str, off: str, variable: str, error: str, *needs: Need) -> list[Call]:
    """Two calls that turn `variable` on and off, when it is not so already."""
    return [
        _sets(on, variable, 1, *needs, _is(variable, 0, error)),
        _sets(off, variable, 0, *needs, _is(variable, 1, error)),
    ]


NO, YES = 0, 1
OFF_ON = ("off", "on")


def _files() -> Api:
    """Locked files stay where they are; the archive must exist, the drive be there."""
    files = ("report", "notes", "budget")
    inbox, archive, drive, bin_ = range(4)
    places = ("inbox", "archive", "drive", "bin")
    wish = "I want the {name} here: {value}."
    variables = [Variable(f, places, (inbox, drive), wish) for f in files]
    wish = "Turn the {name} {value}."
    variables += [Variable(f"{f} lock", OFF_ON, (NO, YES), wish) for f in files]
    variables += [Variable("archive folder", OFF_ON, (NO, YES))]
    variables += [Variable("drive mount", OFF_ON, (NO, YES))]
    calls, requests = [_mistaken("move", "report", "draft,archive", "no such file")], []
    for f in files:
        free = _is(f"{f} lock", NO, "permission denied")
        there = _not(f, bin_, "no such file")
        folder = _is("archive folder", YES, "no such folder")
        mounted = _is("drive mount", YES, "not mounted")
        for place, more in ((inbox, ()), (archive, (folder,)), (drive, (mounted,))):
            needs = (there, *more, free)
            calls.append(_sets("move", f, place, *needs, says=f"{f},{places[place]}"))
        calls += [
            _sets("delete", f, bin_, there, free, says=f),
            _sets("restore", f, inbox, _is(f, bin_, "not in the bin"), says=f),
            _sets("lock", f"{f} lock", YES, there, says=f),
            _sets("unlock", f"{f} lock", NO, there, says=f),
            _reads("find", f, f),
        ]
        requests += [Request(f, place, (there,)) for place in (archive, drive, bin_)]
        requests += [Request(f, inbox, ()), Request(f"{f} lock", YES, (there,))]
    empty = [_not(f, archive, "folder not empty") for f in files]
    is_new = _is("archive folder", NO, "folder exists")
    calls += [
        _sets("make folder", "archive folder", YES, is_new),
        _sets("remove folder", "archive folder", NO, folder, *empty),
        *_switch("mount", "eject", "drive mount", "no change"),
    ]
    return Api("files", tuple(variables), tuple(calls), tuple(requests))


def _trading() -> Api:
    """All but looking needs a session, buying needs funds."""
    prices = {"Acme": 1, "Bolt": 2, "Crux": 3}
    numbers = tuple(str(i) for i in range(16))
    wish = "I want to own {value} {name}."
    variables = [Variable(f"{s} shares", numbers[:3], (0, 1), wish) for s in prices]
    wish = "Turn the {name} {value}."
    variables += [Variable(f"{s} watch", OFF_ON, (NO, YES), wish) for s in prices]
    variables += [Variable("balance", numbers, (0, 1, 2, 3, 4, 5))]
    variables += [Variable("session", OFF_ON, (NO, YES))]
    session = _is("session", YES, "not logged in")
    calls, requests = [_mistaken("buy", "balance", "Dodo", "no such symbol")], []
    for s, price in prices.items():
        shares, watch = f"{s} shares", f"{s} watch"
        room = _from(shares, 0, "limit reached", 1)
        funds = _from("balance", price, "insufficient funds")
        buys = (Effect(shares, 1, 1), Effect("balance", 1, -price))
        sells = (Effect(shares, 1, -1), Effect("balance", 1, price))
        owned = _from(shares, 1, "nothing to sell")
        full = _from("balance", 0, "account full", 15 - price)
        calls += [
            Call("buy", (s,), (session, room, funds), buys, shares),
            Call("sell", (s,), (session, owned, full), sells, shares),
            _sets("watch", watch, YES, session, says=s),
            _sets("unwatch", watch, NO, session, says=s),
        ]
        requests += [Request(shares, i, ()) for i in range(3)]
        requests += [Request(watch, i, ()) for i in (NO, YES)]
    less = (session, _from("balance", 0, "account full", 11))
    more = (session, _from("balance", 4, "insufficient funds"))
    calls += [
        Call("deposit", (), less, (Effect("balance", 1, 4),), "balance"),
        Call("withdraw", (), more, (Effect("balance", 1, -4),), "balance"),
        _reads("show balance", "balance"),
        *_switch("log in", "log out", "session", "no change"),
    ]
    return Api("trading", tuple(variables), tuple(calls), tuple(requests))


def _travel() -> Api:
    """A booking needs a session and a passport; an insured one cannot be cancelled."""
    cities, classes = ("Rome", "Oslo", "Cairo"), ("economy", "business")
    names = [f"{city} {fare}" for city in cities for fare in classes]
    wish = "{name}: {value}, please."
    variables = (
        Variable("trip", ("none", *names), (0, 1, 4), wish),
        Variable("seat", ("any", "aisle", "window"), (0,), wish),
        Variable("insurance", OFF_ON, (NO,), "Turn the {name} {value}."),
        Variable("card", OFF_ON, (NO, YES)),
        Variable("passport", OFF_ON, (NO, YES)),
        Variable("account", OFF_ON, (NO, YES)),
    )
    session = _is("account", YES, "not signed in")
    booked = _not("trip", 0, "no booking")
    free = _is("trip", 0, "booked already")
    passport = _is("passport", YES, "passport not verified")
    card = _is("card", YES, "no card")
    calls = [_mistaken("book", "trip", "Thule,economy", "no such city")]
    for i, name in enumerate(names):
        says = name.replace(" ", ",")
        calls.append(_sets("book", "trip", 1 + i, session, free, passport, says=says))
    cancelled = (Effect("trip", 0, 0), Effect("seat", 0, 0))
    needs = (session, booked, _is("insurance", NO, "insured"))
    calls.append(Call("cancel", (), needs, cancelled, "trip"))
    for i, seat in enumerate(variables[1].values):
        calls.append(_sets("choose seat", "seat", i, session, booked, says=seat))
    calls += [
        _sets("insure", "insurance", YES, session, booked, card),
        _sets("end insurance", "insurance", NO, session),
        *_switch("add card", "remove card", "card", "no change", session),
        *_switch("verify", "revoke", "passport", "no change", session),
        _reads("show trip", "trip"),
        *_switch("sign in", "sign out", "account", "no change"),
    ]
    requests = [Request("trip", i, ()) for i in range(7)]
    requests += [Request("seat", i, (booked,)) for i in (1, 2)]
    requests += [Request("insurance", YES, (booked,))]
    return Api("travel", variables, tuple(calls), tuple(requests))


def _vehicle() -> Api:
    """Refuelling needs the engine off, heating needs it on; starting it needs more."""
    levels = ("empty", "1/4", "1/2", "3/4", "full")
    modes, beams = ("off", "cool", "heat"), ("off", "low", "high")
    places = ("none", "home", "work", "market")
    wish = "Set the {name} to {value}."
    variables = (
        Variable("fuel", levels, (1, 2), "{name}: {value}, please."),
        Variable("climate", modes, (0,), wish),
        Variable("lights", beams, (0, 1, 2), wish),
        Variable("route", places, (0, 1), wish),
        Variable("brake", OFF_ON, (YES,), "Turn the {name} {value}."),
        Variable("engine", OFF_ON, (NO, YES)),
        Variable("doors", ("open", "locked"), (YES,), "I want the {name} {value}."),
    )
    still, runs = _is("engine", NO, "engine running"), _is("engine", YES, "engine off")
    calls = [_mistaken("set route", "route", "nowhere", "no such place")]
    for i, level in enumerate(levels[1:], 1):
        lower = _from("fuel", 0, "fuller than that", i - 1)
        calls.append(_sets("refuel", "fuel", i, still, lower, says=level))
    for i, mode in enumerate(modes):
        calls.append(_sets("set climate", "climate", i, *(runs,) * (i > 0), says=mode))
    calls += [_sets("set lights", "lights", i, says=b) for i, b in enumerate(beams)]
    calls += [_sets("set route", "route", i, says=p) for i, p in enumerate(places)]
    starts = _is("doors", YES, "doors open"), _is("brake", YES, "brake released")
    calls += [
        _sets("start engine", "engine", YES, still, *starts),
        _sets("stop engine", "engine", NO, runs, _is("climate", 0, "climate on")),
        _sets("set brake", "brake", YES),
        _sets("release brake", "brake", NO, runs),
        _sets("lock doors", "doors", YES),
        _sets("open doors", "doors", NO, still),
        _reads("read gauge", "fuel"),
    ]
    requests = [Request("fuel", i, (_from("fuel", 0, "", i - 1),)) for i in (2, 3, 4)]
    sizes = {"climate": 3, "lights": 3, "route": 4}
    requests += [Request(v, i, ()) for v, n in sizes.items() for i in range(n)]
    requests += [Request("brake", NO, ()), Request("doors", NO, ())]
    return Api("vehicle", variables, tuple(calls), tuple(requests))


APIS = (_files(), _trading(), _travel(), _vehicle())
