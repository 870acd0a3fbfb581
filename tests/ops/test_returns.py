"""Returns against their definitions, limits, ends of both kinds and padding."""

from functools import partial

import chex
import jax
import jax.numpy as jnp
import numpy as np
import pytest

from jerp.errors import InputError, UnknownNameError
from jerp.ops.returns import discounted_returns, gae, lambda_returns
from tests.optimised import optimised_jit
from tests.reference import returns as reference

REWARD = np.array([1.0, -0.5, 0.0, 2.0, 0.25], np.float32)
VALUE = np.array([0.3, 1.0, -1.0, 0.5, 0.75], np.float32)
NO = np.zeros(7, bool)


def padded(x, fill=0.0):
    return np.append(x, np.full(2, fill, x.dtype))


def last_real(flag):
    return np.arange(7) == 4 if flag else NO


MASK = np.arange(7) < 5


def call(function, terminated, truncated, fill=0.0, **keywords):
    return function(
        padded(REWARD, fill),
        padded(VALUE, fill),
        last_real(terminated),
        last_real(truncated),
        MASK,
        **keywords,
    )


METHODS = pytest.mark.parametrize("method", ["scan", "associative"])


@METHODS
def test_discounted_returns(transform, method):
    expected = reference.discounted_returns(REWARD.astype(float), 0.9)
    run = transform(partial(discounted_returns, discount=0.9, method=method))
    np.testing.assert_allclose(run(padded(REWARD), MASK), [*expected, 0, 0], rtol=1e-6)


@pytest.mark.parametrize("lambda_", [0.0, 0.7, 1.0])
@pytest.mark.parametrize("end", ["terminated", "truncated", "data stop"])
def test_lambda_returns_and_gae(lambda_, end):
    end_value = 0.0 if end == "terminated" else 3.0
    keywords = {"discount": 0.9, "lambda_": lambda_}
    args = (REWARD.astype(float), VALUE.astype(float), end_value, 0.9, lambda_)
    flags = (end == "terminated", end == "truncated")
    returns = call(lambda_returns, *flags, bootstrap_value=3.0, **keywords)
    expected = [*reference.lambda_returns(*args), 0, 0]
    np.testing.assert_allclose(returns, expected, rtol=1e-6, atol=1e-6)
    advantage = call(gae, *flags, bootstrap_value=3.0, **keywords)
    expected = [*reference.gae(*args), 0, 0]
    np.testing.assert_allclose(advantage, expected, rtol=1e-6, atol=1e-6)


def test_lambda_returns_by_hand():
    """G_1 = 1 + .5 * 4 = 3; G_0 = 0 + .5 (.5 * 2 + .5 * 3) = 1.25."""
    returns = lambda_returns(
        np.array([0.0, 1.0], np.float32),
        np.array([7.0, 2.0], np.float32),
        NO[:2],
        np.array([False, True]),
        ~NO[:2],
        discount=0.5,
        lambda_=0.5,
        bootstrap_value=4.0,
    )
    np.testing.assert_allclose(returns, [1.25, 3.0])


def test_limits():
    """Lambda 1 ignores values; lambda 0 looks one step ahead."""
    keywords = {"discount": 0.9, "bootstrap_value": 3.0}
    monte_carlo = call(lambda_returns, True, False, lambda_=1.0, **keywords)
    discounted = discounted_returns(padded(REWARD), MASK, discount=0.9)
    np.testing.assert_allclose(monte_carlo, discounted, rtol=1e-6)
    one_step = call(lambda_returns, False, True, lambda_=0.0, **keywords)
    ahead = REWARD + 0.9 * np.append(VALUE[1:], 3.0)
    np.testing.assert_allclose(one_step[:5], ahead, rtol=1e-6)


def test_parity_of_transforms(transform):
    bound = partial(lambda_returns, discount=0.9, lambda_=0.7, bootstrap_value=3.0)
    expected = reference.lambda_returns(
        REWARD.astype(float), VALUE.astype(float), 3.0, 0.9, 0.7
    )
    returns = call(transform(bound), False, True)
    np.testing.assert_allclose(returns[:5], expected, rtol=1e-6)


def test_termination_wins_over_truncation():
    keywords = {"discount": 0.9, "lambda_": 0.7, "bootstrap_value": 3.0}
    both = call(lambda_returns, True, True, **keywords)
    np.testing.assert_array_equal(both, call(lambda_returns, True, False, **keywords))
    assert not np.allclose(both, call(lambda_returns, False, True, **keywords))


