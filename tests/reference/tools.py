"""The tool world's calls, one at a time on a dict, from the definitions alone."""


def run_call(state, call):
    """`(state, error, shown)`: error is None if it worked, shown None if it did not."""
    for need in call.needs:
        if state[need.variable] not in need.values:
            return state, need.error, None
    after = dict(state)
    for effect in call.effects:
        after[effect.variable] = effect.keep * state[effect.variable] + effect.add
    return after, None, after[call.shown]
