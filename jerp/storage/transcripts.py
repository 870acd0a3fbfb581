"""The text of episodes as newline-delimited JSON: one object a step.

A line is `{"episode": row, "step": t, ...}`, with `row` counted within its shard. Only
a newline ends a line, and text is escaped to ASCII, so that U+2028, NEL and lone
surrogates in a model's output survive this reader and everybody else's.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from jerp.errors import StorageError, TrajectoryError

__all__ = ["decode_transcripts", "encode_transcripts"]

JOIN = ("episode", "step")


def encode_transcripts(
    transcripts: Sequence[Sequence[Mapping[str, Any]]], *, num_steps: int
) -> bytes:
    """The lines of `transcripts`, a sequence of step dicts for each episode.

    Raises:
      TrajectoryError: an episode has over `num_steps` steps, or a step is not JSON-able
        or uses a key of the join.
    """
    lines = []
    for episode, steps in enumerate(transcripts):
        if len(steps) > num_steps:
            raise TrajectoryError(
                f"transcripts[{episode}]",
                f"at most T={num_steps} steps",
                f"{len(steps)}",
            )
        for number, entry in enumerate(steps):
            field = f"transcripts[{episode}][{number}]"
            taken = [key for key in JOIN if key in entry]
            if taken:
                raise TrajectoryError(
                    field, f"keys other than {JOIN}, which join", f"{taken}"
                )
            line = {"episode": episode, "step": number, **entry}
            try:
                lines.append(json.dumps(line, allow_nan=False) + "\n")
            except (TypeError, ValueError) as error:
                raise TrajectoryError(field, "a JSON-able dict", f"{error}") from error
    return "".join(lines).encode("ascii")


def decode_transcripts(
    path: Path, data: bytes, *, num_episodes: int
) -> list[list[dict[str, Any]]]:
    """The step dicts of each episode; `path` is named in errors.

    Raises:
      StorageError: a line is not JSON, or belongs to no episode.
    """
    episodes: list[list[dict[str, Any]]] = [[] for _ in range(num_episodes)]
    for number, line in enumerate(data.split(b"\n")[:-1], start=1):
        try:
            entry = json.loads(line)
            episode, step = (entry.pop(key) for key in JOIN)
            if step != len(episodes[episode]):
                raise IndexError(f"step {step} out of order")
        except (ValueError, KeyError, IndexError, AttributeError, TypeError) as error:
            raise StorageError(
                f"{path}: line {number} is not a step ({error})"
            ) from error
        episodes[episode].append(entry)
    return episodes
