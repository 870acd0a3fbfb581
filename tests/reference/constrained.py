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


def representatives(words, alive):
    """Of the alive actions with one token, the first: a row of bools."""
    seen, found = set(), []
    for word, lives in zip(words, alive, strict=True):
        found.append(bool(lives) and word not in seen)
        if lives:
            seen.add(word)
    return found


def representatives_by_pairs(words, alive):
    """The same from all pairs at once, `[B, A]` arrays of NumPy or the like."""
    size = words.shape[1]
    earlier = [[other < one for other in range(size)] for one in range(size)]
    same = (words[:, :, None] == words[:, None, :]) & alive[:, None, :]
    return alive & ~(same & earlier).any(axis=-1)
