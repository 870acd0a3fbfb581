"""Wilson's interval by bisection of its definition, in float64."""

from statistics import NormalDist


def wilson(num_successes, num_trials, level):
    z = NormalDist().inv_cdf((1 + level) / 2)
    share = num_successes / num_trials

    def holds(p):
        return num_trials * (share - p) ** 2 <= z**2 * p * (1 - p) + 1e-15

    def edge(inside, outside):
        if holds(outside):
            return outside
        for _ in range(200):
            middle = (inside + outside) / 2
            if holds(middle):
                inside = middle
            else:
                outside = middle
        return inside

    start = share if 0 < share < 1 else (num_successes + 0.5) / (num_trials + 1)
    if not holds(start):
        start = share
    return edge(start, 0.0), edge(start, 1.0)
