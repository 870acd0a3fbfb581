"""Whether repeated samples of one prompt differ.

A cache that ignores the sample index, or a sampler that ignores its seed, shows here
and not as a suspiciously narrow interval.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

__all__ = ["Diversity", "sample_diversity"]


@dataclass(frozen=True)
class Diversity:
    """Whether repeated samples of one prompt differ, at temperature > 0.

    Attributes:
      prompts: prompts with at least two sample indices.
      identical: of these, how many have one distinct text only; all of them means that
        the sample index changes nothing.
      distinct_share: distinct texts over samples, averaged over prompts; 1 without any.
    """

    prompts: int
    identical: int
    distinct_share: float


def sample_diversity(records: Iterable[Mapping[str, Any]]) -> Diversity:
    """Diversity of stored completions; greedy requests do not count."""
    texts: dict[str, dict[int, str]] = {}
    for record in records:
        request = dict(record["request"])
        if request["sampling"]["temperature"] > 0:
            sample = request.pop("sample_index")
            texts.setdefault(repr(request), {})[sample] = record["completion"]["text"]
    repeated = [samples for samples in texts.values() if len(samples) > 1]
    distinct = [len(set(samples.values())) for samples in repeated]
    shares = [d / len(s) for d, s in zip(distinct, repeated, strict=True)]
    return Diversity(
        prompts=len(repeated),
        identical=sum(d == 1 for d in distinct),
        distinct_share=sum(shares) / len(shares) if shares else 1.0,
    )
