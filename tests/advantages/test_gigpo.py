"""GiGPO's advantages: by hand, by reference, and at their limits."""

import math
from functools import partial

import chex
import jax
import jax.numpy as jnp
import numpy as np
import pytest

from jerp.advantages.gigpo import gigpo_advantages
from jerp.advantages.group import group_relative_advantages
from jerp.errors import ConfigError
from tests.advantages.batches import (
    DEFAULTS,
    DENSE,
    EPISODES,
    STATIC,
    arrays,
    flat,
    gigpo,
    optimised_gigpo,
)
from tests.reference import gigpo as reference

HALF = {"num_groups": 4, "discount": 0.5, "epsilon": 0.0}
SMALL = arrays(EPISODES)
REWARD, MASK, GROUP, TASK, ANCHOR = SMALL


def real(x, mask=MASK):
    """Real entries, after a look at the padding."""
    x = np.asarray(x)
    np.testing.assert_array_equal(x[~mask], np.zeros((~mask).sum()))
    return x[mask]


@pytest.mark.parametrize("how", [gigpo, gigpo_advantages], ids=["jit", "eager"])
def test_by_hand(how):
    """Returns 1, 0 | 4, 2; to go (.5, 1), (0, 0, 0) | (2, 4), (2, 0).

    State 0 of task 5 is met with .5, 0, 0, twice by one episode: mean 1/6, standard
    deviation sqrt(1/18). Its states 1 and 2 are met once.
    """
    found = how(*SMALL, **HALF)
    up, down = math.sqrt(2), -math.sqrt(0.5)
    episode = [1, 1, -1, -1, -1, 1, 1, -1, -1]
    step = [up, 0, down, down, 0, 1, 1, -1, -1]
    np.testing.assert_allclose(real(found.episode), episode, rtol=1e-6)
    np.testing.assert_allclose(real(found.step), step, rtol=1e-6)
    np.testing.assert_allclose(real(found.total), np.add(episode, step), rtol=1e-6)
    assert found.total.dtype == found.step.dtype == jnp.float32
    coverage = found.coverage
    assert [int(x) for x in (coverage.groups, coverage.size_min)] == [5, 1]
    assert int(coverage.size_max) == 3 and int(found.num_invalid) == 0
    np.testing.assert_allclose(coverage.size_mean, 9 / 5, rtol=1e-6)
    np.testing.assert_allclose(coverage.singleton_share, 2 / 5, rtol=1e-6)
    assert found.dead.tolist() == [False] * 4 and found.dead_share == 0


def test_weighting_by_steps_by_hand():
    """The episodes of group 0 have 2 and 3 steps: mean 2/5, variance 6/25 of 5 steps.

    ddof=1 makes it 6/20: one of the 5 steps is taken away, not one of the 2 episodes.
    """
    bound = partial(gigpo, *SMALL, **HALF, weighting="step", ddof=1)
    plain = real(bound(episode_scale="none", step_scale="none").episode)[:5]
    np.testing.assert_allclose(plain, [0.6, 0.6, -0.4, -0.4, -0.4], rtol=1e-6)
    scaled = real(bound().episode)[:5]
    np.testing.assert_allclose(scaled, plain / math.sqrt(0.3), rtol=1e-6)


UNSCALED = {"episode_scale": "none", "step_scale": "none", "ddof": 1}
BY_STEP = {"weighting": "step", "ddof": 1}


@pytest.mark.parametrize(
    "keywords",
    [
        {},
        {"ddof": 1, "discount": 0.0, "epsilon": 0.1},
        BY_STEP,
        UNSCALED,
        {**UNSCALED, **BY_STEP, "step_weight": 0.3},
        {"episode_scale": "batch_std", "step_scale": "max", "discount": 1.0, "ddof": 1},
        {"episode_scale": "max", "step_scale": "batch_std", "weighting": "step"},
    ],
    ids=str,
)
def test_equals_the_reference(keywords):
    batch = arrays(DENSE, padding=np.nan)
    found = gigpo(*batch, **keywords)
    names = ("total", "episode", "step")
    for name, expected in zip(names, reference.gigpo(DENSE, **keywords), strict=True):
        ours = real(getattr(found, name), batch[1])
        np.testing.assert_allclose(ours, flat(expected), rtol=2e-6, atol=2e-6)
    sizes = reference.group_sizes(DENSE)
    coverage = [int(found.coverage.groups), int(found.coverage.size_max)]
    assert coverage == [len(sizes), max(sizes)]
    assert found.coverage.singleton_share == np.float32(sizes.count(1) / len(sizes))
    np.testing.assert_allclose(found.coverage.size_mean, np.mean(sizes), rtol=1e-6)


