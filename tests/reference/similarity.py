"""Similarity and clusters of texts by their definitions; imports nothing from jerp."""

import itertools


def link(one, two):
    """`2 M / (|a| + |b|)`, with M by the definition: longest block, then both sides."""

    def matches(a, b):
        blocks = [
            (-size, i, j)
            for i in range(len(a))
            for j in range(len(b))
            for size in [common_prefix(a[i:], b[j:])]
            if size
        ]
        if not blocks:
            return 0
        size, i, j = min(blocks)
        left, right = matches(a[:i], b[:j]), matches(a[i - size :], b[j - size :])
        return left + right - size

    one, two = sorted((one, two))
    return 2 * matches(one, two) / (len(one) + len(two))


def common_prefix(a, b):
    equal = itertools.takewhile(
        lambda pair: pair[0] == pair[1], zip(a, b, strict=False)
    )
    return len(list(equal))


def components(texts, threshold):
    """By the definition: widen the cluster of a text until nothing is similar."""
    left, found = set(texts), []
    while left:
        cluster = {min(left)}
        while more := {
            t
            for t in left - cluster
            for member in cluster
            if link(t, member) >= threshold
        }:
            cluster |= more
        found.append(cluster)
        left -= cluster
    return sorted(found, key=min)
