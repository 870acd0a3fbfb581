"""How a trained arm solves what it solves: is the search new, or what is made of it?

Transcripts are played once an arm; every policy then reads those of others. What it
reads is masked as it was when it was played, and the numbers are exact functions of its
probabilities, where a drawn answer would add noise.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import cache, partial
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from experiments.pass_surface.config import CATEGORIES, TRAINED_LIMIT, Sizes
from experiments.pass_surface.evaluation import episodes
from experiments.pass_surface.places import LOOKUP, Place
from experiments.pass_surface.questions import Questions, episode_key, questions
from jerp.envs.lookup_tasks import LookupParams
from jerp.envs.shared_words import SharedWords
from jerp.models.token_policy import TokenPolicy
from jerp.trajectory import Trajectory, concatenate
from jerp.typing import Array, Key, Outcome

__all__ = [
    "KINDS",
    "NUM_SEARCHES",
    "SEARCHED",
    "measure",
    "measure_mechanism",
    "query_sequences",
    "right_answer_probability",
    "right_answers",
    "token_sums",
]

KINDS = ("query", "answer")
"""Of tokens: those of searches, and those of the answer."""

SEARCHED = tuple(name for name, limits in CATEGORIES.items() if max(limits) > 0)
"""Categories in which there is something to look up."""

NUM_SEARCHES = LOOKUP.size.num_entities
"""Actions from there on are answers."""

Measured = dict[str, np.ndarray]


def measure_mechanism(
    key: Key, place: Place, params: Mapping[str, Any], sizes: Sizes
) -> dict[str, dict[str, Measured]]:
    """What `measure` finds of a seed's test questions, by category and arm.

    Budgets are hidden and the largest; the runs are the first ones of those in the
    arms' evaluations.

    Args:
      key: of the seed's evaluation; not consumed.
      place: of questions.
      params: by arm; "base" among them.
      sizes: numbers of questions and of samples that are read.
    """
    found = {}
    for category in SEARCHED:
        asked = questions(key, sizes, category)
        play = partial(_transcripts, episode_key(key, category), place, asked, sizes)
        found[category] = measure(
            play,
            place.policy(),
            params,
            right_answers(place, asked),
            num_searches=NUM_SEARCHES,
        )
    return found


def right_answers(place: Place, asked: Questions) -> np.ndarray:
    """`[Q]` int32, the action that answers each question."""
    params = asked.under(0, announced=False)
    starts = jax.random.wrap_key_data(params.starts)
    return np.asarray(_told_answers(starts, params.tasks, env=place.env))


@partial(jax.jit, static_argnames="env")
def _told_answers(starts: Key, tasks: LookupParams, *, env: SharedWords) -> Array:
    """Of an oracle that has found everything and may look up nothing more."""
    state, _ = jax.vmap(env.reset)(starts, tasks)
    told = state.replace(found=jnp.ones_like(state.found))
    return jax.vmap(env.oracle)(told, tasks)


def _transcripts(
    key: Key, place: Place, asked: Questions, sizes: Sizes, params: Any
) -> Trajectory:
    settings: Any = {"limit": TRAINED_LIMIT, "announced": False}
    samples = min(sizes.read_samples, sizes.samples)
    blocks = episodes(
        *(key, place, params, asked), samples=samples, block=sizes.block, **settings
    )
    return concatenate([*blocks])


def measure(
    play: Callable[[Any], Trajectory],
    policy: TokenPolicy,
    params: Mapping[str, Any],
    right: np.ndarray,
    *,
    num_searches: int,
    batch: int = 512,
) -> dict[str, Measured]:
    """Transcripts of every arm, read by the base and by the arm.

    Args:
      play: plays the Q questions with the given parameters, each as often; episode `b`
        plays question `b % Q`.
      policy: of all arms.
      params: by arm; "base" among them.
      right: `[Q]` int32, the action that answers each question.
      num_searches: actions from there on are answers.
      batch: episodes that are read together.

    Returns:
      By arm: `log_prob` and `count` `[Q, 2]`, sums over tokens of its successful runs
      under the base, by `KINDS`; `success` `[Q]`, share of its runs; and `swap`
      `[Q, 2, 2]`, the probability of the right answer by whose searches and by whose
      answer, the base's first.
    """
    reading: Any = {"policy": policy, "num_searches": num_searches}
    played = {name: play(one) for name, one in params.items()}

    @cache
    def answered(searcher: str, answerer: str) -> np.ndarray:
        read = partial(right_answer_probability, **reading)
        data = played[searcher]
        answers = jnp.asarray(right)[data.task_id]
        each = _in_batches(read, params[answerer], data, answers, batch=batch)
        return _by_question(each, len(right)).mean(axis=0)

    found = {}
    for name, data in played.items():
        read = partial(token_sums, **reading)
        success = np.asarray(data.outcome) == Outcome.SUCCESS
        sums = _in_batches(read, params["base"], data, batch=batch)
        sums = _by_question(sums * success[:, None, None], len(right)).sum(axis=0)
        cells = [[answered(x, y) for y in ("base", name)] for x in ("base", name)]
        found[name] = {
            "log_prob": sums[:, 0],
            "count": sums[:, 1],
            "success": _by_question(success, len(right)).mean(axis=0),
            "swap": np.moveaxis(np.array(cells), -1, 0),
        }
    return found


@partial(jax.jit, static_argnames=("policy", "num_searches"))
def right_answer_probability(
    params: Any,
    data: Trajectory,
    right: Array,
    *,
    policy: TokenPolicy,
    num_searches: int,
) -> Array:
    """How probable a policy makes the right answer where each episode was answered.

    It has read the question, the searches that were made and what they brought, and
    searches are masked: it has to answer there, whether it would or not.

    Args:
      params: of the policy that answers.
      data: `[B, T]` episodes of any policy, each with an answer at its end.
      right: `[B]` int32, the right action.
      policy: static.
      num_searches: static; actions from there on are answers.

    Returns:
      `[B]` float32.
    """
    last = _last_step(data)
    legal: Any = data.legal
    answers = jnp.arange(legal.shape[-1])[None, None] >= num_searches
    asked = data.replace(
        action=jnp.where(last, right[:, None], data.action),
        legal=jnp.where(last[..., None], legal & answers, legal),
    )
    log_prob = policy.evaluate(params, policy.with_tokens(asked)).log_prob
    return jnp.exp(jnp.sum(jnp.where(last[..., None], log_prob, 0.0), axis=(1, 2)))


@partial(jax.jit, static_argnames=("policy", "num_searches"))
def token_sums(
    params: Any, data: Trajectory, *, policy: TokenPolicy, num_searches: int
) -> Array:
    """Log-probabilities of episodes' tokens under a policy, by kind.

    Tokens without an alternative are left out: the last word of an action, and the
    first word of an answer that was forced.

    Args:
      params: of the policy that reads.
      data: `[B, T]` episodes of any policy, with tokens.
      policy: static.
      num_searches: static; actions from there on are answers.

    Returns:
      `[B, 2, 2]` float32: sums and numbers of tokens, by `KINDS`.
    """
    found = policy.evaluate(params, data)
    counts: Any = found.choice
    search = (data.action < num_searches)[..., None]
    kinds = [counts & search, counts & ~search]
    sums = [jnp.sum(jnp.where(kind, found.log_prob, 0.0), (1, 2)) for kind in kinds]
    numbers = [jnp.sum(kind, (1, 2), dtype=jnp.float32) for kind in kinds]
    return jnp.stack([jnp.stack(sums, -1), jnp.stack(numbers, -1)], axis=1)


def query_sequences(
    actions: Sequence[np.ndarray], *, num_searches: int
) -> list[np.ndarray]:
    """Ids of the searches of each run, in their order: equal iff all of them are.

    A search that failed and was made again counts twice: it was asked for twice.

    Args:
      actions: of each arm `[Q, n, T]`, up to an answer; what follows is not read.
      num_searches: actions from there on are answers.

    Returns:
      Of each arm `[Q, n]` int32, numbered over all arms together.
    """
    rows = []
    for each in actions:
        searches = np.logical_and.accumulate(
            (each >= 0) & (each < num_searches), axis=-1
        )
        rows.append(np.where(searches, each, -1).reshape(-1, each.shape[-1]))
    _, number = np.unique(np.concatenate(rows), axis=0, return_inverse=True)
    ends = np.cumsum([len(each) for each in rows])[:-1]
    parts = np.split(number.reshape(-1).astype(np.int32), ends)
    return [
        part.reshape(each.shape[:-1]) for part, each in zip(parts, actions, strict=True)
    ]


def _last_step(data: Trajectory) -> Array:
    """`[B, T]` bool: the step at which each episode ended."""
    number = jnp.sum(data.mask, axis=1, dtype=jnp.int32)
    return jnp.arange(data.mask.shape[1])[None] == number[:, None] - 1


def _in_batches(
    read: Callable[..., Array], params: Any, *data: Any, batch: int
) -> np.ndarray:
    """Reads `batch` episodes at a time, the last ones together with earlier ones."""
    number = jax.tree.leaves(data)[0].shape[0]
    size = min(batch, number)
    parts = []
    for start in range(0, number, size):
        begin = min(start, number - size)
        part = jax.tree.map(lambda x, at=begin: x[at : at + size], data)
        parts.append(np.asarray(read(params, *part))[start - begin :])
    return np.concatenate(parts)


def _by_question(each: np.ndarray, number: int) -> np.ndarray:
    """`[samples, Q, ...]` of episodes."""
    return each.reshape(-1, number, *each.shape[1:])
