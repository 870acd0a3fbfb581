"""Tasks and states of a household, and what they say at a glance.

Places are numbers in [0, N); two more say that one stands nowhere yet, `N`, and that an
object is in the hand, `N + 1`.
"""

from __future__ import annotations

from typing import NamedTuple

import jax.numpy as jnp
from flax import struct
from jax import lax

from jerp.envs.bits import has_bit
from jerp.envs.house_things import CLEAN, COLD, HOT, HouseSize, HouseTask
from jerp.typing import Array

__all__ = [
    "Glance",
    "HouseParams",
    "HouseState",
    "asked_treatment",
    "glance",
]


class HouseParams(struct.PyTreeNode):
    """One task in one home; leaves `[...]`, or `[B, ...]` for `B` tasks.

    Attributes:
      task: `[]` int32, a `HouseTask`.
      goal_kind: `[]` int32 in `OBJECTS`; one object is of it,
        and two to pick two.
      goal_place: `[]` int32 in `PLACES`; the desk, whose lamp it is, to look.
      goal_bits: `[]` int32, places of the home that are of that kind.
      present: `[]` int32, places that the home has.
      room: `[N]` int32 in `ROOMS`, of each place.
      kind: `[K]` int32 in `OBJECTS`, of each object.
      place: `[K]` int32, where each object is at first.
    """

    task: Array
    goal_kind: Array
    goal_place: Array
    goal_bits: Array
    present: Array
    room: Array
    kind: Array
    place: Array


class HouseState(struct.PyTreeNode):
    """One episode in progress.

    Attributes:
      step: `[]` int32 counter.
      at: `[]` int32, the place where one stands.
      open: `[]` int32, bits of places that were opened.
      place: `[K]` int32, where each object is.
      treated: `[K]` int32, bits of each object's treatments.
      done: `[]` bool, the task is.
    """

    step: Array
    at: Array
    open: Array
    place: Array
    treated: Array
    done: Array


class Glance(NamedTuple):
    """What a state comes down to; leaves `[]`, but for `held` and `here` `[K]` bool.

    `hand` is 1 + the kind of the object in the hand, 0 without one, `hand_treated` its
    treatments; `shut` that one stands before something closed, `within_reach` before
    something that is not; `seen` bits of kinds, of objects `here`, within reach.
    """

    held: Array
    here: Array
    hand: Array
    hand_treated: Array
    shut: Array
    within_reach: Array
    seen: Array


def asked_treatment(task: Array) -> Array:
    """The bit that the goal object must have; 0 where the task asks for none."""
    treatment = jnp.where(task == HouseTask.CLEAN, CLEAN, 0)
    treatment = jnp.where(task == HouseTask.HEAT, HOT, treatment)
    return jnp.where(task == HouseTask.COOL, COLD, treatment)


def glance(size: HouseSize, state: HouseState, params: HouseParams) -> Glance:
    """What can be told from a state without looking twice.

    Args:
      size: of the home.
      state: of one episode.
      params: its task.

    Returns:
      See `Glance`.
    """
    nowhere = len(size.places)
    held = state.place == nowhere + 1
    shut = has_bit(size.openable & ~state.open, state.at)
    within_reach = (state.at != nowhere) & ~shut
    here = (state.place == state.at) & within_reach
    return Glance(
        held=held,
        here=here,
        hand=jnp.sum(jnp.where(held, params.kind + 1, 0)),
        hand_treated=jnp.sum(jnp.where(held, state.treated, 0)),
        shut=shut,
        within_reach=within_reach,
        seen=lax.reduce_or(jnp.where(here, 1 << params.kind, 0), axes=(0,)),
    )
