"""What to know of a log before trusting what it says of a controller."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from jerp.runs.train_harness.buffer import Buffer, Source
from jerp.runs.train_harness.notes import source_notes
from jerp.trajectory import valid_episodes

__all__ = ["notes"]

KEPT = {"folder", "fingerprint", "episodes"}
LUCK = "luck there looks like a gain here: use others"


def notes(buffer: Buffer, training: Mapping[str, Any]) -> list[str]:
    """One sentence for each way in which the table may mislead.

    Args:
      buffer: the log.
      training: of the controller, as its folder keeps it.
    """
    found = _learned_notes(buffer.sources, training) + source_notes(buffer.sources)
    data = buffer.data
    valid = np.asarray(valid_episodes(data))
    returns = np.where(data.mask, data.reward, 0)[valid].sum(axis=1)
    if np.ptp(returns) == 0:
        found.append(
            f"every episode has the return {returns[0]:.3g}: the log cannot tell "
            "policies apart, and weighted estimates have intervals of width 0"
        )
    if (~valid).any():
        found.append(f"{(~valid).sum()} episodes left out: infrastructure failed")
    cut = np.asarray(data.truncated)[valid].any(axis=1).mean()
    if cut > 0:
        found.append(
            f"{cut:.0%} of the episodes ran out of budget; what they had earned until "
            "then is their return"
        )
    return found


def _learned_notes(sources: Sequence[Source], training: Mapping[str, Any]) -> list[str]:
    """Which folders hold what the controller learned from, or may hold it."""
    data = training.get("data")
    # Whoever makes a controller may keep there what he likes.
    data = data if isinstance(data, list) else []
    data = [one for one in data if isinstance(one, dict) and one.keys() >= KEPT]
    if not data:
        return [
            "the controller does not say which episodes it learned from; if from "
            f"these, {LUCK}"
        ]
    fingerprints = {one["fingerprint"] for one in data}
    episodes = {Path(one["folder"]).resolve(): one["episodes"] for one in data}
    found = []
    for source in sources:
        before = episodes.get(Path(source.folder).resolve())
        if source.fingerprint in fingerprints:
            found.append(
                f"{source.folder}: these are the episodes that the controller learned "
                f"from; {LUCK}"
            )
        elif before is not None:
            found.append(
                f"{source.folder}: the controller learned from {before} episodes that "
                f"were in a folder of this name; if they are among these "
                f"{source.episodes}, {LUCK}"
            )
    return found
