"""Adapters of a language model, cloned from drafts that are well formed, no more.

A third of the prompts have no skill; the others have one with what the executor made of
it, so that all parts of a prompt are seen before training.
"""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from random import Random
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from experiments.jobs.adapters import ADAPTERS, clone_adapters, read_adapters
from experiments.wer.language_model_reader import AT_ONCE, Reader
from experiments.wer.language_model_skills import Drafted, any_draft, any_revision
from jerp.models.lora import init_adapters
from jerp.models.policy import Acted
from jerp.runs.skills.draft_prompt import answer_text
from jerp.runs.skills.work import Evidence, RefinementState, executed
from jerp.skills.document import render_skill
from jerp.skills.reward import SkillReward
from jerp.storage.skill_runs import SkillRunFile, Trial
from jerp.storage.tensors import save_tree
from jerp.training.skill import draft_episodes
from jerp.trajectory import Trajectory
from jerp.typing import Key, Outcome

__all__ = ["cloned_adapters"]

RUNS = 2
"""Of a skill that is to be revised: evidence is what came of them."""

BATCH = 2
"""Demonstrations an update."""

ROUND = 32
"""Tokens: lengths are brought to multiples of it."""


class Shown(NamedTuple):
    """A demonstration.

    Attributes:
      state: what is to be drafted from.
      answer: what someone wrote who knew nothing.
    """

    state: RefinementState
    answer: Drafted


def cloned_adapters(where: Path, key: Key, reader: Reader) -> Any:
    """Adapters whose drafts parse.

    Args:
      where: the part's folder, in which they are kept; found there, they are read.
      key: consumed.
      reader: whose.
    """
    if (where / ADAPTERS).exists():
        return read_adapters(where)
    keys, lora = jax.random.split(key), reader.policy.lora
    assert lora is not None  # reader_policy gives one
    adapters = init_adapters(keys[0], reader.policy.config, lora)
    noted: dict[str, Any] = {"loss": [], "tokens": 0}
    if reader.sizes.demonstrations:
        data = _written(where, reader)
        adapters, loss = _clone(keys[1], reader, data, adapters)
        tokens = int(np.sum(np.asarray(data.token_mask)))
        noted = {"loss": loss, "tokens": tokens}
    save_tree(where / ADAPTERS, adapters, noted)
    return adapters


def _clone(
    key: Key, reader: Reader, data: Any, adapters: Any
) -> tuple[Any, list[float]]:
    sizes = reader.sizes
    # Demonstrations are short: what no token is in need not be computed.
    policy = replace(
        reader.policy,
        num_prompt_tokens=data.observation.shape[-1],
        num_draft_tokens=data.tokens.shape[-1],
        top_k=0,
    )
    return clone_adapters(
        *(key, policy, reader.decoder, adapters, data),
        epochs=sizes.epochs,
        batch_size=min(BATCH, sizes.demonstrations),
        learning_rate=sizes.cloning_rate,
    )


def _written(where: Path, reader: Reader) -> Trajectory:
    """All demonstrations as episodes."""
    shown = _demonstrations(where, reader)
    workplace = reader.workplace(reader.tasks.cloning)
    prompts = workplace.prompts([one.state for one in shown])
    size = reader.sizes.draft_tokens
    drafts = [reader.prompts.written(answer_text(*one.answer), size) for one in shown]
    tokens, mask = (np.stack(x) for x in zip(*drafts, strict=True))
    prompts, tokens = _trimmed(prompts), _trimmed(tokens)
    mask = mask[:, : tokens.shape[1]]
    one = jnp.ones(len(tokens))
    acted = Acted(
        action=jnp.zeros(len(tokens), jnp.int32),
        log_prob=one,
        tokens=jnp.asarray(tokens),
        token_log_prob=jnp.zeros(tokens.shape),
        token_mask=jnp.asarray(mask),
    )
    # Nothing was executed: that a draft counts is all that is said of it here.
    counted = SkillReward(*(one,) * 4, valid=one > 0)
    none = jnp.zeros((len(tokens), 1), jnp.int32)
    return draft_episodes(jnp.asarray(prompts), acted, none, counted)


def _demonstrations(where: Path, reader: Reader) -> list[Shown]:
    """One a task: every third is a first skill, the others revise one."""
    workplace, tasks = reader.workplace(reader.tasks.cloning), reader.tasks.cloning
    words = reader.place.words
    rngs = [Random(f"wer/{reader.seed}/{task.key}") for task in tasks]
    before = [
        None if i % 3 == 0 else any_draft(rng, words).skill
        for i, rng in enumerate(rngs)
    ]
    found = []
    name = workplace.fingerprint
    with SkillRunFile(where / "runs.jsonl", workplace=name) as runs:
        trials = [
            Trial(task.key, render_skill(skill), sample)
            for task, skill in zip(tasks, before, strict=True)
            if skill is not None
            for sample in range(RUNS)
        ]
        executed(workplace, runs, trials, at_once=AT_ONCE)
        for task, skill, rng in zip(tasks, before, rngs, strict=True):
            if skill is None:
                found.append(Shown(RefinementState(task.key), any_draft(rng, words)))
                continue
            text = render_skill(skill)
            told: dict[bool, Evidence | None] = {True: None, False: None}
            for sample in range(RUNS):
                trial = Trial(task.key, text, sample)
                run = runs[trial]
                if run.outcome != Outcome.INFRASTRUCTURE:
                    won = run.outcome == Outcome.SUCCESS
                    told[won] = Evidence(trial.name, run.evidence)
            state = RefinementState(task.key, text, told[True], told[False], 0)
            found.append(Shown(state, any_revision(rng, skill, words)))
    return found


def _trimmed(rows: np.ndarray) -> np.ndarray:
    """Without what is padding in all rows, up to a round number."""
    longest = int((rows != 0).sum(axis=1).max())
    return rows[:, : min(-(-longest // ROUND) * ROUND, rows.shape[1])]
