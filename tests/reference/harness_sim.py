"""Exact values of policies on the simulated Harness MDP; imports nothing from jerp.

What a controller knows is an information state: counts, flags, and the probability that
the draft is right given what was found. Values are computed by recursion over it, so
they are exact, and the optimum is over all policies that see only what there is to see.
"""

from functools import cache
from typing import NamedTuple

OBSERVE, RETRIEVE, CALL_TOOL, DRAFT, CHECK, REVISE, SUBMIT = range(7)


class Info(NamedTuple):
    step: int = 0
    observed: bool = False
    retrieved: int = 0
    findings: int = 0
    belief: float | None = None
    tested: bool = False
    checked: bool = False
    failed: bool = False
    revisions: int = 0


def legal_actions(s):
    has_draft = s.belief is not None
    return [
        action
        for action, allowed in (
            (OBSERVE, not s.observed),
            (RETRIEVE, s.retrieved < 2),
            (CALL_TOOL, has_draft and not s.tested),
            (DRAFT, not has_draft),
            (CHECK, has_draft and not s.checked),
            (REVISE, s.failed and s.revisions < 2),
            (SUBMIT, has_draft),
        )
        if allowed
    ]


def outcomes(s, action, task):
    """`[(probability, next information state)]` of an action other than submit."""
    s = s._replace(step=s.step + 1)
    if action in (OBSERVE, RETRIEVE):
        after = (
            s._replace(observed=True)
            if action == OBSERVE
            else s._replace(retrieved=s.retrieved + 1)
        )
        found = after._replace(findings=after.findings + 1)
        return [(task["find"], found), (1 - task["find"], after)]
    if action in (DRAFT, REVISE):
        skill = task["draft" if action == DRAFT else "fix"]
        belief = min(skill + task["gain"] * s.findings, 1.0)
        fresh = s._replace(belief=belief, tested=False, checked=False, failed=False)
        revised = int(action == REVISE)
        return [(1.0, fresh._replace(revisions=fresh.revisions + revised))]
    power = task["detect"] if action == CALL_TOOL else 1.0
    s = s._replace(**{"tested" if action == CALL_TOOL else "checked": True})
    alarm = (1 - s.belief) * power
    branches = []
    if alarm > 0:
        branches.append((alarm, s._replace(belief=0.0, failed=True)))
    if alarm < 1:
        branches.append((1 - alarm, s._replace(belief=s.belief / (1 - alarm))))
    return branches


def value(task, choose, max_steps=10):
    """Expected score from the start.

    `choose(information state, {action: value}) -> value` is the policy.
    """

    @cache
    def of(s):
        if s.step >= max_steps:
            return 0.0
        values = {}
        for action in legal_actions(s):
            if action == SUBMIT:
                quality = s.belief + (1 - s.belief) * task["flawed_score"]
                values[action] = quality * (1 - task["step_price"] * (s.step + 1))
            else:
                values[action] = sum(
                    p * of(after) for p, after in outcomes(s, action, task)
                )
        return choose(s, values)

    return of(Info())


def optimal(task, max_steps=10):
    return value(task, lambda s, values: max(values.values()), max_steps)


def uniform(task, max_steps=10):
    return value(task, lambda s, values: sum(values.values()) / len(values), max_steps)


def first_choices(task, max_steps=10):
    """`{information state: best action}` of the optimal policy."""
    best = {}

    def choose(s, values):
        best[s] = max(values, key=values.get)
        return values[best[s]]

    value(task, choose, max_steps)
    return best
