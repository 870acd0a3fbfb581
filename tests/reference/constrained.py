"""Writing admissible actions by loops over strings; imports nothing of jerp."""

import math


def next_tokens(written, actions):
    """Tokens by which some action goes on after `written`; actions are tuples."""
    size = len(written)
    return {a[size] for a in actions if tuple(a[:size]) == tuple(written)}


def log_probs(logits, tokens, actions, end):
    """`(log-probability, entropy, generated)` of each token, row by row of `logits`."""
    out, ended = [], False
    for j, token in enumerate(tokens):
        options = sorted(next_tokens(tokens[:j], actions))
        weights = [math.exp(float(logits[j][c])) for c in options]
        p = dict(zip(options, [w / sum(weights) for w in weights], strict=True))
        padding = ended or (token == end and options == [end])
        if padding:
            out.append((0.0, 0.0, False))
        else:
            entropy = -sum(x * math.log(x) for x in p.values())
            out.append((math.log(p[token]), entropy, True))
        ended = ended or token == end
    return out
