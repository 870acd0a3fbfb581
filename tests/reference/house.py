"""A household played with words, dicts and sets, importing nothing of jerp."""

HALL, HAND = "hall", "hand"
OPENABLE = {"fridge", "microwave", "cabinet", "drawer", "dresser"}
COLD_OR_HOT = {"apple", "mug", "plate", "potato", "bread", "tomato", "bowl"}
WASHABLE = COLD_OR_HOT - {"bread"} | {"spoon", "fork", "towel"}
EFFECTS = {"fridge": "cold", "microwave": "hot", "sink": "clean"}
ASKED = {"clean": "clean", "heat": "hot", "cool": "cold"}


class Home:
    """One episode: `things` are [kind, place, set of treatments]."""

    def __init__(self, task, goal_kind, goal_place, places, things):
        self.task, self.goal_kind, self.goal_place = task, goal_kind, goal_place
        self.places = places
        self.things = [[kind, place, set()] for kind, place in things]
        self.at, self.opened, self.done = HALL, set(), False

    def held(self):
        return next((t for t in self.things if t[1] == HAND), None)

    def is_open(self, place):
        return place[0] not in OPENABLE or place in self.opened

    def seen(self):
        if self.at == HALL or not self.is_open(self.at):
            return []
        return [t for t in self.things if t[1] == self.at]

    def options(self):
        if self.done:
            return set()
        found = {("go", place) for place in self.places if place != self.at}
        held, here = self.held(), self.at
        if here == HALL:
            return found
        if here[0] in OPENABLE:
            found.add(("close",) if self.is_open(here) else ("open",))
        if held is None:
            return found | {("take", t[0]) for t in self.seen()}
        if self.is_open(here):
            found.add(("put",))
            effect = EFFECTS.get(here[0])
            able = WASHABLE if effect == "clean" else COLD_OR_HOT
            if here[0] == "desk" or (effect and held[0] in able):
                found.add(("use",))
        return found

    def play(self, option):
        """Plays an option; the reward."""
        if option not in self.options():
            return 0
        verb, held = option[0], self.held()
        if verb == "go":
            self.at = option[1]
        elif verb == "take":
            next(t for t in self.seen() if t[0] == option[1])[1] = HAND
        elif verb == "put":
            held[1] = self.at
            self.done = self.task != "look" and self.fulfilled()
        elif verb == "open":
            self.opened.add(self.at)
        elif verb == "close":
            self.opened.remove(self.at)
        elif self.at[0] == "desk":
            self.done = self.task == "look" and held[0] == self.goal_kind
        else:
            effect = EFFECTS[self.at[0]]
            if effect != "clean":
                held[2] -= {"hot", "cold"}
            held[2].add(effect)
        return int(self.done)

    def fulfilled(self):
        asked = {ASKED[self.task]} if self.task in ASKED else set()
        good = [
            t
            for t in self.things
            if t[0] == self.goal_kind and t[1] == self.at and asked <= t[2]
        ]
        wanted = 2 if self.task == "pick_two" else 1
        return self.at[0] == self.goal_place and len(good) >= wanted

    def score(self):
        if self.done:
            return 1.0
        asked, holds = ASKED.get(self.task), 0
        for kind, place, treated in self.things:
            if kind == self.goal_kind:
                there = place != HAND and place[0] == self.goal_place
                there = there and self.task != "look"
                holds += (place == HAND or there) + there + (asked in treated)
        of = 4 if self.task == "pick_two" else 3 if asked else 2
        return min(holds, of - 1) / of