@pytest.mark.parametrize(
    ("before", "after", "terms"),
    [
        ({}, {"discount": 0.9}, ["step", "total"]),
        ({}, {"step_weight": 0.5}, ["total"]),
        ({}, {"epsilon": 0.1}, ["episode", "step", "total"]),
        ({}, {"ddof": 1}, ["episode", "step", "total"]),
        ({"ddof": 1}, BY_STEP, ["episode", "total"]),
        # Each scale is of its own term: these two terms each see one change.
        ({"ddof": 1}, UNSCALED, ["episode", "step", "total"]),
    ],
    ids=str,
)
def test_each_keyword_changes_its_terms(before, after, terms):
    old, new = (gigpo(*arrays(DENSE), **keywords) for keywords in (before, after))
    changed = [
        name
        for name in ("episode", "step", "total")
        if not np.allclose(getattr(old, name), getattr(new, name), atol=1e-3)
    ]
    assert changed == terms


@pytest.mark.parametrize("weighting", ["trajectory", "step"])
def test_without_a_step_term_it_is_grpo(weighting):
    """Weight 0, or no state that repeats: the total is the episode's term, exactly.

    That is the group-relative advantage, compiled once more and so rounded once more.
    """
    reward, mask, group_id, task_id, _ = batch = arrays(DENSE)
    length = mask.sum(1).astype(np.float32)
    grpo = jax.jit(partial(group_relative_advantages, num_groups=4, ddof=1))(
        jnp.sum(reward, axis=1),
        group_id,
        length > 0,
        weight=length if weighting == "step" else None,
    )
    expected = np.where(mask, np.asarray(grpo.value)[:, None], 0)
    bound = partial(gigpo, weighting=weighting, ddof=1)
    weightless = bound(*batch, step_weight=0.0)
    np.testing.assert_array_equal(weightless.total, weightless.episode)
    np.testing.assert_allclose(weightless.total, expected, rtol=1e-6)
    np.testing.assert_array_equal(weightless.dead, grpo.dead)
    unique = np.arange(mask.size, dtype=np.int32).reshape(mask.shape)
    alone = bound(reward, mask, group_id, task_id, unique)
    np.testing.assert_array_equal(alone.total, weightless.total)
    np.testing.assert_array_equal(alone.step, np.zeros(mask.shape))
    assert alone.coverage.singleton_share == 1


def test_equal_text_of_two_tasks_never_shares_a_baseline():
    """Both tasks call their states 0 and 1; one task always wins, the other never."""
    episodes = [(t, t, [(0, 0.0), (1, float(t))]) for t in (0, 0, 1, 1)]
    found = gigpo(*arrays(episodes), **HALF)
    np.testing.assert_array_equal(found.step, np.zeros_like(REWARD))
    assert int(found.coverage.groups) == 4 and int(found.coverage.size_max) == 2
    assert found.dead.tolist() == [True, True, False, False] and found.dead_share == 1
    # Were they compared by the state alone, as one task, they would not be equal.
    one_task = arrays([(group, 7, steps) for group, _, steps in episodes])
    assert np.abs(gigpo(*one_task, **HALF).step).max() > 0.5


def test_a_revisited_state_has_several_members_of_one_episode():
    episodes = [(0, 0, [(0, 0.0), (0, 0.0), (0, 1.0)])]
    found = gigpo(*arrays(episodes), **{**HALF, **UNSCALED})
    expected = np.array([0.25, 0.5, 1.0]) - 1.75 / 3
    np.testing.assert_allclose(found.step[0, :3], expected, rtol=1e-6)
    assert int(found.coverage.groups) == 1
    np.testing.assert_array_equal(found.episode, np.zeros_like(REWARD))


