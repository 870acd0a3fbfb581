"""Group-relative advantages, one rollout at a time in float64; nothing from jerp."""

from tests.reference.segments import groups, mean, std


def difference(values, j, baseline, weights):
    if baseline == "mean":
        return values[j] - mean(values, weights)
    others = values[:j] + values[j + 1 :]
    if baseline == "leave_one_out":
        return values[j] - mean(others)
    ranked = sorted(values, reverse=True)
    return ranked[0] - ranked[1] if values[j] == ranked[0] else 0.0


def advantages(
    returns,
    group_id,
    mask,
    baseline="mean",
    scale="std",
    ddof=0,
    epsilon=1e-6,
    min_group_size=2,
    weight=None,
):
    """Advantages of all rows, and the set of dead groups."""
    result, dead = [0.0] * len(returns), set()
    batch = [float(r) for r, real in zip(returns, mask, strict=True) if real]
    for name, rows in groups(group_id, mask).items():
        values = [float(returns[i]) for i in rows]
        weights = None if weight is None else [float(weight[i]) for i in rows]
        if len(values) < min_group_size or len(set(values)) == 1:
            dead.add(name)
            continue
        found = [difference(values, j, baseline, weights) for j in range(len(values))]
        spread = {
            "std": lambda v=values, w=weights: std(v, ddof, w),
            "batch_std": lambda: std(batch, ddof),
            "max": lambda d=found: max(map(abs, d)),
        }
        for i, d in zip(rows, found, strict=True):
            result[i] = d if scale == "none" else d / (spread[scale]() + epsilon)
        if not any(found):
            dead.add(name)
    return result, dead
