"""A small table world, its episodes as arrays, and two policies: for tests of OPE."""

import numpy as np

from tests.reference.ope import TableWorld, all_episodes

HORIZON, STATES, ACTIONS = 3, 3, 2
# Rewards in quarters and chances in eighths: every episode is a multiple of 2^-18.
WORLD = TableWorld(
    start=np.array([0.5, 0.5, 0.0]),
    move=np.array(
        [
            [[0.0, 0.5, 0.25, 0.25], [0.25, 0.0, 0.5, 0.25]],
            [[0.5, 0.0, 0.0, 0.5], [0.0, 0.25, 0.25, 0.5]],
            [[0.0, 0.0, 0.0, 1.0], [0.0, 0.5, 0.0, 0.5]],
        ]
    ),
    reward=np.array([[0.0, 0.25], [0.5, 0.0], [1.0, 0.75]]),
    horizon=HORIZON,
)
BEHAVIOUR = np.array([[0.5, 0.5], [0.25, 0.75], [0.5, 0.5]])
TARGET = np.array([[0.75, 0.25], [0.5, 0.5], [0.125, 0.875]])
EVERY = all_episodes(WORLD, BEHAVIOUR)
# Every episode as often as its chance says, to the nearest of 1,500; of these as many
# as there are in EVERY: all tests have arrays of one shape, and programs in common.
MANY = [e for chance, e in EVERY for _ in range(round(1500 * chance))]
SOME = [MANY[i] for i in np.linspace(0, len(MANY) - 1, len(EVERY)).astype(int)]


def stepped(episodes, policy=TARGET):
    """The same episodes with states that tell the step, and the policy there."""
    told = [[(3 * t + s, a, r) for t, (s, a, r) in enumerate(e)] for e in episodes]
    return told, np.tile(policy, (HORIZON, 1))


def arrays(episodes, target=TARGET, behaviour=BEHAVIOUR, poison=np.nan):
    """Features that are one-hot of state and step, and what estimators take."""
    number = len(episodes)
    mask = np.zeros((number, HORIZON), bool)
    features = np.full((number, HORIZON, STATES * HORIZON), poison, np.float32)
    action = np.full((number, HORIZON), 7, np.int32)
    reward, log_prob = (np.full((number, HORIZON), poison, np.float32) for _ in "rl")
    log_probs = np.full((number, HORIZON, ACTIONS), poison, np.float32)
    with np.errstate(divide="ignore"):
        log_target = np.log(target)
    for e, episode in enumerate(episodes):
        for t, (s, a, r) in enumerate(episode):
            mask[e, t], action[e, t], reward[e, t] = True, a, r
            features[e, t] = np.eye(STATES * HORIZON)[STATES * t + s]
            log_prob[e, t] = np.log(behaviour[s, a])
            log_probs[e, t] = log_target[s]
    index = np.where(mask, action, 0)[..., None]
    return {
        "features": features,
        "action": action,
        "reward": reward,
        "log_prob": log_prob,
        "target_log_prob": np.take_along_axis(log_probs, index, -1)[..., 0],
        "target_log_probs": log_probs,
        "mask": mask,
    }
