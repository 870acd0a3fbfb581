"""Baselines of the Harness MDP with lists and loops; imports nothing from jerp."""

OBSERVE, RETRIEVE, CALL_TOOL, DRAFT, CHECK, REVISE, SUBMIT = range(7)


def base_action(sequence, step, legal):
    """The planned action, the next legal one in the cycle, or the first legal one."""
    start = step if step < len(sequence) else len(sequence) - 1
    for action in list(sequence[start:]) + list(sequence[:start]):
        if legal[action]:
            return action
    for action in range(7):
        if legal[action]:
            return action
    return 0


def perturbed_probabilities(sequence, step, legal, epsilon):
    """Base action with 1 - epsilon, and epsilon shared by all that is legal."""
    probability = [0.0] * 7
    probability[base_action(sequence, step, legal)] += 1 - epsilon
    allowed = [action for action in range(7) if legal[action]]
    for action in allowed:
        probability[action] += epsilon / len(allowed)
    return probability


def conditional_action(sequence, state, legal):
    """`state`: step, max_steps, cost_share, has_draft, support, missing_share, last."""
    base = base_action(sequence, state["step"], legal)
    steps_left = state["max_steps"] - state["step"]
    if steps_left < 2 or state["cost_share"] >= 1:
        return base
    if legal[REVISE]:
        if state["last"] == CHECK and state["missing_share"] > 0:
            return REVISE
        if state["last"] == CALL_TOOL and 0 <= state["support"] < 1:
            return REVISE
    if base == SUBMIT and legal[CHECK] and state["has_draft"] and state["support"] < 1:
        return CHECK
    return base


def drafting_episode(choose, *, max_steps, failing_checks):
    """Actions of one episode in a small world: one draft, checks that fail at first.

    `choose(state, legal) -> action`; observe and retrieve work once, a draft once, a
    check once a draft, a revision only after a failed check.
    """
    actions, checks = [], 0
    done = {"observed": False, "retrieved": False, "drafted": False}
    checked = failed = False
    last = 7
    for step in range(max_steps):
        legal = [False] * 7
        legal[OBSERVE] = not done["observed"]
        legal[RETRIEVE] = not done["retrieved"]
        legal[DRAFT] = not done["drafted"]
        legal[CHECK] = done["drafted"] and not checked
        legal[REVISE] = failed
        legal[SUBMIT] = done["drafted"]
        state = {
            "step": step,
            "max_steps": max_steps,
            "cost_share": 0.0,
            "has_draft": done["drafted"],
            "support": -1.0,
            "missing_share": 0.5 if failed or not checked else 0.0,
            "last": last,
        }
        last = choose(state, legal)
        actions.append(last)
        if last == OBSERVE:
            done["observed"] = True
        elif last == RETRIEVE:
            done["retrieved"] = True
        elif last == DRAFT:
            done["drafted"] = True
        elif last == CHECK:
            checks += 1
            checked, failed = True, checks <= failing_checks
        elif last == REVISE:
            checked = failed = False
        elif last == SUBMIT:
            break
    return actions
