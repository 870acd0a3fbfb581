"""Drafts of skills: states become prompts, tokens are drawn, and read."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import Any, NamedTuple

import jax
import numpy as np

from jerp.errors import InputError, ShapeError
from jerp.models.draft_policy import DraftPolicy
from jerp.models.policy import Acted
from jerp.runs.skills.work import (
    ReadDraft,
    RefinementState,
    SkillRun,
    Trial,
    Workplace,
    read_draft,
)
from jerp.skills.document import render_skill
from jerp.skills.node import SkillNode
from jerp.training.skill import write_drafts
from jerp.typing import Array, Key

__all__ = ["Drafts", "draft_node", "drafted"]

PADDING = 0


class Drafts(NamedTuple):
    """Drafts for S states, K each; row `b` is for state `b % S`.

    Attributes:
      states: that they were drafted from.
      prompts: `[S, P]` int32.
      acted: rows `[S * K]`, as the optimizer wrote them.
      read: what each says.
    """

    states: Sequence[RefinementState]
    prompts: np.ndarray
    acted: Acted
    read: list[ReadDraft]

    def state(self, row: int) -> RefinementState:
        """What a row was drafted from."""
        return self.states[row % len(self.states)]

    def skill(self, row: int) -> str | None:
        """A row's skill as Markdown, None where there is none."""
        skill = self.read[row].skill
        return None if skill is None else render_skill(skill)

    def num_tokens(self, row: int) -> int:
        """Of a row, its stop token included."""
        return int(np.sum(np.asarray(self.acted.token_mask)[row]))

    def trials(self, samples: Sequence[int]) -> dict[int, list[Trial]]:
        """What is to be executed of each row that has a skill."""
        return {
            row: [Trial(self.state(row).task, skill, sample) for sample in samples]
            for row in range(len(self.read))
            if (skill := self.skill(row)) is not None
        }


def drafted(
    workplace: Workplace,
    policy: DraftPolicy,
    params: Any,
    key: Key,
    states: Sequence[RefinementState],
    *,
    num_drafts: int = 1,
    block: int | None = None,
) -> Drafts:
    """Drafts skills for states.

    Args:
      workplace: makes the prompts and reads the drafts.
      policy: writes them.
      params: of it.
      key: consumed.
      states: S of them.
      num_drafts: K, of each.
      block: rows that are written at once, by one program whatever S is; None for all.

    Raises:
      ShapeError: prompts that are not the policy's.
      InputError: a token that the policy does not have, a prompt that begins with
        padding, or what `read_draft` refuses.
      ExecutorError: see `read_draft`.
    """
    prompts = _prompts(workplace, policy, states)
    rows = np.tile(prompts, (num_drafts, 1))
    block = len(rows) if block is None else block
    parts = []
    for number, first in enumerate(range(0, len(rows), block)):
        part = rows[first : first + block]
        # A prompt without a token has no draft, and is left out below.
        part = np.pad(part, ((0, block - len(part)), (0, 0)))
        keys = jax.random.fold_in(key, number)
        parts.append(jax.device_get(_written(policy, params, keys, part)))
    acted = jax.tree.map(lambda *xs: np.concatenate(xs)[: len(rows)], *parts)
    read = [
        read_draft(workplace, states[row % len(states)].task, tokens, mask)
        for row, (tokens, mask) in enumerate(
            zip(acted.tokens, acted.token_mask, strict=True)
        )
    ]
    return Drafts(states, prompts, acted, read)


def draft_node(
    drafts: Drafts,
    row: int,
    runs: Sequence[SkillRun],
    *,
    id: int,
    phase: int,
    reward: float | None = None,
    retained: bool = False,
) -> SkillNode:
    """A draft and what came of it, for the tree."""
    state, read = drafts.state(row), drafts.read[row]
    return SkillNode(
        id=id,
        parent=state.parent,
        task=state.task,
        phase=phase,
        skill=drafts.skill(row),
        reasoning=read.reasoning,
        faults=read.faults,
        outcomes=tuple(run.outcome for run in runs),
        reward=reward,
        retained=retained,
        evidence=state.evidence,
        executor_calls=sum(run.executor_calls for run in runs),
        tokens=drafts.num_tokens(row),
    )


def _prompts(
    workplace: Workplace, policy: DraftPolicy, states: Sequence[RefinementState]
) -> np.ndarray:
    """`[S, P]` int32 of the workplace, if a policy can read them."""
    prompts = np.asarray(workplace.prompts(states))
    expected = (len(states), policy.num_prompt_tokens)
    if prompts.shape != expected or not np.issubdtype(prompts.dtype, np.integer):
        raise ShapeError(
            f"workplace.prompts: expected int32 {list(expected)}, a prompt a state, "
            f"got {prompts.dtype} {list(prompts.shape)}"
        )
    size = policy.config.vocab_size
    for state, row in zip(states, prompts, strict=True):
        wrong = row[(row < 0) | (row >= size)]
        if wrong.size:
            raise InputError(
                f"workplace.prompts: expected tokens in [0, {size}) for task "
                f"{state.task!r:.80}, got {wrong[0]}; is the tokenizer the policy's?"
            )
        if row[0] == PADDING:
            raise InputError(
                f"workplace.prompts: expected a prompt for task {state.task!r:.80}, "
                f"got one whose first token is the padding {PADDING}; pad on the right"
            )
    return prompts.astype(np.int32)


@partial(jax.jit, static_argnames="policy")
def _written(policy: DraftPolicy, params: Any, key: Key, prompts: Array) -> Acted:
    return write_drafts(policy, params, key, prompts)