@pytest.mark.parametrize("keywords", [{}, BY_STEP])
def test_equal_returns_give_exactly_zero(keywords):
    """9.9 has no float32: peers divide the rounding by epsilon, and get -0.48."""
    episodes = [(0, 0, [(0, 0.0), (1, 0.0), (2, 9.9)])] * 20
    found = optimised_gigpo(*arrays(episodes), **keywords)
    np.testing.assert_array_equal(found.total, np.zeros_like(REWARD))
    assert found.dead.tolist() == [True, False, False, False]


def test_sums_that_differ_by_rounding_are_equal():
    """In float32 .7 + .9 + .4 is not 2; divided by epsilon that would be 0.1."""
    parts, whole = [(0, 0.7), (1, 0.9), (1, 0.4)], [(0, 2.0), (1, 1.3), (1, -1.3)]
    assert np.float32(0.7) + np.float32(0.9) + np.float32(0.4) != 2
    for steps in (whole, [(0, 2.0)]):
        found = optimised_gigpo(*arrays([(0, 0, parts), (0, 0, steps)]), discount=1.0)
        np.testing.assert_array_equal(found.episode, np.zeros_like(REWARD))
        np.testing.assert_array_equal(found.step[:, 0], np.zeros(len(REWARD)))
        assert found.dead[0] and found.dead_share == 1
    more = optimised_gigpo(
        *arrays([(0, 0, parts), (0, 0, [(0, 2.00001)])]), discount=1.0
    )
    np.testing.assert_allclose(more.episode[:2, 0], [-0.83, 0.83], atol=0.02)
    # A real difference counts beside large sums: these are 30.000 and 30.001.
    large = [[(0, 10.0), (1, 10.0), (1, 10.0 + more)] for more in (0.0, 1e-3)]
    found = optimised_gigpo(*arrays([(0, 0, steps) for steps in large]), discount=1.0)
    np.testing.assert_allclose(found.episode[:2, 0], [-1, 1], atol=0.01)
    # A single reward is not the result of a sum: its last bit counts.
    last_bit = float(np.nextafter(np.float32(2), np.float32(3)))
    single = [(0, 0, [(0, 2.0)]), (0, 0, [(0, last_bit)])]
    found = optimised_gigpo(*arrays(single), discount=1.0, epsilon=0.0)
    np.testing.assert_allclose(found.total[:2, 0], [-2, 2], rtol=1e-6)


def test_a_return_repeated_on_every_step_counts_once_a_step():
    """It cannot be told from dense rewards: the docstring warns, nothing mends it."""
    sparse = [(0, 0, [(0, 0.0), (0, 0.0), (1, 1.0)]), (0, 0, [(0, 0.0), (1, 0.0)])]
    repeated = [(0, 0, [(0, 1.0), (0, 1.0), (1, 1.0)]), sparse[1]]
    once, thrice = (gigpo(*arrays(e), **UNSCALED) for e in (sparse, repeated))
    np.testing.assert_allclose(once.episode[:2, 0], [0.5, -0.5])
    np.testing.assert_allclose(thrice.episode[:2, 0], [1.5, -1.5])


def test_an_episode_without_an_answer_enters_nothing():
    """The fifth of DENSE has no step: without it the rest is the same."""
    kept = [i for i, episode in enumerate(DENSE) if episode[2]]
    whole = gigpo(*arrays(DENSE, padding=np.nan))
    rest = gigpo(*arrays([DENSE[i] for i in kept]))
    assert len(kept) == len(DENSE) - 1
    for name in ("total", "episode", "step"):
        ours = np.asarray(getattr(whole, name))
        np.testing.assert_array_equal(ours[kept], getattr(rest, name)[: len(kept)])
        np.testing.assert_array_equal(ours[4], np.zeros_like(ours[4]))
    chex.assert_trees_all_equal(whole.coverage, rest.coverage)
    assert int(whole.num_invalid) == 0


