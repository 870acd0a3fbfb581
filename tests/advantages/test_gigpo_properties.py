"""What must not change GiGPO's advantages, on many batches each.

Rewards are quarters and shifts whole numbers, so that float32 adds them up exactly.
"""

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.advantages.batches import BATCH, STEPS, arrays, gigpo

EXAMPLES = settings(deadline=None)
KEYWORDS = {"discount": 0.5, "epsilon": 0.0}
TOLERANCE = {"rtol": 1e-5, "atol": 1e-5}

quarters = st.integers(-16, 16).map(lambda n: n / 4)
steps = st.lists(st.tuples(st.integers(0, 2), quarters), max_size=4)
episodes = st.lists(
    st.tuples(st.integers(0, 2), st.integers(0, 1), steps), min_size=1, max_size=8
).filter(lambda batch: any(e[2] for e in batch))


def parts(*batch, **keywords):
    found = gigpo(*batch, **{**KEYWORDS, **keywords})
    return np.stack([found.total, found.episode, found.step])


@EXAMPLES
@given(episodes, st.permutations(range(BATCH)))
def test_the_order_of_episodes_does_not_matter(batch, order):
    arrived = arrays(batch)
    plain, turned = parts(*arrived), parts(*(x[order] for x in arrived))
    np.testing.assert_allclose(turned, plain[:, order], **TOLERANCE)


@EXAMPLES
@given(episodes, st.integers(-3, 3), st.sampled_from([0.25, 2.0, 64.0]))
def test_shift_and_scale_of_rewards_do_not_matter(batch, shift, factor):
    """The last step's reward moves every return of its episode, undiscounted."""
    reward, mask, *rest = arrays(batch)
    moved = reward.copy()
    for row, length in enumerate(mask.sum(1)):
        if length:
            moved[row, length - 1] += shift
    plain = parts(reward, mask, *rest, discount=1.0)
    changed = parts(factor * moved, mask, *rest, discount=1.0)
    np.testing.assert_allclose(changed, plain, **TOLERANCE)


@EXAMPLES
@given(
    episodes,
    st.permutations(range(4)),
    st.tuples(st.integers(-(2**31), 2**31 - 1), st.integers(-9, 9)).filter(
        lambda pair: pair[0] != pair[1]
    ),
    st.permutations([-(2**31), 0, 2**31 - 1, 7]),
)
def test_names_of_groups_tasks_and_states_do_not_matter(batch, groups, tasks, states):
    reward, mask, group_id, task_id, anchor = arrays(batch)
    renamed = (
        np.array(groups, np.int32)[group_id],
        np.array(tasks, np.int32)[task_id],
        np.array(states, np.int32)[anchor],
    )
    plain = parts(reward, mask, group_id, task_id, anchor)
    np.testing.assert_allclose(parts(reward, mask, *renamed), plain, **TOLERANCE)


@EXAMPLES
@given(episodes, st.sampled_from([np.nan, np.inf, -1e30]), st.integers())
def test_padding_does_not_matter(batch, poison, seed):
    reward, mask, group_id, task_id, anchor = arrays(batch)
    noise = np.int32(seed % 2**31)
    dirty = (np.where(mask, reward, np.float32(poison)), mask)
    ids = (
        np.where(mask.any(1), group_id, noise),
        np.where(mask.any(1), task_id, noise),
        np.where(mask, anchor, noise),
    )
    plain = parts(reward, mask, group_id, task_id, anchor)
    np.testing.assert_array_equal(parts(*dirty, *ids), plain)


@EXAMPLES
@given(episodes)
def test_longer_padding_does_not_matter(batch):
    plain = parts(*arrays(batch))
    padded = arrays(batch, batch=BATCH + 1, steps=STEPS + 2, padding=np.nan)
    longer = parts(*padded)
    np.testing.assert_allclose(longer[:, :BATCH, :STEPS], plain, **TOLERANCE)
    np.testing.assert_array_equal(longer[:, ~padded[1]], 0 * longer[:, ~padded[1]])


@EXAMPLES
@given(episodes)
def test_unscaled_terms_sum_to_zero_in_every_group(batch):
    keywords = {"episode_scale": "none", "step_scale": "none", "ddof": 1}
    _, mask, group_id, task_id, anchor = arrays(batch)
    _, episode, step = parts(*arrays(batch), **keywords)
    for group in range(4):
        assert abs(episode[group_id == group, 0].sum()) < 1e-4
    for task in range(2):
        for state in range(3):
            members = mask & (task_id == task)[:, None] & (anchor == state)
            assert abs(step[members].sum()) < 1e-4
