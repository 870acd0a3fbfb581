"""WebShop's score of a purchase, slowly: from the paper and the code's description."""

import re


def similar(first, second):
    """Likeness of two texts as sets of words, 0 to 100."""
    a, b = words(first), words(second)
    if not a or not b:
        return 0
    both = sorted(word for word in a if word in b)
    left = " ".join(both + sorted(word for word in a if word not in b))
    right = " ".join(both + sorted(word for word in b if word not in a))
    both = " ".join(both)
    return max(ratio(both, left), ratio(both, right), ratio(left, right))


def words(text):
    kept = "".join(c for c in text if not 128 <= ord(c) < 256)
    return set(re.findall(r"\w+", kept.lower()))


def ratio(a, b):
    if not a or not b:
        return 0
    return round(100 * 2 * matched(a, b) / (len(a) + len(b)))


def matched(a, b):
    """Letters in the longest common block, and on its left and right again."""
    best, at, to = 0, 0, 0
    for i in range(len(a)):
        for j in range(len(b)):
            size = 0
            while (
                i + size < len(a) and j + size < len(b) and a[i + size] == b[j + size]
            ):
                size += 1
            if size > best:
                best, at, to = size, i, j
    if not best:
        return 0
    return best + matched(a[:at], b[:to]) + matched(a[at + best :], b[to + best :])


def coloured(option, colours):
    for colour in sorted(colours):
        if isinstance(option, str):
            if option.find(colour) >= 0:
                return colour
        elif colour == option[0] or colour == option[1]:
            return colour
    return option if isinstance(option, str) else option[0] + " " + option[1]


def reward(bought, price, chosen, goal, limit, *, colours, nouns):
    """The score; products and goals are dicts of their fields."""
    hits = 0
    for attribute in goal["attributes"]:
        hit = False
        for own in bought["attributes"]:
            if similar(own, attribute) > 85:
                hit = True
        for text in (bought["title"], bought["description"], *bought["features"]):
            if attribute in text.lower():
                hit = True
        hits += hit
    for option in goal["options"]:
        hit = False
        for value in chosen:
            if similar(coloured(value, colours), coloured(option, colours)) > 85:
                hit = True
        hits += hit
    if price <= limit:
        hits += 1
    most = len(goal["attributes"]) + len(goal["options"]) + 1
    return hits / most * kind(bought, goal, nouns)


def kind(bought, goal, nouns):
    wanted = nouns(goal["title"])
    there = nouns(bought["title"])
    common = [word for word in sorted(set(wanted)) if word in there]
    share = len(common) / len(wanted) if wanted else 0.2
    same_query = bought["query"] == goal["query"]
    paths = [
        {part.strip() for part in thing["product_category"].split("›")}
        for thing in (bought, goal)
    ]
    result = 1.0
    if not (same_query or len(paths[0] & paths[1]) > 1 or share > 0.2):
        result = 0.5
    if share < 0.1:
        result = 0.1
    if share == 0:
        result = 0.0
    return result