def test_episodes_in_one_row_do_not_mix():
    """A truncated step in the middle restarts the recursion with its own value."""
    keywords = {"discount": 0.9, "lambda_": 0.7}
    truncated = np.array([0, 1, 0, 0, 0], bool)
    terminated = np.array([0, 0, 0, 0, 1], bool)
    bootstrap = np.array([9.0, 5.0, 9.0, 9.0, 9.0], np.float32)
    row = lambda_returns(
        REWARD,
        VALUE,
        terminated,
        truncated,
        np.ones(5, bool),
        bootstrap_value=bootstrap,
        **keywords,
    )
    first = reference.lambda_returns(REWARD[:2], VALUE[:2], 5.0, 0.9, 0.7)
    second = reference.lambda_returns(REWARD[2:], VALUE[2:], 0.0, 0.9, 0.7)
    np.testing.assert_allclose(row, [*first, *second], rtol=1e-5)


@pytest.mark.parametrize("terminated", [True, False])
def test_padding_reaches_neither_values_nor_gradients(terminated):
    """NaN as the end's value, too, must not count after a natural end."""

    @jax.jit
    def both(reward, value, bootstrap):
        def total(reward, value, bootstrap):
            returns = lambda_returns(
                reward,
                value,
                last_real(terminated),
                last_real(not terminated),
                MASK,
                discount=0.9,
                lambda_=0.7,
                bootstrap_value=bootstrap,
            )
            return jnp.sum(returns**2)

        return jax.value_and_grad(total, argnums=(0, 1))(reward, value, bootstrap)

    clean = both(padded(REWARD), padded(VALUE), 3.0)
    for poison in (np.nan, 1e30):
        end = poison if terminated else 3.0
        dirty = both(padded(REWARD, poison), padded(VALUE, poison), end)
        assert all(np.isfinite(x).all() for x in jax.tree.leaves(dirty))
        chex.assert_trees_all_close(dirty, clean, rtol=1e-6)


def test_a_row_of_padding_is_zero():
    returns = lambda_returns(
        np.full(3, np.nan, np.float32),
        np.full(3, np.nan, np.float32),
        NO[:3],
        NO[:3],
        NO[:3],
        discount=0.9,
        lambda_=0.7,
        bootstrap_value=jnp.nan,
    )
    np.testing.assert_array_equal(returns, np.zeros(3))


LONG = 64
STARTS = [0, 1, 9, 30, 31, 50]
"""Episodes of 1, 8, 21, 1 and 19 steps, and one that the data stop in after 7."""
ENDS = ["terminated", "truncated", "terminated", "truncated", "terminated", "stop"]
REAL = np.arange(LONG) < 57


def long_sequence():
    """Reward, value, terminated, truncated and mask; NaN after the last real step."""
    keys = jax.random.split(jax.random.key(3), 3)
    reward, value, bootstrap = (
        np.array(jax.random.normal(key, (LONG,)), np.float32) for key in keys
    )
    reward[~REAL], value[~REAL] = np.nan, np.nan
    terminated, truncated = np.zeros((2, LONG), bool)
    for end, kind in zip([*STARTS[1:], 57], ENDS, strict=True):
        terminated[end - 1], truncated[end - 1] = kind == ENDS[0], kind == ENDS[1]
    return (reward, value, terminated, truncated, REAL), bootstrap


def episodes_of(arrays, bootstrap):
    """Rewards, values and end value of each episode, in float64."""
    reward, value, terminated, _, _ = arrays
    for start, end in zip(STARTS, [*STARTS[1:], 57], strict=True):
        end_value = 0.0 if terminated[end - 1] else float(bootstrap[end - 1])
        yield (*(x[start:end].astype(float) for x in (reward, value)), end_value)


@optimised_jit
def both_methods(arrays, bootstrap, discount, lambda_):
    keywords = {
        "discount": discount,
        "lambda_": lambda_,
        "bootstrap_value": bootstrap,
    }
    return [
        (
            lambda_returns(*arrays, **keywords, method=method),
            gae(*arrays, **keywords, method=method),
            discounted_returns(arrays[0], arrays[4], discount=discount, method=method),
        )
        for method in ("scan", "associative")
    ]