def test_batches_of_half_precision_side_by_side():
    """vmap, and float32 sums: in bfloat16, 256 + 1 is 256, and 256 + 3 is 260."""
    episodes = [(0, 0, [(0, 256.0), (1, 1.0)]), (0, 0, [(0, 256.0), (2, 3.0)])]
    batches = [np.stack(pair) for pair in zip(arrays(episodes), SMALL, strict=True)]
    bound = partial(gigpo_advantages, **HALF, episode_scale="none")
    found = jax.jit(jax.vmap(bound))(
        jnp.asarray(batches[0], jnp.bfloat16), *batches[1:]
    )
    assert found.total.dtype == jnp.float32
    np.testing.assert_array_equal(found.episode[0, :2, 0], [-1, 1])
    np.testing.assert_array_equal(found.episode[1, :4, 0], [0.5, -0.5, 1, -1])
    np.testing.assert_allclose(
        found.step[1], gigpo(*SMALL, **HALF).step, rtol=1e-6, atol=1e-6
    )


def test_no_gradient_flows_through():
    def scalar(reward, step_weight):
        found = gigpo_advantages(reward, *SMALL[1:], **HALF, step_weight=step_weight)
        return jnp.sum(found.total) + jnp.sum(found.step) + jnp.sum(found.episode)

    gradient = jax.jit(jax.grad(scalar, argnums=(0, 1)))
    for poison in (np.nan, 1e30):
        reward = np.where(MASK, REWARD, np.float32(poison))
        by_reward, by_weight = gradient(reward, 1.0)
        np.testing.assert_array_equal(by_reward, np.zeros_like(REWARD))
        assert by_weight == 0


def test_a_nan_reward_breaks_its_own_groups_alone():
    """In the first step of the last episode: its return, and its return from there.

    Of the states that only later, finite returns came after, nothing is unknown.
    """
    reward = REWARD.copy()
    reward[3, 0] = np.nan
    found, clean = gigpo(reward, *SMALL[1:], **HALF), gigpo(*SMALL, **HALF)
    assert int(found.num_invalid) == 1
    broken = [2, 2, 3, 3], [0, 1, 0, 1]
    for name, (row, column) in (
        ("episode", broken),
        ("total", broken),
        ("step", ([2, 3], [1, 0])),
    ):
        expected = np.array(getattr(clean, name))
        expected[row, column] = np.nan
        np.testing.assert_array_equal(getattr(found, name), expected)


@pytest.mark.parametrize("bad", [np.inf, -np.inf, -2e38])
def test_an_infinite_or_overflowing_sum_is_counted_and_settles_nothing(bad):
    """Beside other rewards, where a tolerance made of it would be infinite too."""
    episodes = [
        (0, 0, [(0, bad), (1, bad)]),
        (0, 0, [(0, 1.0), (1, 2.0)]),
        (1, 1, [(0, 3.0), (1, 5.0)]),
        (1, 1, [(0, 3.0), (1, 4.0)]),
    ]
    found = gigpo(*arrays(episodes), **HALF)
    assert int(found.num_invalid) == 1 and not found.dead[0]
    assert np.isnan(found.episode[:2, :2]).all()
    assert np.isnan(found.step[:2, 0]).all()
    assert np.isfinite(found.total[2:]).all()


def test_under_jit_holes_and_unknown_groups_are_nan_and_counted():
    holes = MASK.copy()
    holes[1, 1] = False
    found = gigpo(REWARD, holes, *SMALL[2:], **HALF)
    assert np.isnan(np.asarray(found.total)[:2][holes[:2]]).all()
    assert np.isfinite(found.total[2:]).all() and int(found.num_invalid) == 1
    group_id = GROUP.copy()
    group_id[3] = 4
    unknown = gigpo(REWARD, MASK, group_id, *SMALL[3:], **HALF)
    assert np.isnan(unknown.total[3, :2]).all() and np.isfinite(unknown.step).all()
    assert np.isfinite(unknown.total[:3]).all() and int(unknown.num_invalid) == 1
    assert unknown.dead.tolist() == [False, True, False, False]


