"""What a policy does on held-out tasks, with its rules, without them, without one.

Whatever is compared is played on the same tasks with the same keys.
"""

from __future__ import annotations

from functools import partial
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from experiments.joint_rules.places import NUM_RULES, Place
from jerp.models.step_policy import StepPolicy
from jerp.rollout.demonstrations import demonstrations
from jerp.rollout.scan import rollout
from jerp.storage.rule_leaks import task_digests
from jerp.typing import Array, Key, Outcome

__all__ = ["Held", "draw_held", "following_log_prob", "played"]


LEAST_ROWS = 512
"""Of a table of rules."""

NOISE = 0.3
"""Share of random steps of the oracle, whose mistakes show more situations."""


class Held(NamedTuple):
    """Tasks that are held out, and the key of their episodes.

    Attributes:
      key: not consumed: all that is compared uses it.
      tasks: leaves `[N, ...]`.
      kinds: `[N]` int32, the type of each.
    """

    key: Key
    tasks: Any
    kinds: np.ndarray

    @property
    def numbers(self) -> np.ndarray:
        """`[N]` int32, equal iff tasks are: a small world may have drawn one twice."""
        _, numbers = np.unique(task_digests(self.tasks), return_inverse=True)
        return numbers.astype(np.int32)


def draw_held(key: Key, place: Place, number: int, split: str) -> Held:
    """Tasks of a split; `key` is consumed."""
    drawing, playing = jax.random.split(key)
    tasks = place.tasks(drawing, number, split)
    return Held(playing, tasks, place.keys_of(tasks))


def played(
    place: Place,
    held: Held,
    params: Any,
    rules: np.ndarray,
    working_set: np.ndarray | None,
    *,
    samples: int,
) -> dict[str, np.ndarray]:
    """`success` and `score` `[N, samples]` of the episodes of held-out tasks.

    Args:
      place: where.
      held: which tasks.
      params: of the policy, without its table of rules.
      rules: `[M, 2]`, that table.
      working_set: `[N, R]` rule ids; None for none.
      samples: episodes a task.
    """
    number = len(held.kinds)
    if working_set is None:
        working_set = np.full((number, NUM_RULES), -1, np.int32)
    data = _played(
        *(jax.random.clone(held.key), held.tasks),
        {**jax.device_get(params), "rules": _table(rules)},
        np.asarray(working_set),
        place=place,
        policy=place.policy(),
        samples=samples,
    )
    return {name: np.asarray(x).reshape(samples, number).T for name, x in data.items()}


def _table(rules: np.ndarray) -> np.ndarray:
    """Rows of a power of two, so that most tables are of one shape.

    Parameters come from the host as well: whether they were read from a checkpoint or
    just learned, one program serves.
    """
    size = LEAST_ROWS
    while size < len(rules):
        size *= 2
    return np.pad(rules, ((0, size - len(rules)), (0, 0)))


@partial(jax.jit, static_argnames=("place", "policy", "samples"))
def _played(
    key: Key,
    tasks: Any,
    params: Any,
    working_set: Array,
    *,
    place: Place,
    policy: StepPolicy,
    samples: int,
) -> dict[str, Array]:
    data = rollout(
        *(key, place.env, tasks, policy, params),
        num_steps=place.horizon,
        batch_size=working_set.shape[0] * samples,
        working_set=working_set,
    )
    return {"success": data.outcome == Outcome.SUCCESS, "score": data.score}


def following_log_prob(place: Place, held: Held, params: Any) -> np.ndarray:
    """How probable a policy makes every move without a rule in its prompt.

        l[k, s, m] = mean over steps of situation s, in tasks of type k, of
                     log sum_{admissible a that make m} pi(a | no rules)

    over the steps of an oracle that errs, in held-out tasks; those in which no
    admissible action makes the move are left out.

    Returns:
      `[K, S, M]` float32; NaN where there is no step.
    """
    return np.asarray(
        _following(
            *(jax.random.clone(held.key), held.tasks, jax.device_get(params)),
            place=place,
            policy=place.policy(),
        )
    )


@partial(jax.jit, static_argnames=("place", "policy"))
def _following(
    key: Key, tasks: Any, params: Any, *, place: Place, policy: StepPolicy
) -> Array:
    number = jax.tree.leaves(tasks)[0].shape[0]
    steps = {"num_steps": place.horizon, "batch_size": number}
    data = demonstrations(key, place.env, tasks, noise=NOISE, **steps)
    told = {**params, "rules": jnp.zeros((1, len(place.rule_sizes)), jnp.int32)}
    log_probs, _ = policy.log_probs(told, data)
    fields = jnp.asarray(data.observation)
    legal = jnp.asarray(data.legal) & data.mask[..., None]
    actions = jnp.broadcast_to(jnp.arange(legal.shape[-1]), legal.shape)
    moves = jax.vmap(place.env.moves, (2, None, None), 2)(actions, fields, tasks)
    made = jax.nn.one_hot(moves, place.rule_sizes[1], dtype=bool) & legal[..., None]
    probability = jnp.sum(jnp.where(made, jnp.exp(log_probs)[..., None], 0.0), axis=2)
    log_prob = jnp.log(jnp.maximum(probability, 1e-30))
    can = jnp.any(made, axis=2)
    kinds = jnp.broadcast_to(place.type_of(tasks)[:, None], data.mask.shape)
    cells = (kinds, fields[..., -1])
    zero = jnp.zeros((len(place.types), *place.rule_sizes))
    total = zero.at[cells].add(jnp.where(can, log_prob, 0.0))
    return total / zero.at[cells].add(can.astype(jnp.float32))
