"""What a frozen language model does in the house when it is only asked."""

from __future__ import annotations

from functools import partial
from pathlib import Path
from typing import Any

import jax
import numpy as np

from experiments.joint_rules.language_model_config import ReaderSizes
from experiments.joint_rules.language_model_reader import (
    Reader,
    executor_of,
    held_out,
    told_of,
)
from jerp.bridge.executor import Sampling
from jerp.bridge.prompted_episodes import Prompted, play_prompted
from jerp.bridge.prompting import Prompting
from jerp.bridge.reflexion import play_reflexion
from jerp.bridge.store import ResponseStore, StoredExecutor
from jerp.storage.documents import write_json
from jerp.typing import Key

__all__ = ["prompted"]

PLAY = 103
"""Stream of random keys."""

Found = dict[str, Any]


def prompted(where: Path, key: Key, reader: Reader) -> Found:
    """Plays held-out tasks by prompting, with thoughts, and with notes after failures.

    Args:
      where: the part's folder; what the model said is kept there.
      key: of the run; not consumed.
      reader: whose model it is.
    """
    sizes, held = reader.sizes, held_out(key, reader)
    number = sizes.prompted * len(sizes.types)
    tasks = jax.tree.map(lambda x: x[:number], held.tasks)
    right, _ = told_of(key, reader, held)
    with_rules = {"working_set": right[:number], "rule_texts": reader.texts}
    store = ResponseStore(where / "store")
    world = {"env": reader.place.env, "env_params": tasks, "text": reader.text}
    world |= {"executor": StoredExecutor(executor_of(reader), store)}
    world |= {"num_steps": sizes.num_steps, "batch_size": number}
    # The same requests in each: a store answers the second time.
    stream = jax.random.fold_in(key, PLAY)
    play = partial(play_prompted, **world)
    plain, react = _promptings(sizes)
    try:
        found = {
            "plain": _answers(play(jax.random.clone(stream), prompting=plain)),
            "plain-rules": _answers(
                play(jax.random.clone(stream), prompting=plain, **with_rules)
            ),
            "react": _answers(play(jax.random.clone(stream), prompting=react)),
        }
        tried = play_reflexion(
            stream, prompting=react, num_trials=sizes.trials, **world
        )
    finally:
        store.close()
    notes = {
        "notes": sum(map(len, tried.notes)),
        "rejected": dict(tried.rejected),
        "said": [note for row in tried.notes for note in row],
    }
    write_json(where / "notes.json", notes)
    found["reflexion"] = _trials(tried.trials, tried.success)
    return {"played": found}


def _promptings(sizes: ReaderSizes) -> tuple[Prompting, Prompting]:
    """Without thoughts and with them; an action alone ends with its line."""
    short = Sampling(0.7, max_tokens=min(24, sizes.answer_tokens), stop=("\n",))
    long = Sampling(0.7, max_tokens=sizes.answer_tokens)
    return Prompting("plain", short), Prompting("react", long)


def _answers(played: Prompted) -> Found:
    """Outcome and steps `[N, 1]` of an episode a task, and answers that were none."""
    data = played.trajectory
    return {
        "outcome": np.asarray(data.outcome, np.int32)[:, None],
        "steps": np.asarray(data.mask).sum(axis=1, dtype=np.int32)[:, None],
        "unparsed": played.unparsed[:, None],
    }


def _trials(trials: tuple[Prompted, ...], success: np.ndarray) -> Found:
    """Of all trials together; solved is what one of them solved."""
    each = [_answers(trial) for trial in trials]
    found = {name: sum(t[name] for t in each) for name in ("steps", "unparsed")}
    return {**found, "solved": success[-1][:, None]}