def test_under_jit_a_batch_of_nothing_is_zero():
    found = gigpo(REWARD, np.zeros_like(MASK), *SMALL[2:], **HALF)
    np.testing.assert_array_equal(found.total, np.zeros_like(REWARD))
    coverage = found.coverage
    sizes = (coverage.groups, coverage.size_min, coverage.size_mean, coverage.size_max)
    assert [float(x) for x in sizes] == [0, 0, 0, 0]
    assert np.isnan(coverage.singleton_share) and np.isnan(found.dead_share)


@pytest.mark.parametrize(
    ("argument", "change", "message"),
    [
        (0, lambda x: x.__setitem__((1, 2), np.nan), r"reward: .*got nan at \[1, 2\]"),
        (1, lambda x: x.__setitem__((1, 1), False), r"mask: expected a prefix"),
        (1, lambda x: x.fill(False), "mask: expected at least one real entry"),
        (2, lambda x: x.__setitem__(0, 4), r"group_id: .* in \[0, 4\) .*got 4"),
        (2, lambda x: x.__setitem__(0, -1), r"group_id: .* in \[0, 4\) .*got -1"),
    ],
)
def test_bad_data_is_named(argument, change, message):
    batch = [x.copy() for x in SMALL]
    change(batch[argument])
    with pytest.raises(ValueError, match=message):
        gigpo_advantages(*batch, **HALF)


@pytest.mark.parametrize(
    ("keywords", "message"),
    [
        ({"discount": 1.5}, r"discount: expected in \[0, 1\], got 1.5"),
        ({"step_weight": -1.0}, "step_weight: expected a finite number >= 0, got -1"),
        ({"step_weight": math.inf}, "step_weight: expected a finite number >= 0"),
        ({"epsilon": -1.0}, "epsilon: expected >= 0"),
        ({"ddof": 2}, "ddof: expected 0 or 1"),
        ({"weighting": "rows"}, "unknown weighting 'rows'"),
        ({"episode_scale": "batch"}, "unknown episode_scale .*'batch_std'"),
        ({"step_scale": "batch"}, "unknown step_scale .*'batch_std'"),
    ],
)
def test_bad_keywords_are_named(keywords, message):
    with pytest.raises(ValueError, match=message):
        gigpo_advantages(*SMALL, **{**HALF, **keywords})


def test_weighting_by_steps_has_no_scale_of_the_batch():
    with pytest.raises(ConfigError, match='weighting="step" weighs within groups'):
        gigpo_advantages(*SMALL, **HALF, weighting="step", episode_scale="batch_std")


def test_wrong_shapes_and_types_are_named():
    with pytest.raises(ValueError, match=r"anchor: expected axes \[B, T\]"):
        gigpo_advantages(REWARD, MASK, GROUP, TASK, ANCHOR[:, :3], **HALF)
    with pytest.raises(ValueError, match="mask: expected type bool"):
        gigpo_advantages(REWARD, MASK.astype(np.float32), *SMALL[2:], **HALF)


def test_one_trace_a_shape():
    @partial(jax.jit, static_argnames=STATIC)
    @chex.assert_max_traces(n=2)
    def traced(*batch, **keywords):
        return gigpo_advantages(*batch, **keywords).total

    def trace(*batch, **keywords):
        jax.eval_shape(partial(traced, **{**DEFAULTS, **keywords}), *batch)

    chex.clear_trace_counter()
    for i in range(3):
        batch = (REWARD + i, np.roll(MASK, i, 0), GROUP, TASK - i, ANCHOR + i)
        trace(*batch, discount=0.1 * i, step_weight=1.0 * i, epsilon=0.1)
    trace(*SMALL, weighting="step")
    with pytest.raises(AssertionError, match="2 times"):
        trace(*SMALL, num_groups=5)


def test_padding_anchors_and_wide_ids_are_refused():
    batch = [np.array(x) for x in SMALL]
    batch[4][0, 0] = -1
    with pytest.raises(ValueError, match=r"^anchor: expected >= 0 in real steps, got"):
        gigpo_advantages(*batch, num_groups=4)
    wide = TASK.astype(np.int64) + 2**32
    with pytest.raises(ValueError, match=r"^task_id: expected int32, got 42949"):
        gigpo_advantages(*SMALL[:3], wide, SMALL[4], num_groups=4)