@pytest.mark.parametrize(
    ("discount", "lambda_"), [(0.95, 0.9), (1.0, 1.0), (0.9, 0.0), (0.0, 0.5)]
)
def test_several_episodes_in_one_sequence_by_both_methods(discount, lambda_):
    """A natural end is worth 0 and any other its own value, also in the middle."""
    arrays, bootstrap = long_sequence()
    parts = list(episodes_of(arrays, bootstrap))
    padding = np.zeros(LONG - 57)
    expected = [
        np.concatenate([*(f(*p, discount, lambda_) for p in parts), padding])
        for f in (reference.lambda_returns, reference.gae)
    ]
    whole = reference.discounted_returns(arrays[0][REAL].astype(float), discount)
    expected.append(np.concatenate([whole, padding]))
    scan, associative = both_methods(arrays, bootstrap, discount, lambda_)
    for found, other, wanted in zip(scan, associative, expected, strict=True):
        np.testing.assert_allclose(found, wanted, rtol=1e-5, atol=1e-5)
        np.testing.assert_allclose(other, found, rtol=1e-5, atol=1e-5)


def test_an_end_is_worth_what_its_flag_says():
    """The same step truncated instead of terminated adds discount times its value."""
    arrays, bootstrap = long_sequence()
    reward, value, terminated, truncated, mask = arrays
    step = 29
    assert terminated[step]
    now_cut = (terminated & (np.arange(LONG) != step), truncated)
    now_cut = (now_cut[0], truncated | (np.arange(LONG) == step))
    ended, _ = both_methods(arrays, bootstrap, 0.9, 0.8)
    cut, _ = both_methods((reward, value, *now_cut, mask), bootstrap, 0.9, 0.8)
    change = np.asarray(cut[0]) - np.asarray(ended[0])
    own = 0.9 * bootstrap[step] * (0.9 * 0.8) ** np.arange(21)[::-1]
    np.testing.assert_allclose(change[9:30], own, rtol=1e-4, atol=1e-6)
    assert not change[:9].any()
    assert not change[30:].any()


def test_both_methods_have_the_same_gradients():
    arrays, bootstrap = long_sequence()
    reward, value, *flags = arrays

    @optimised_jit
    def gradients(reward, value, discount, lambda_):
        def total(method, *args):
            reward, value, discount, lambda_ = args
            advantage = gae(
                reward,
                value,
                *flags,
                discount=discount,
                lambda_=lambda_,
                bootstrap_value=bootstrap,
                method=method,
            )
            return jnp.sum(advantage**2)

        return [
            jax.grad(partial(total, method), argnums=(0, 1, 2, 3))(
                reward, value, discount, lambda_
            )
            for method in ("scan", "associative")
        ]

    for lambda_ in (0.8, 0.0):
        scan, associative = gradients(reward, value, 0.9, lambda_)
        assert all(np.isfinite(x).all() for x in jax.tree.leaves(scan))
        assert float(scan[3]) != 0.0
        chex.assert_trees_all_close(scan, associative, rtol=1e-4, atol=1e-4)


def test_a_nan_reaches_the_steps_before_it_in_its_episode_alone():
    arrays, bootstrap = long_sequence()
    dirty = arrays[0].copy()
    dirty[40] = np.nan
    clean, _ = both_methods(arrays, bootstrap, 0.9, 0.8)
    for returns, advantage, _ in both_methods(
        (dirty, *arrays[1:]), bootstrap, 0.9, 0.8
    ):
        for found, plain in ((returns, clean[0]), (advantage, clean[1])):
            wrong = np.isnan(found)
            assert np.flatnonzero(wrong).tolist() == list(range(31, 41))
            np.testing.assert_allclose(
                np.asarray(found)[~wrong], np.asarray(plain)[~wrong], atol=1e-5
            )


def bad(**changed):
    arrays, bootstrap = long_sequence()
    names = ("reward", "value", "terminated", "truncated", "mask")
    arguments = {
        **dict(zip(names, arrays, strict=True)),
        "bootstrap_value": bootstrap,
        "discount": 0.9,
        "lambda_": 0.8,
    }
    for name, value in changed.items():
        if isinstance(value, tuple):
            place, number = value
            arguments[name] = arguments[name].copy()
            arguments[name][place] = number
        else:
            arguments[name] = value
    return arguments


BAD = [
    ({"reward": (40, np.nan)}, r"reward: expected finite .*got nan at \[40\]"),
    ({"value": (3, np.inf)}, r"value: expected finite .*got inf at \[3\]"),
    ({"bootstrap_value": (8, np.nan)}, r"bootstrap_value: .*got nan at \[8\]"),
    ({"mask": (3, False)}, r"mask: expected a prefix, .*at \[4\]"),
    ({"discount": 1.01}, r"discount: expected in \[0, 1\], got 1.01"),
    ({"discount": np.nan}, r"discount: expected in \[0, 1\], got nan"),
    ({"lambda_": -0.5}, r"lambda_: expected in \[0, 1\], got -0.5"),
]


