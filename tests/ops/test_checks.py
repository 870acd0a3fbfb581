"""Checks name the argument and the place, and let pass what Python cannot see."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from jerp.errors import InputError, ShapeError, UnknownNameError
from jerp.ops.checks import (
    check_any,
    check_axes,
    check_choice,
    check_count,
    check_finite,
    check_ids,
    check_prefix,
    check_settings,
    check_values,
    concrete,
)

X = np.array([[0.0, 1.0], [np.nan, -np.inf]], np.float32)
REAL = np.array([[True, True], [False, True]])


def positive(v):
    return v > 0


REFUSED = {
    "scalar": (
        lambda: check_values("temperature", -1, positive, "> 0"),
        r"temperature: expected > 0, got -1$",
    ),
    "nan": (
        lambda: check_values("temperature", float("nan"), positive, "> 0"),
        r"temperature: expected > 0, got nan$",
    ),
    "array": (
        lambda: check_values("weight", X, lambda v: v >= 0, ">= 0"),
        r"weight: expected >= 0, got nan at \[1, 0\] \(2 of 4 wrong\)",
    ),
    "masked": (
        lambda: check_values("weight", X, lambda v: v >= 0, ">= 0", mask=REAL),
        r"weight: expected >= 0, got -inf at \[1, 1\] \(1 of 4 wrong\)",
    ),
    "finite": (
        lambda: check_finite("reward", jnp.asarray(X), REAL),
        r"reward: expected finite numbers where mask is True .*, got -inf at \[1, 1",
    ),
    "half": (
        lambda: check_finite("reward", jnp.asarray(X, jnp.bfloat16), REAL),
        r"reward: .*got -inf at \[1, 1\] \(1 of 4",
    ),
    "large id": (
        lambda: check_ids("group_id", np.array([0, 3, 2]), np.ones(3, bool), size=2),
        r"group_id: expected ids in \[0, 2\) where .*, got 3 at \[1\] \(2 of 3 wrong\)",
    ),
    "negative id": (
        lambda: check_ids("group_id", np.array([0, -1]), np.ones(2, bool), size=2),
        r"group_id: .*got -1 at \[1\]",
    ),
    "prefix": (
        lambda: check_prefix("mask", np.array([[True, False], [False, True]])),
        r"mask: expected a prefix, .* got True after False at \[1, 1\]",
    ),
    "nothing": (
        lambda: check_any("mask", np.zeros((2, 3), bool)),
        r"mask: expected at least one real entry, got none of 6",
    ),
    "empty": (
        lambda: check_any("mask", np.zeros(0, bool)),
        r"mask: expected at least one real entry, got none of 0",
    ),
}


@pytest.mark.parametrize("name", REFUSED)
def test_refused(name):
    check, message = REFUSED[name]
    with pytest.raises(InputError, match=message) as refusal:
        check()
    assert isinstance(refusal.value, ValueError)


def test_accepted():
    check_values("temperature", jnp.float32(0.5), positive, "> 0")
    check_values(
        "weight", X, np.isfinite, "finite", mask=np.array([[1, 1], [0, 0]]) > 0
    )
    check_finite("reward", X[:1], REAL[:1])
    check_finite("reward", np.full(2, np.nan), np.zeros(2, bool))
    check_ids("group_id", np.array([1, 99]), np.array([True, False]), size=2)
    check_prefix("mask", np.array([[True, False], [False, False], [True, True]]))
    check_prefix("mask", np.zeros(0, bool))
    check_any("mask", REAL)


def test_choices_offer_the_nearest():
    check_choice("scale", "std", ("std", "none"))
    with pytest.raises(UnknownNameError, match=r"unknown scale 'sdt'.*'std'\?.*none"):
        check_choice("scale", "sdt", ("std", "none"))


def check_all(x, mask, ids):
    check_values("x", x, positive, "> 0")
    check_finite("x", x, mask)
    check_ids("ids", ids, mask, size=1)
    check_prefix("mask", mask)
    check_any("mask", mask)
    return jnp.sum(x)


WRONG = (jnp.array([-1.0, jnp.nan]), jnp.array([False, True]), jnp.array([7, -7]))


@pytest.mark.parametrize(
    "traced",
    [
        lambda: jax.jit(check_all)(*WRONG),
        lambda: jax.vmap(check_all)(*(jnp.stack([a, a]) for a in WRONG)),
        lambda: jax.grad(lambda x: check_values("x", x, positive, "> 0") or x[0])(
            WRONG[0]
        ),
    ],
    ids=["jit", "vmap", "grad"],
)
def test_what_only_the_device_sees_passes(traced):
    with pytest.raises(InputError):
        check_all(*WRONG)
    assert traced() is not None


def test_a_constant_is_seen_while_a_function_is_traced():
    with pytest.raises(InputError, match="temperature"):
        jax.jit(lambda x: check_values("temperature", 0.0, positive, "> 0") or x)(1.0)


def test_concrete():
    assert concrete(jnp.arange(2)).tolist() == [0, 1]
    assert jax.jit(lambda x: jnp.bool_(concrete(x) is None))(1.0)


def test_counts_are_whole_numbers_that_a_shape_can_have():
    check_count("num_groups", np.int64(3))
    for bad in (0, 2.0, True, "2", 10**10, None):
        with pytest.raises(InputError, match=r"^num_groups: expected a whole number"):
            check_count("num_groups", bad)
    with pytest.raises(InputError, match=">= 2"):
        check_count("min_group_size", 1, least=2)


def test_settings_out_of_range_are_refused_or_poison_the_answer():
    def answer(x, limit):
        return x + check_settings(
            limit=(limit, lambda v: v > 0, "> 0"), unused=(None, positive, "> 0")
        )

    assert answer(1.0, 2.0) == 1.0
    with pytest.raises(InputError, match=r"^limit: expected > 0, got -2.0$"):
        answer(1.0, -2.0)
    traced = jax.jit(answer)
    assert traced(1.0, 2.0) == 1.0
    assert np.isnan(traced(1.0, -2.0)) and np.isnan(traced(1.0, np.nan))


def test_axes_are_named_by_letter_and_type():
    reward, mask, group = np.zeros((4, 3)), np.ones((4, 3), bool), np.zeros(4, int)
    check_axes(
        reward=(reward, "B T"), mask=(mask, "B T", bool), group_id=(group, "B", int)
    )
    for arguments, message in (
        ({"reward": (reward, "B T"), "mask": (mask.T, "B T")}, r"mask: .* \[4, 3\], g"),
        ({"reward": (reward, "B T"), "mask": (mask[0], "B T")}, r"\[4, 3\], got \[3\]"),
        (
            {"reward": (reward[0], "B T")},
            r"^reward: expected axes \[B, T\], got \[3\]$",
        ),
        ({"reward": (reward, "T")}, r"axes \[T\], got \[4, 3\]. For a batch .*vmap"),
        (
            {"ids": (np.array([2**32, 0]), "N", int)},
            r"ids: expected int32, got 42949672",
        ),
        ({"mask": (reward, "B T", bool)}, "mask: expected type bool, got float"),
        ({"group_id": (reward[0], "B", int)}, "group_id: expected type int, got float"),
    ):
        with pytest.raises(InputError, match=message):
            check_axes(**arguments)
    traced = jax.jit(lambda x: check_axes(x=(x, "N")) or x)
    with pytest.raises(ShapeError, match=r"x: expected axes \[N\], got \[2, 2\]"):
        traced(np.ones((2, 2)))
