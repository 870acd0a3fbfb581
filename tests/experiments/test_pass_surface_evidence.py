"""Which runs had found what their question needs before they answered it."""

from dataclasses import dataclass, replace

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from experiments.pass_surface.config import CATEGORIES, SIZES
from experiments.pass_surface.evaluation import _numbers
from experiments.pass_surface.places import LOOKUP, place_named
from experiments.pass_surface.questions import Asked, questions
from jerp.rollout.demonstrations import demonstrations
from jerp.typing import Outcome
from tests.reference import lookup as reference

PLACE = place_named("lookup")
WORDS = PLACE.env.vocabulary
SMALL = replace(SIZES["smoke"], questions=4)
ENTITIES = LOOKUP.size.num_entities
LIMIT, SAMPLES = 3, 12
NOWHERE = ("search failed", "no such paragraph")


@dataclass(frozen=True)
class Detour(Asked):
    """An oracle that first searches for someone who does not help."""

    def oracle(self, state, params):
        told = self.env.oracle(state, params.tasks)
        direct = params.tasks.kind == 0
        absent = jnp.argmin(jnp.isin(jnp.arange(ENTITIES), state.entity))
        other = jnp.where(state.value[5] % 2 == 0, state.entity[5], absent)
        return jnp.where((state.lookups == 0) & ~direct, other, told).astype(jnp.int32)


@pytest.fixture(scope="module")
def played():
    """By category the questions and runs of an oracle that has a search too few."""
    play = jax.jit(demonstrations, static_argnames=("env", "num_steps", "batch_size"))
    found = {}
    for number, category in enumerate(CATEGORIES):
        asked = questions(jax.random.key(3), SMALL, category)
        asked = asked.under(LIMIT, announced=False)
        data = play(
            jax.random.key(number),
            Detour(PLACE.env),
            asked,
            num_steps=LIMIT + 1,
            batch_size=SAMPLES * SMALL.questions,
        )
        written = jnp.ones((*data.action.shape, 3), bool)
        found[category] = asked, data.replace(token_mask=written)
    return found


def words_of(data, row):
    """The words of the question, and those that each search brought."""
    steps = int(data.mask[row].sum())
    told = [[WORDS[i] for i in step] for step in data.observation[row, :steps].tolist()]
    actions = data.action[row, :steps].tolist()
    assert all(a < ENTITIES for a in actions[:-1]) and actions[-1] >= ENTITIES
    names = np.asarray(PLACE.env.action_tokens(None))[:, 1]
    searched = [WORDS[names[action]] for action in actions[:-1]]
    return told[0], searched, told[1:], actions[:-1]


@pytest.mark.parametrize("category", CATEGORIES)
def test_a_run_is_supported_where_its_words_say_so_and_where_its_states_do(
    played, category
):
    asked, data = played[category]
    found = np.asarray(_numbers(data)["supported"])
    assert found.dtype == bool
    starts = jax.random.wrap_key_data(asked.starts)
    states = jax.jit(jax.vmap(PLACE.env.reset))(starts, asked.tasks)[0]
    entity = np.asarray(states.entity).tolist()
    for row in range(len(found)):
        question, searched, brought, actions = words_of(data, row)
        links = [None if one[0] in NOWHERE else one[0] for one in brought]
        pairs = [*zip(searched, links, strict=True)]
        assert found[row] == reference.supported(question[0], question[2:4], pairs)
        failed = [one[0] == "search failed" for one in brought]
        paragraphs = reference.found_paragraphs(
            entity[row % SMALL.questions], [*zip(actions, failed, strict=True)]
        )
        assert found[row] == (category == "A" or all(paragraphs[:2]))
    # Both come, so that neither is said of all; and nobody needs luck who knows.
    assert found.all() if category == "A" else 0 < found.sum() < len(found)
    assert (np.asarray(data.outcome)[found] == Outcome.SUCCESS).all()
