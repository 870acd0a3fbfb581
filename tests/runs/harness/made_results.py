"""Results of a run with invented numbers, as `run_domain` returns them."""

import numpy as np

from jerp.runs.harness.arms import LEARNED_ARMS

METHODS = ("ordinary", "doubly_robust")
TOO_FEW = "the 8 episodes weigh as much as 2.0 of this policy's own: log more"


def plain(point, width=0.1, p=0.04):
    return {"point": point, "low": point - width, "high": point + width, "p": p}


def arm(values, base, seeds=2):
    values, base = np.asarray(values), np.asarray(base)
    return {
        "episodes": 2 * len(values),
        "invalid": 0,
        "outcomes": {"success": 2 * len(values)},
        "events": {"CheckBeforeSubmit": {"applicable": 4, "rate": 0.5}}
        | {"TestBeforeSubmit": {"applicable": 0, "rate": None}},
        **{k: plain(float(values.mean())) for k in ("q", "hms", "steps", "calls")},
        "tokens": plain(80.0),
        "q_by_task": values.tolist(),
        "hms_by_task": (values / 2).tolist(),
        "q_by_seed": [plain(float(values.mean()) + 0.01 * s) for s in range(seeds)],
        "difference": {
            k: plain(float((values - base).mean()), p=0.01) for k in ("q", "hms")
        },
    }


def prediction(point, refused=()):
    return {
        "effective_sample_size": 100.0,
        "methods": {
            m: {"point": None, "low": None, "high": None, "refused": TOO_FEW}
            if m in refused
            else plain(point) | {"refused": None}
            for m in METHODS
        },
    }


def support(level):
    return {
        "episodes": 8,
        "tasks": 4,
        "mean_return": 0.3,
        "best_return_per_task": 0.4 + 0.1 * level,
        "within_task_sd": 0.1 * level,
        "tasks_with_spread": 0.5,
        "effective_sample_share": 1 - 0.1 * level,
    }


def domain(base, gains, *, level=1, refused=()):
    """A domain whose arms gain `gains` over `base`, task by task."""
    base = np.asarray(base)
    arms = {"base": arm(base, base)}
    del arms["base"]["difference"]
    arms |= {name: arm(base + gain, base) for name, gain in gains.items()}
    return {
        "base_sequence": "observe > draft > submit",
        "tasks": {"train": 8, "held_out": len(base), "samples": 2},
        "mix": {"tasks": 12, "base_mean": 0.4, "spread_share": 0.9},
        "reach": None,
        "buffer": support(level)
        | {"base_return": 0.3, "returns": [0.0, 0.4, 1.0], "weights": [0.1, 1.0, 10.0]}
        | {"strata": {str(d): support(level + d) for d in range(2)}},
        "arms": arms,
        "contrasts": {"awr - bc": plain(0.1)},
        "gain_by_difficulty": {
            name: {"0": gains[name], "1": gains[name] + 0.1 * level}
            for name in LEARNED_ARMS
        },
        "detectable_q": 0.05,
        "sensitivity": [
            {"threshold": "coverage", "value": v, "default": 0.85}
            | {"change": {name: 0.1 * v for name in gains}}
            for v in (0.65, 0.85)
        ],
        "prediction": {
            name: [
                prediction(float(base.mean()) + gains[name], refused) for _ in range(2)
            ]
            for name in LEARNED_ARMS
        },
        "simulator": {
            "states": 7,
            "episodes": 1000,
            "mean_q_error": 0.02,
            "mean_gain_error": 0.01,
            "mean_steps_error": 0.3,
            "q_rank_correlation": None,
            "arms": {
                name: {
                    "q": 0.4,
                    "steps": 4.0,
                    "steps_distance": 0.1,
                    "unsupported": 0.0,
                }
                for name in arms
            },
        },
    }


def two_domains(refused=()):
    """One with two tasks and one with six; every learned arm gains in both."""
    gains = {"bc": 0.1, "awr": 0.2, "awr-step": 0.3}
    return {
        "coding": domain([0.0, 0.2], gains, level=1, refused=refused),
        "research": domain([0.4] * 6, {k: 2 * v for k, v in gains.items()}, level=3),
    }
