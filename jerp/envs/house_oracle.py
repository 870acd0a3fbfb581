"""What someone who knows where everything is does next in a household."""

from __future__ import annotations

import jax.numpy as jnp

from jerp.envs.bits import has_bit
from jerp.envs.house_state import (
    HouseParams,
    HouseState,
    asked_treatment,
    glance,
)
from jerp.envs.house_things import (
    CLEAN,
    FRIDGE,
    HOT,
    LAMP,
    MICROWAVE,
    OPEN,
    PUT,
    SINK,
    USE,
    HouseSize,
    HouseTask,
)
from jerp.typing import Array

__all__ = ["house_oracle"]


def house_oracle(size: HouseSize, state: HouseState, params: HouseParams) -> Array:
    """An action of a shortest way to success, but for what else is in the hand.

    What is not needed is put down first, wherever one stands. Then the object is
    fetched, taken to its appliance, and to where it is wanted; what is shut on the way
    is opened.

    Args:
      size: of the home.
      state: of one episode that has not ended.
      params: its task.

    Returns:
      `[]` int32, an admissible action.
    """
    now = glance(size, state, params)
    mover, target = _errand(size, state, params)
    holds = now.held[mover]
    asked = asked_treatment(params.task)
    bare = (asked > 0) & ((state.treated[mover] & asked) == 0)
    look = params.task == HouseTask.LOOK
    appliance = jnp.where(asked == HOT, MICROWAVE, FRIDGE)
    appliance = jnp.where(asked == CLEAN, SINK, appliance)
    goal = jnp.where(bare, appliance, jnp.where(look, LAMP, target))
    goal = jnp.where(holds, goal, state.place[mover])
    first_verb = len(size.places) + size.num_kinds
    act = jnp.where(bare | look, first_verb + USE, first_verb + PUT)
    act = jnp.where(holds, act, len(size.places) + params.goal_kind)
    # In the wrong hand's case the goal is here: to put it down.
    encumbered = (now.hand > 0) & ~holds
    goal = jnp.where(encumbered, state.at, goal)
    act = jnp.where(encumbered, first_verb + PUT, act)
    here = jnp.where(now.shut, first_verb + OPEN, act)
    return jnp.where(goal == state.at, here, goal).astype(jnp.int32)


def _errand(
    size: HouseSize, state: HouseState, params: HouseParams
) -> tuple[Array, Array]:
    """The object to move, and the place to move it to.

    Of two, one that is at the goal stays there, and the other follows it.
    """
    number = params.kind.shape[0]
    ours = params.kind == params.goal_kind
    index = jnp.arange(number)
    first = jnp.min(jnp.where(ours, index, number - 1))
    last = jnp.max(jnp.where(ours, index, 0))
    placed = has_bit(params.goal_bits, state.place)
    held = state.place[last] == len(size.places) + 1
    mover = jnp.where(placed[first] | held, last, first)
    other = first + last - mover
    low = params.goal_bits & -params.goal_bits
    lowest = jnp.sum(
        has_bit(low, jnp.arange(len(size.places))) * jnp.arange(len(size.places))
    )
    target = jnp.where(placed[other] & (other != mover), state.place[other], lowest)
    return mover, target
