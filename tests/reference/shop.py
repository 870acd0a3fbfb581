"""A slow shop: sets, lists and tuples; imports nothing from jerp.

An item is a dict of category, attributes (a set), sizes and colours (sets) and price;
a goal one of category, attributes, size and colour (None for any) and limit. A state is
a tuple: ("search",), ("results", query, page), or ("item" or "bought", query, page,
slot, size, colour).
"""

from collections import deque

QUERIES = 6
SIZES, COLOURS = 5, 6


def type_factor(wanted, category):
    if wanted == category:
        return 1.0
    apart = abs(wanted // 4 - category // 4)
    return {0: 0.5, 1: 0.1, 5: 0.1}.get(apart, 0.0)


def reward(goal, item, size, colour):
    matched = len(goal["attributes"] & item["attributes"])
    wanted = len(goal["attributes"])
    for asked, chosen in ((goal["size"], size), (goal["colour"], colour)):
        if asked is not None:
            wanted += 1
            matched += asked == chosen
    matched += item["price"] <= goal["limit"]
    return type_factor(goal["category"], item["category"]) * matched / (wanted + 1)


def query(goal, number):
    """The category (or None) and the attributes asked for; None if no query."""
    attributes = sorted(goal["attributes"])
    if number == 0:
        return goal["category"], set()
    if number < 4:
        if number > len(attributes):
            return None
        return goal["category"], {attributes[number - 1]}
    return goal["category"] if number == 5 else None, set(attributes)


def search(catalogue, goal, number):
    """Positions of all items, best first."""
    category, attributes = query(goal, number)

    def order(position):
        item = catalogue[position]
        score = (item["category"] == category) + len(attributes & item["attributes"])
        return -score, position

    return sorted(range(len(catalogue)), key=order)


class Shop:
    """`shelves[query][page][slot]` is an item, or `shelves[query]` None."""

    def __init__(self, goal, shelves):
        self.goal, self.shelves = goal, shelves
        self.pages, self.slots = len(shelves[0]), len(shelves[0][0])

    def item(self, state):
        return self.shelves[state[1]][state[2]][state[3]]

    def moves(self, state):
        """The state after each action that can be taken."""
        start = QUERIES + 3
        if state[0] == "search":
            found = [q for q in range(QUERIES) if self.shelves[q]]
            return {q: ("results", q, 0) for q in found}
        if state[0] == "results":
            _, q, page = state
            moves = {QUERIES: ("search",)}
            if page > 0:
                moves[QUERIES + 1] = ("results", q, page - 1)
            if page + 1 < self.pages:
                moves[QUERIES + 2] = ("results", q, page + 1)
            for slot in range(self.slots):
                moves[start + slot] = ("item", q, page, slot, None, None)
            return moves
        if state[0] == "bought":
            return {}
        _, q, page, slot, size, colour = state
        item = self.item(state)
        moves = {QUERIES: ("search",), QUERIES + 1: ("results", q, page)}
        start += self.slots
        for value in item["sizes"]:
            moves[start + value] = ("item", q, page, slot, value, colour)
        for value in item["colours"]:
            moves[start + SIZES + value] = ("item", q, page, slot, size, value)
        moves[start + SIZES + COLOURS] = ("bought", *state[1:])
        return moves

    def worth(self, state):
        if state[0] != "bought":
            return 0.0
        return reward(self.goal, self.item(state), *state[4:])

    def states(self):
        """All that can be reached, and the least steps from each to reward 1."""
        found, waiting, before = {("search",)}, deque([("search",)]), {}
        while waiting:
            state = waiting.popleft()
            for after in self.moves(state).values():
                before.setdefault(after, []).append(state)
                if after not in found:
                    found.add(after)
                    waiting.append(after)
        steps = {s: 0 for s in found if self.worth(s) == 1}
        waiting = deque(steps)
        while waiting:
            after = waiting.popleft()
            for state in before.get(after, ()):
                if state not in steps:
                    steps[state] = steps[after] + 1
                    waiting.append(state)
        return sorted(found, key=str), steps
