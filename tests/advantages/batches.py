"""Small batches of episodes, as the reference takes them and as arrays.

All tests lay them out in one shape and run one jitted function, so that each choice of
static keywords compiles once for all of them.
"""

import jax
import numpy as np

from jerp.advantages.gigpo import gigpo_advantages
from tests.optimised import optimised_jit

BATCH, STEPS = 32, 12
DEFAULTS = {
    "num_groups": 4,
    "discount": 0.95,
    "step_weight": 1.0,
    "episode_scale": "std",
    "step_scale": "std",
    "weighting": "trajectory",
    "ddof": 0,
    "epsilon": 1e-6,
}
STATIC = ("num_groups", "episode_scale", "step_scale", "weighting", "ddof")
_compiled = jax.jit(gigpo_advantages, static_argnames=STATIC)
_optimised = optimised_jit(gigpo_advantages, static_argnames=STATIC)


def gigpo(*batch, **keywords):
    """`gigpo_advantages`, jitted; every keyword is given, as another set retraces."""
    return _compiled(*batch, **{**DEFAULTS, **keywords})


def optimised_gigpo(*batch, **keywords):
    """`gigpo`, compiled as users' programs are."""
    return _optimised(*batch, **{**DEFAULTS, **keywords})


# (group, task, [(anchor, reward), ...]); both tasks use the same anchor numbers.
EPISODES = [
    (0, 5, [(0, 0.0), (1, 1.0)]),
    (0, 5, [(0, 0.0), (0, 0.0), (2, 0.0)]),
    (1, 6, [(0, 0.0), (1, 4.0)]),
    (1, 6, [(1, 2.0), (0, 0.0)]),
]

# Dense rewards, several groups of one task, loops, one episode without an answer.
DENSE = [
    (0, 3, [(0, 0.5), (1, -0.25), (0, 1.0), (0, 0.1)]),
    (0, 3, [(1, 0.3), (0, 0.2), (2, -1.5)]),
    (1, 3, [(0, 2.0)]),
    (1, 3, [(2, 0.0), (2, 0.7), (1, 0.9), (0, 0.8)]),
    (1, 3, []),
    (2, -8, [(0, 0.6), (1, 0.5)]),
    (2, -8, [(1, 0.0), (0, 0.25), (1, -0.75)]),
    (2, -8, [(0, 1.0), (3, 1.0)]),
]


def arrays(episodes, *, batch=BATCH, steps=STEPS, padding=0.0):
    """`(reward, mask, group_id, task_id, anchor)`, padded to `[batch, steps]`."""
    episodes = [*episodes, *[(0, 0, [])] * (batch - len(episodes))]
    length = np.array([len(e[2]) for e in episodes])
    mask = np.arange(steps) < length[:, None]
    reward = np.full(mask.shape, padding, np.float32)
    anchor = np.full(mask.shape, -1, np.int32)
    reward[mask] = [r for e in episodes for _, r in e[2]]
    anchor[mask] = [a for e in episodes for a, _ in e[2]]
    group_id, task_id = (np.array([e[i] for e in episodes], np.int32) for i in (0, 1))
    return reward, mask, group_id, task_id, anchor


def flat(rows):
    """All steps of a list of lists, one after the other."""
    return [x for row in rows for x in row]
