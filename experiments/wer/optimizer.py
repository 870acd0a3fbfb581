"""The optimizer of skills: a small decoder, cloned so that its drafts can be read.

What it is cloned from is well formed and knows nothing: a draft keeps some lines of the
skill as it is, says of some errors in its evidence what was called after them, whether
that helped or not, and of others any call of the domain. What helps it has to learn
from what its drafts lead to.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import partial
from itertools import pairwise
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from experiments.wer.config import OptimizerSizes
from experiments.wer.executor import Runs, execute
from experiments.wer.optimizer_words import MAX_REASONING, OptimizerWords, Word
from experiments.wer.places import FIRST_ERROR, NUM_LINES, Place
from experiments.wer.skill_lines import working_sets
from jerp.models.decoder import DecoderConfig
from jerp.models.draft_policy import DraftPolicy
from jerp.models.policy import Acted
from jerp.skills.reward import SkillReward
from jerp.training.cloning import clone_policy
from jerp.training.skill import draft_episodes
from jerp.typing import Key

__all__ = ["clone_optimizer", "optimizer_policy", "seen_lines"]

BATCH, LEARNING_RATE = 16, 2e-3
"""Of cloning: drafts an update. To copy from the prompt is learned abruptly, after some
2,000 updates, and stopping before is a cliff."""

HIDDEN, LAYERS, HEADS = 64, 2, 4

DRAWS = 64
"""Random numbers of a demonstration."""


def optimizer_policy(words: OptimizerWords) -> DraftPolicy:
    """The decoder that writes drafts in some words."""
    prompt, draft = words.num_prompt_tokens, words.num_draft_tokens
    config = DecoderConfig(
        vocab_size=words.size,
        hidden_size=HIDDEN,
        intermediate_size=4 * HIDDEN,
        num_layers=LAYERS,
        num_heads=HEADS,
        num_kv_heads=HEADS,
        head_dim=HIDDEN // HEADS,
        context_length=prompt + draft,
    )
    return DraftPolicy(config, prompt, draft, stop_tokens=(int(Word.END_BODY),))


def clone_optimizer(
    key: Key, words: OptimizerWords, executor: Any, sizes: OptimizerSizes
) -> tuple[Any, dict[str, float]]:
    """Clones the optimizer; `key` is consumed.

    Args:
      key: of all that is drawn.
      words: in which it reads and writes.
      executor: parameters of the executor, whose runs are the evidence.
      sizes: what it is cloned from.

    Returns:
      Parameters, and by name the last `loss`.
    """
    keys = jax.random.split(key, 5)
    place, number = words.place, sizes.demonstrations
    tasks = place.tasks(keys[0], number, "train")
    domains = place.domain_of(tasks)
    dice = [
        _Dice(row) for row in np.asarray(jax.random.uniform(keys[1], (number, DRAWS)))
    ]
    skills = [
        _any_lines(one, place, int(d), 1 + one.below(NUM_LINES - 2))
        for one, d in zip(dice, domains, strict=True)
    ]
    runs = execute(keys[2], place, executor, tasks, working_sets(skills), num_runs=2)
    shown = [
        _demonstration(one, words, int(d), skill, runs, row, sizes)
        for row, (one, d, skill) in enumerate(zip(dice, domains, skills, strict=True))
    ]
    prompts, drafts = (np.stack(x) for x in zip(*shown, strict=True))
    params, loss = _cloned(
        *(keys[3], keys[4], prompts, drafts),
        policy=optimizer_policy(words),
        epochs=sizes.epochs,
    )
    return params, {"loss": float(loss[-1])}


@partial(jax.jit, static_argnames=("policy", "epochs"))
def _cloned(
    init_key: Key, key: Key, prompts: Any, drafts: Any, *, policy: Any, epochs: int
) -> tuple[Any, Any]:
    unknown, one = jnp.zeros(drafts.shape), jnp.ones(drafts.shape[:1])
    written = Acted(
        action=jnp.zeros(drafts.shape[:1], jnp.int32),
        log_prob=one,
        tokens=drafts,
        token_log_prob=unknown,
        token_mask=drafts != 0,
    )
    # Nothing was executed: that a draft counts is all that is said of it here.
    counted = SkillReward(*(one,) * 4, valid=one > 0)
    data = draft_episodes(prompts, written, jnp.zeros((len(drafts), 1), int), counted)
    params = policy.init(init_key)
    return clone_policy(
        *(key, policy, params, data),
        learning_rate=LEARNING_RATE,
        epochs=epochs,
        batch_size=BATCH,
    )


class _Dice:
    """Random numbers of one demonstration, each used once."""

    def __init__(self, numbers: np.ndarray):
        self._numbers: Iterator[float] = iter(numbers.tolist())

    def happens(self, chance: float) -> bool:
        """Whether what has a chance comes to be."""
        return next(self._numbers) < chance

    def below(self, number: int) -> int:
        """An integer in [0, number)."""
        return int(next(self._numbers) * number)

    def one_of(self, choices: Sequence[int]) -> int:
        """One of some integers."""
        return choices[self.below(len(choices))]


def _any_lines(dice: _Dice, place: Place, domain: int, number: int) -> list[int]:
    """Lines about different errors of a domain, with any calls of it."""
    name = place.domains[domain]
    left, lines = list(place.situations(name)), []
    for _ in range(min(number, len(left))):
        situation = left.pop(dice.below(len(left)))
        lines.append(place.line(situation, dice.one_of(place.moves(name)[1:])))
    return lines


def _demonstration(
    dice: _Dice,
    words: OptimizerWords,
    domain: int,
    skill: Sequence[int],
    runs: Runs,
    task: int,
    sizes: OptimizerSizes,
) -> tuple[np.ndarray, np.ndarray]:
    """A prompt and a draft that could follow it."""
    place = words.place
    skill = [] if dice.happens(sizes.blank) else list(skill)
    told: dict[bool, tuple[int, ...] | None] = {True: None, False: None}
    if not dice.happens(sizes.without):
        for run, won in enumerate(runs.success[task]):
            told[bool(won)] = words.evidence(runs, task, run)
    prompt = words.prompt(domain, skill, told[True], told[False])
    seen = [line for run in told.values() for line in seen_lines(words, run or ())]
    kept = [line for line in skill if dice.happens(sizes.kept)]
    new: dict[int, int] = {}
    for _ in range(1 + dice.below(sizes.most)):
        any_line = _any_lines(dice, place, domain, 1)[0]
        line = dice.one_of(seen) if seen and dice.happens(sizes.seen) else any_line
        new.setdefault(int(place.rules[line, 0]), int(line))
    body = {int(place.rules[line, 0]): line for line in kept}
    body = {**new, **body}
    lines = list(body.values())[:NUM_LINES]
    return prompt, words.draft(sorted(new)[:MAX_REASONING], lines)


def seen_lines(words: OptimizerWords, evidence: Sequence[int]) -> list[int]:
    """What a run says was called after each of its errors, as lines.

    Args:
      words: of the evidence.
      evidence: of `OptimizerWords.evidence`.
    """
    _, situation, move, request = words.firsts[:4]
    return [
        words.place.line(before - situation, after - move)
        for before, after in pairwise(evidence)
        if situation + FIRST_ERROR <= before < move < after < request
        and after - move > 1
    ]
