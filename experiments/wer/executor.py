"""The frozen executor: a small decoder that does as the lines of a skill say.

It is cloned from someone who knows what is asked for and calls it, but who, when a call
fails, does what the first line for that error says, and without one now and then what
helps, else anything that is admissible. Its prompts hold right lines and wrong ones, so
that a line has to be read to be followed.

A run is a function of the key, the task's number, the run's number, the task and the
lines: what runs beside it changes no bit, and two skills meet the same luck.
"""

from __future__ import annotations

from functools import partial
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from experiments.wer.config import ExecutorSizes
from experiments.wer.places import NUM_LINES, Place
from jerp.ops.checks import check_axes, check_count, check_values
from jerp.rollout.rule_demonstrations import rule_demonstrations
from jerp.rollout.scan import rollout
from jerp.training.cloning import clone_policy
from jerp.trajectory import Trajectory
from jerp.typing import Array, ArrayLike, Key, Outcome

__all__ = ["Runs", "clone_executor", "draw_lines", "execute", "no_lines"]

BATCH = 32
"""Episodes an update of the clone."""

BLOCK = 128
"""Runs side by side, always so many: one program plays them all."""


class Runs(NamedTuple):
    """What came of `n` runs of each of `N` tasks.

    Attributes:
      outcome: `[N, n]` int32, see `jerp.typing.Outcome`.
      fields: `[N, n, T, F]` int32, what was seen at each step; the last field is the
        situation.
      action: `[N, n, T]` int32.
      mask: `[N, n, T]` bool, the steps that there were.
    """

    outcome: np.ndarray
    fields: np.ndarray
    action: np.ndarray
    mask: np.ndarray

    @property
    def success(self) -> np.ndarray:
        """`[N, n]` bool."""
        return self.outcome == Outcome.SUCCESS


def no_lines(number: int) -> np.ndarray:
    """`[number, R]` int32 working sets without a line."""
    return np.full((number, NUM_LINES), -1, np.int32)


def execute(
    key: Key,
    place: Place,
    params: Any,
    tasks: Any,
    working_set: ArrayLike,
    *,
    num_runs: int,
    first_run: int = 0,
    task_id: ArrayLike | None = None,
) -> Runs:
    """Runs the executor on tasks, each with the lines of its skill.

    Args:
      key: not consumed: all that is compared uses it.
      place: where.
      params: of the executor, as `clone_executor` returns them.
      tasks: leaves `[N, ...]`.
      working_set: `[N, R]` int32 lines, -1 for none.
      num_runs: n, of every task.
      first_run: number of the first of them; later calls can so add more.
      task_id: `[N]` int32, the numbers of the tasks; None counts them from 0.

    Raises:
      InputError: no run, no task, or a number that is no line.
      ShapeError: not R lines, or not a number, for each task.
    """
    check_count("num_runs", num_runs)
    check_count("first_run", first_run, least=0)
    number = _check_tasks(place, tasks, working_set, task_id)
    ids = np.arange(number) if task_id is None else task_id
    task, run = (x.ravel() for x in np.indices((number, num_runs)))
    lines, ids = (np.asarray(x, np.int32) for x in (working_set, ids))
    # From the host: read from a file or just cloned, one program plays with them.
    params, *what = jax.device_get((params, tasks, lines, ids))
    found = []
    for start in range(0, len(task), BLOCK):
        # The last block is filled up with copies of its first run.
        rows = np.full(BLOCK, start)
        rows[: len(task) - start] = np.arange(start, min(start + BLOCK, len(task)))
        block = jax.tree.map(lambda x, rows=rows: x[task[rows]], what)
        runs = (first_run + run[rows]).astype(np.int32)
        played = _played(jax.random.clone(key), params, *block, runs, place=place)
        found.append(jax.device_get(played))
    return _joined(found, number, num_runs)


def _check_tasks(
    place: Place, tasks: Any, working_set: ArrayLike, task_id: ArrayLike | None
) -> int:
    """How many tasks there are."""
    lines = (np.empty(NUM_LINES), "R")
    check_axes(NUM_LINES=lines, working_set=(working_set, "N R", int))
    number, last = np.shape(working_set)[0], len(place.rules) - 1
    check_count("tasks", number)
    rows = (np.empty(number), "N")
    ids = np.arange(number) if task_id is None else task_id
    check_axes(working_set=rows, task_id=(ids, "N", int))
    for leaf in jax.tree.leaves(tasks):
        check_axes(working_set=rows, tasks=(np.empty(jnp.shape(leaf)[:1]), "N"))
    check_values(
        "working_set",
        working_set,
        lambda v: (v >= -1) & (v <= last),
        f"lines from 0 to {last}, or -1 for none",
    )
    return number


def _joined(found: list[Any], number: int, num_runs: int) -> Runs:
    rows = [np.concatenate(x)[: number * num_runs] for x in zip(*found, strict=True)]
    return Runs(*(x.reshape(number, num_runs, *x.shape[1:]) for x in rows))


