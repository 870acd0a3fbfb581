"""Documents of pass surfaces as `results.json` has them, with made-up numbers."""


def band(point, width=0.1):
    """A band around nested lists; width None has no limits."""

    def moved(by):
        return [[None if by is None else value + by for value in row] for row in point]

    low, high = (None, None) if width is None else (-width, width)
    return {"point": point, "low": moved(low), "high": moved(high)}


def surface(ks, horizons, height):
    """Numbers that differ in every cell: height + k / 100 + T / 1000."""
    return [[height + k / 100 + t / 1000 for t in horizons] for k in ks]


def crossing(point, low, high, share):
    return {"point": point, "low": low, "high": high, "share": share}


def document(
    ks,
    horizons,
    *,
    names=(None,),
    labels=("base",),
    pairs=None,
    width=0.1,
    correct=None,
    gone=0,
):
    """A document of agents with these labels, a part a name.

    `correct` has for every agent each task's successes of 4 by the largest T.
    """
    if pairs is None:
        pairs = [(0, i) for i in range(1, len(labels))]
    if correct is None:
        correct = [[4, 1, 0]] * len(labels)
    tasks = list(range(len(correct[0])))
    agents = [
        {
            "label": label,
            "num_correct": [[0] * (len(horizons) - 1) + [c] for c in row],
            "num_samples": [[4] * len(horizons) for _ in row],
        }
        for label, row in zip(labels, correct, strict=True)
    ]
    numbers = [
        {
            "label": label,
            "surface": band(surface(ks, horizons, i / 10), width),
            "saturation_horizon": [horizons[-1]] * len(ks),
        }
        for i, label in enumerate(labels)
    ]
    comparisons = [
        {
            "first": a,
            "second": b,
            "first_label": labels[a],
            "second_label": labels[b],
            "difference": band(surface(ks, horizons, (b - a) / 10 - 0.2), width),
            "boundary": [{"horizon": t, "crossing_k": None} for t in horizons],
            "verdict": {
                "verdict": "not enough samples",
                "words": "not enough samples: about 90 questions needed",
                "gains": 3 + b,
                "losses": a,
                "seeds": None,
                "efficiency": {"point": 0.2, "low": 0.1, "high": 0.3},
            },
        }
        for a, b in pairs
    ]
    return {
        "ks": list(ks),
        "horizons": list(horizons),
        "tasks": [f"t{i}" for i in tasks],
        "agents": agents,
        "parts": [
            {
                "name": name,
                "num_tasks": len(tasks) + gone,
                "num_kept": len(tasks),
                "num_distinct": len(tasks),
                "tasks": tasks,
                "agents": numbers,
                "comparisons": comparisons,
            }
            for name in names
        ],
        "settings": {"unit": "steps", "by": "kind", "level": 0.95, "tolerance": 0.01},
    }
