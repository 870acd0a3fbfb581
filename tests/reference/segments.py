"""Groups as a dict of rows, in float64; imports nothing from jerp."""

import math


def groups(group_id, mask):
    """Rows of each group, in order of appearance."""
    rows = {}
    for i, (name, real) in enumerate(zip(group_id, mask, strict=True)):
        if real:
            rows.setdefault(int(name), []).append(i)
    return rows


def mean(x, weight=None):
    weight = [1.0] * len(x) if weight is None else weight
    return math.fsum(float(w) * float(v) for w, v in zip(weight, x, strict=True)) / (
        math.fsum(map(float, weight))
    )


def std(x, ddof=0, weight=None):
    weight = [1.0] * len(x) if weight is None else weight
    freedom = math.fsum(map(float, weight)) - ddof
    if freedom <= 0:
        return 0.0
    center = mean(x, weight)
    squares = math.fsum(
        float(w) * (float(v) - center) ** 2 for w, v in zip(weight, x, strict=True)
    )
    return math.sqrt(squares / freedom)


def stats(x, group_id, mask, ddof=0, weight=None):
    """Group -> (mean, std, rows, all equal)."""
    found = {}
    for name, rows in groups(group_id, mask).items():
        values = [x[i] for i in rows]
        weights = None if weight is None else [weight[i] for i in rows]
        found[name] = (
            mean(values, weights),
            std(values, ddof, weights),
            len(rows),
            len(set(map(float, values))) == 1,
        )
    return found