@partial(jax.jit, static_argnames="place")
def _played(
    key: Key,
    params: Any,
    tasks: Any,
    working_set: Array,
    task_id: Array,
    run: Array,
    *,
    place: Place,
) -> tuple[Array, ...]:
    params = {**params, "rules": jnp.asarray(place.rules)}
    fold = jax.vmap(jax.random.fold_in)
    keys = fold(jax.vmap(jax.random.fold_in, (None, 0))(key, task_id), run)

    def play(key: Key, task: Any, lines: Array) -> tuple[Array, ...]:
        data = rollout(
            *(key, place.env, jax.tree.map(lambda x: x[None], task)),
            *(place.policy(), params),
            num_steps=place.horizon,
            batch_size=1,
            working_set=lines[None],
        )
        seen: Any = data.observation
        return data.outcome[0], seen[0], data.action[0], data.mask[0]

    return jax.vmap(play)(keys, tasks, working_set)


def clone_executor(
    key: Key, place: Place, sizes: ExecutorSizes
) -> tuple[Any, dict[str, float]]:
    """Clones the executor; `key` is consumed.

    Args:
      key: of all that is drawn.
      place: where.
      sizes: what it is cloned from.

    Returns:
      Parameters without the table of lines, which is the place's, and by name the last
      `loss` and the demonstrations' `success`.
    """
    keys = jax.random.split(key, 5)
    tasks = place.tasks(keys[0], sizes.demonstrations, "train")
    lines = draw_lines(keys[1], place, place.domain_of(tasks), sizes)
    noise = np.float32(sizes.noise)
    data = _shown(keys[2], tasks, lines, noise, place=place, guess=sizes.guess)
    params, loss = _cloned(keys[3], keys[4], data, place=place, epochs=sizes.epochs)
    success = np.mean(np.asarray(data.outcome) == Outcome.SUCCESS)
    return params, {"loss": float(loss[-1]), "success": float(success)}


def draw_lines(
    key: Key, place: Place, domain: ArrayLike, sizes: ExecutorSizes
) -> Array:
    """`[N, R]` int32 lines of the demonstrations of tasks of domains `[N]`.

    Errors of a prompt are different ones, in random order, but for foreign lines.
    Consumes `key`.
    """
    shares = np.asarray([sizes.right, sizes.foreign, sizes.without], np.float32)
    return _drawn(key, domain, shares, *_sayable(place), place=place)


@partial(jax.jit, static_argnames="place")
def _drawn(
    key: Key, domain: Array, shares: Array, told: Array, right: Array, *, place: Place
) -> Array:
    keys, shape = jax.random.split(key, 7), (domain.shape[0], NUM_LINES)
    of_domain = jnp.any(told, axis=2)[domain]
    chance = jax.random.uniform(keys[0], of_domain.shape)
    # What is no error of the domain comes last, and is not said.
    situation = jnp.argsort(jnp.where(of_domain, chance, 2.0), axis=1)[:, :NUM_LINES]
    logits = jnp.where(told, 0.0, -jnp.inf)[domain[:, None], situation]
    move = jax.random.categorical(keys[1], logits)
    best = right[domain[:, None], situation]
    is_right = jax.random.bernoulli(keys[2], shares[0], shape) & (best > 0)
    line = place.line(situation, jnp.where(is_right, best, move))
    known = jnp.take_along_axis(of_domain, situation, axis=1)
    any_line = jax.random.randint(keys[3], shape, place.line(1, 0), len(place.rules))
    is_foreign = jax.random.bernoulli(keys[4], shares[1], shape)
    line = jnp.where(is_foreign, any_line, jnp.where(known, line, -1))
    size = jax.random.randint(keys[5], shape[:1], 1, NUM_LINES + 1)
    size = jnp.where(jax.random.bernoulli(keys[6], shares[2], shape[:1]), 0, size)
    said = jnp.arange(NUM_LINES)[None] < size[:, None]
    return jnp.where(said, line, -1).astype(jnp.int32)


def _sayable(place: Place) -> tuple[np.ndarray, np.ndarray]:
    """By domain what may be said, `[D, S, M]` bool, and right moves `[D, S]` int32."""
    told = np.zeros((len(place.domains), *place.rule_sizes), bool)
    right = np.zeros(told.shape[:2], np.int32)
    for d, domain in enumerate(place.domains):
        told[d][np.ix_(place.situations(domain), place.moves(domain))] = True
        situation, move = place.rules[list(place.right_lines(domain))].T
        right[d, situation] = move
    return told, right


@partial(jax.jit, static_argnames=("place", "guess"))
def _shown(
    key: Key, tasks: Any, lines: Array, noise: Array, *, place: Place, guess: float
) -> Trajectory:
    return rule_demonstrations(
        *(key, place.shown, tasks, jnp.asarray(place.rules), lines),
        num_steps=place.horizon,
        batch_size=lines.shape[0],
        noise=noise,
        unknown=place.unknown,
        guess=guess,
    )


@partial(jax.jit, static_argnames=("place", "epochs"))
def _cloned(
    init_key: Key, key: Key, data: Trajectory, *, place: Place, epochs: int
) -> tuple[Any, Array]:
    policy = place.policy()
    return clone_policy(
        *(key, policy, policy.init(init_key), data),
        epochs=epochs,
        batch_size=BATCH,
        frozen={"rules": jnp.asarray(place.rules)},
    )
