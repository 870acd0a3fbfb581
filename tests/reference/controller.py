"""A two-layer ReLU policy with a softmax over legal actions; nothing from jerp."""

import numpy as np


def probabilities(layers, feature, legal):
    """`layers` = (W1 [F, H], b1, W2 [H, A], b2); one row at a time, float64."""
    w1, b1, w2, b2 = (np.asarray(x, np.float64) for x in layers)
    out = np.zeros(legal.shape)
    for index in np.ndindex(legal.shape[:-1]):
        logits = np.maximum(feature[index] @ w1 + b1, 0) @ w2 + b2
        allowed = legal[index]
        e = np.exp(logits[allowed] - logits[allowed].max())
        out[index][allowed] = e / e.sum()
    return out
