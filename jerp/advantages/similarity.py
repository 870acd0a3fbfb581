"""Clusters of similar texts that do not depend on the order in which texts come.

On the host. A cluster is a connected component: of the graph whose edges are the pairs
of texts that are similar enough. Putting each text into the first cluster that fits is
cheaper, but then the clusters change with the order.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from difflib import SequenceMatcher

import numpy as np

from jerp.ops.checks import check_values

__all__ = ["similar_texts"]


def similar_texts(texts: Iterable[str], *, threshold: float) -> dict[str, str]:
    """Hands each distinct text the first text, in alphabetical order, of its cluster.

        a ~ b  iff  2 M(a, b) / (|a| + |b|) >= threshold,  a < b

    with `M` the characters in matching blocks as `difflib.SequenceMatcher` finds them,
    without its heuristic for texts of 200 characters and more, under which no common
    letter would start a match. Clusters are the components of `~`. All pairs of
    distinct texts are looked at, most of them only to bound their similarity.

    Args:
      texts: in any order, repeated or not.
      threshold: in (0, 1).

    Returns:
      A representative of each distinct text; the same iff in one cluster.

    Example:
      >>> similar_texts(["a red key", "a red hat", "north"], threshold=0.6)
      {'a red hat': 'a red hat', 'a red key': 'a red hat', 'north': 'north'}
    """
    check_values("similarity", threshold, lambda v: (v > 0) & (v < 1), "in (0, 1)")
    ordered = sorted(set(texts))
    bound = _upper_bounds(ordered)
    parent = {text: text for text in ordered}
    matcher = SequenceMatcher(autojunk=False)
    for number, second in enumerate(ordered):
        matcher.set_seq2(second)
        for i in np.flatnonzero(bound(number) >= threshold):
            roots = _root(parent, ordered[i]), _root(parent, second)
            if roots[0] == roots[1]:
                continue
            matcher.set_seq1(ordered[i])
            if matcher.ratio() >= threshold:
                parent[max(roots)] = min(roots)
    return {text: _root(parent, text) for text in ordered}


def _upper_bounds(texts: list[str]) -> Callable[[int], np.ndarray]:
    """For text i, how similar it can at most be to each text before it, `[i]`.

    Characters that two texts have in common, wherever they stand: what
    `SequenceMatcher.quick_ratio` counts, for all pairs at once.
    """
    alphabet = sorted(set("".join(texts)))
    counts = np.array([[t.count(c) for c in alphabet] for t in texts], np.int32)
    counts = counts.reshape(len(texts), len(alphabet))
    length = counts.sum(axis=1)

    def bound(i: int) -> np.ndarray:
        common = np.minimum(counts[i], counts[:i]).sum(axis=1)
        return 2 * common / (length[i] + length[:i])

    return bound


def _root(parent: dict[str, str], text: str) -> str:
    while parent[text] != text:
        parent[text] = text = parent[parent[text]]
    return text
