"""Small logs of harness episodes, written by hand or drawn."""

import numpy as np

from jerp.harness.actions import ACTIONS
from jerp.harness.state import NO_ACTION, encode_features
from jerp.trajectory import Trajectory
from jerp.typing import USAGE_KINDS, Outcome

STEP_COST, CALL_COST = 0.025, 0.25
"""Shares of the budget, as in the controlled domains."""

START = {"legal": ("observe", "draft")}
DRAFTED = {"legal": ("check", "submit"), "has_draft": 1.0}
RIGHT = DRAFTED | {"legal": ("submit",), "coverage": 1.0, "missing_share": 0.0}
WRONG = RIGHT | {"coverage": 0.5, "missing_share": 0.5}


def make_log(episodes, *, num_steps=10, max_steps=10):
    """A log of `(steps, score)`; a step is what was seen and the action taken.

    What was seen is a dict of `legal`, names of actions, and of those status features
    that are not as usual at the start. An episode without a submit was cut.
    """
    size = (len(episodes), num_steps)
    seen = np.full((len(episodes), num_steps + 1, 18), np.nan, np.float32)
    action = np.zeros(size, np.int32)
    legal = np.zeros((*size, len(ACTIONS)), bool)
    usage = np.zeros((*size, len(USAGE_KINDS)), np.float32)
    mask, ended, cut = (np.zeros(size, bool) for _ in range(3))
    for row, (steps, _) in enumerate(episodes):
        cost, last = 0.0, NO_ACTION
        for t, (state, name) in enumerate(steps):
            seen[row, t] = observed(state, t, cost, last, max_steps)
            legal[row, t, [ACTIONS.index(a) for a in state["legal"]]] = True
            last = action[row, t] = ACTIONS.index(name)
            calls = name in ("draft", "revise")
            usage[row, t, 0] = calls
            cost += CALL_COST if calls else STEP_COST
            mask[row, t] = True
        ended[row, t] = name == "submit"
        cut[row, t] = name != "submit"
        seen[row, -1] = observed(state, t + 1, cost, last, max_steps)
    score = np.asarray([score for _, score in episodes], np.float32)
    outcome = np.where(score == 1, Outcome.SUCCESS, Outcome.FAILURE)
    zeros = np.zeros(len(episodes), np.int32)
    return Trajectory(
        observation=seen[:, :-1],
        action=action,
        reward=np.where(ended, score[:, None], 0).astype(np.float32),
        terminated=ended,
        truncated=cut,
        mask=mask,
        anchor=np.zeros(size, np.int32),
        usage=usage,
        final_observation=seen[:, -1],
        task_id=zeros,
        group_id=zeros,
        seed=zeros,
        outcome=np.where(cut.any(1), Outcome.TRUNCATED, outcome).astype(np.int32),
        score=score,
        version=zeros,
        legal=legal,
        log_prob=np.zeros(size, np.float32),
    )


def observed(state, step, cost, last, max_steps):
    status = {"progress": step / max_steps, "remaining": 1 - step / max_steps}
    status |= {"cost_share": min(cost, 1.0), "support": -1.0, "missing_share": 1.0}
    status |= {k: v for k, v in state.items() if k != "legal"}
    names = ("progress", "has_draft", "draft_length", "coverage", "missing_share")
    names += ("error_share", "cost_share", "remaining", "support", "findings")
    values = np.asarray([status.get(name, 0.0) for name in names], np.float32)
    return encode_features(values, np.int32(last), xp=np)


def drawn_log(num_episodes, seed=0):
    """Random legal play of a little world with hidden quality, and its difficulties.

    Up to two observes help the draft, of which a check finds out; a wrong one may be
    revised once. Checks err, so that scores are not what was seen, and long drafts are
    better ones. A harder difficulty needs more facts.
    """
    rng = np.random.default_rng(seed)
    difficulty = rng.integers(0, 3, num_episodes).astype(np.int32)
    episodes = [drawn_episode(rng, level) for level in difficulty]
    return make_log(episodes, num_steps=12, max_steps=12), difficulty


def drawn_episode(rng, level):
    steps, facts, right, checked, revised, length = [], 0, None, None, False, 0.0
    while True:
        legal = ["observe"] * (facts < 2) + ["draft"] * (right is None)
        if right is not None:
            legal += ["check"] * (checked is None) + ["submit"]
            legal += ["revise"] * (checked is False and not revised)
        state = {"legal": tuple(legal), "findings": facts / 10, "draft_length": length}
        state["has_draft"] = float(right is not None)
        if checked is not None:
            state |= {"coverage": (0.5, 1.0)[checked], "support": float(checked)}
            state["missing_share"] = (0.5, 0.0)[checked]
        action = str(rng.choice(legal))
        steps.append((state, action))
        if action == "observe":
            facts += 1
        elif action == "check":
            checked = bool(right if rng.random() < 0.9 else not right)
        elif action == "submit":
            return steps, 1.0 if right else 0.25 * (rng.random() < 0.5)
        else:
            length = (0.1, 0.6)[rng.integers(2)]
            chance = (0.2 + 0.3 * facts + 0.2 * (length > 0.5)) / (1 + level / 2)
            right, checked, revised = rng.random() < chance, None, action == "revise"


def submit(*path, score):
    """An episode that ends in a submit: states and actions in turn, then its score."""
    return list(zip(path[::2], path[1::2], strict=True)), score


HAND_WRITTEN = (
    *[submit(START, "draft", DRAFTED, "submit", score=score) for score in (1.0, 0.2)],
    *[
        submit(START, "draft", DRAFTED, "check", seen, "submit", score=score)
        for seen, score in ((RIGHT, 1.0), (RIGHT, 0.8), (WRONG, 0.0), (WRONG, 0.2))
    ],
    *[
        submit(
            *(START, "observe") * n,
            START,
            "draft",
            DRAFTED,
            "check",
            RIGHT,
            "submit",
            score=score,
        )
        for n, score in ((1, 0.6), (2, 0.4))
    ],
)
"""Two drafts were submitted at once, with mean score .6. Six were checked: four were
right and then scored .7 in the mean, two wrong and scored .1; a check is worth .5."""