@pytest.mark.parametrize(("changed", "message"), BAD)
def test_bad_input_is_refused_by_name(changed, message):
    for function in (lambda_returns, gae):
        with pytest.raises(InputError, match=message):
            function(**bad(**changed))
    name = next(iter(changed))
    if name in ("reward", "mask", "discount"):
        arguments = bad(**changed)
        with pytest.raises(InputError, match=message):
            discounted_returns(
                *(arguments[name] for name in ("reward", "mask")),
                discount=arguments["discount"],
            )


def test_an_unknown_method_is_refused():
    with pytest.raises(UnknownNameError, match="unknown method 'assoc'"):
        gae(**bad(), method="assoc")
    with pytest.raises(UnknownNameError, match="unknown method 'assoc'"):
        discounted_returns(REWARD, ~NO[:5], discount=0.9, method="assoc")


def test_a_natural_end_needs_no_value_after_it():
    """The value of steps 0 and 29, which end naturally, is never looked at."""
    arguments = bad(bootstrap_value=(0, np.nan))
    clean = lambda_returns(**bad())
    np.testing.assert_array_equal(lambda_returns(**arguments), clean)


def test_a_mask_with_a_gap_is_nan_under_jit():
    arrays, bootstrap = long_sequence()
    gap = REAL & (np.arange(LONG) != 3)
    for found in jax.tree.leaves(both_methods((*arrays[:4], gap), bootstrap, 0.9, 0.8)):
        np.testing.assert_array_equal(np.isnan(found), gap)


@METHODS
@pytest.mark.parametrize(("name", "share"), [("discount", 1.5), ("lambda_", -0.5)])
def test_a_share_out_of_range_is_nan_under_jit(name, share, method):
    run = jax.jit(partial(lambda_returns, bootstrap_value=3.0, method=method))
    arguments = {"discount": 0.9, "lambda_": 0.8, name: share}
    found = call(run, False, True, **arguments)
    assert np.isnan(np.asarray(found)[:4]).all()
    assert not np.asarray(found)[5:].any()
    if name == "discount":
        run = jax.jit(partial(discounted_returns, method=method))
        found = run(padded(REWARD), MASK, discount=share)
        assert np.isnan(np.asarray(found)[:4]).all()
        assert not np.asarray(found)[5:].any()


def test_half_precision_of_the_discount():
    """0.95 is 0.94921875 there, and its square is rounded in float32."""
    half = jnp.bfloat16(0.95)
    arrays = (REWARD, VALUE, NO[:5], NO[:5], ~NO[:5])
    run = partial(gae, *arrays, bootstrap_value=3.0)
    found = run(discount=half, lambda_=half)
    expected = run(discount=np.float32(half), lambda_=np.float32(half))
    np.testing.assert_allclose(found, expected, rtol=1e-6)


@METHODS
@pytest.mark.parametrize("kind", [jnp.bfloat16, jnp.int32])
def test_half_precision_and_integers_come_in(kind, method):
    """In bfloat16 a sum of ones stops at 256; integers must not round the discount."""
    reward, mask = jnp.ones(300, kind), np.ones(300, bool)
    run = jax.jit(partial(discounted_returns, method=method))
    found = run(reward, mask, discount=1.0)
    assert found.dtype == jnp.float32
    np.testing.assert_array_equal(found, np.arange(300, 0, -1))
    np.testing.assert_allclose(run(reward, mask, discount=0.5)[0], 2.0, rtol=1e-6)


@METHODS
def test_half_precision_of_rewards_and_values(method):
    half = [x.astype(jnp.bfloat16) for x in (jnp.asarray(REWARD), jnp.asarray(VALUE))]
    full = [np.asarray(x).astype(np.float32) for x in half]
    flags = (NO[:5], NO[:5], ~NO[:5])
    run = jax.jit(
        partial(gae, discount=0.9, lambda_=0.7, bootstrap_value=3.0, method=method)
    )
    assert run(*half, *flags).dtype == jnp.float32
    np.testing.assert_allclose(run(*half, *flags), run(*full, *flags), rtol=1e-6)


def test_one_trace_whatever_the_discount_and_another_for_another_method():
    @chex.assert_max_traces(n=1)
    def plain(discount, method):
        return discounted_returns(REWARD, ~NO[:5], discount=discount, method=method)

    returns = jax.jit(plain, static_argnums=1)
    assert not np.allclose(returns(0.5, "scan"), returns(0.9, "scan"))
    with pytest.raises(AssertionError, match="traced"):
        returns(0.5, "associative")
