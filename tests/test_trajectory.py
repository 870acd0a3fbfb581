import jax
import jax.numpy as jnp
import numpy as np
import pytest

from jerp.errors import TrajectoryError
from jerp.trajectory import (
    check_trajectory,
    concatenate,
    pad_steps,
    select,
    valid_episodes,
)
from jerp.typing import Outcome
from tests.storage.episodes import episodes

NAN_INSIDE = np.array([[0, np.nan, 0], [0, 0, 0]], np.float32)
NAN_PADDING = np.array([[0, 0, 0], [0, np.nan, 1e30]], np.float32)


def with_tokens(**fields):
    shape = (2, 3, 4)
    tokens = dict(
        tokens=np.zeros(shape, np.int32),
        token_log_prob=np.zeros(shape, np.float32),
        token_mask=np.ones(shape, bool),
    )
    return {**tokens, **fields}


def test_a_whole_trajectory_comes_back_unchanged():
    trajectory = episodes()
    assert check_trajectory(trajectory) is trajectory


def test_optional_fields_may_all_be_there_or_all_be_absent():
    check_trajectory(episodes(working_set=np.zeros((2, 5), np.int32), **with_tokens()))
    check_trajectory(episodes(legal=None, log_prob=None))


def test_jax_arrays_and_observation_trees_pass():
    trajectory = episodes()
    tree = {"x": trajectory.observation, "ids": np.zeros((2, 3, 4), np.int32)}
    check_trajectory(jax.tree.map(jnp.asarray, trajectory.replace(observation=tree)))


@pytest.mark.parametrize(
    ("fields", "field", "expected", "actual"),
    [
        ({"mask": np.ones(3, bool)}, "mask", "shape [B, T]", "shape [3]"),
        ({"mask": np.ones((2, 3), np.int32)}, "mask", "bool", "int32"),
        (
            {"mask": np.array([[1, 0, 1], [1, 1, 1]], bool)},
            "mask",
            "a prefix in every row",
            "a gap in row 0",
        ),
        ({"action": np.zeros((2, 4), np.int32)}, "action", "shape [2, 3]", "[2, 4]"),
        ({"action": np.zeros((2, 3), np.int64)}, "action", "int32", "int64"),
        ({"reward": np.zeros((2, 3))}, "reward", "float32", "float64"),
        ({"reward": NAN_INSIDE}, "reward", "finite where mask", "NaN"),
        ({"log_prob": NAN_INSIDE}, "log_prob", "finite where mask", "NaN"),
        (
            {"log_prob": np.full((2, 3), 0.5, np.float32)},
            "log_prob",
            "at most 0",
            "a positive log-probability",
        ),
        ({"terminated": np.zeros((2, 3))}, "terminated", "bool", "float64"),
        ({"usage": np.zeros((2, 3, 2), np.float32)}, "usage", "[2, 3, 5]", "[2, 3, 2]"),
        ({"task_id": np.zeros(3, np.int32)}, "task_id", "shape [2]", "shape [3]"),
        ({"score": np.array([0.5, 1.5], np.float32)}, "score", "in [0, 1]", "1.5"),
        ({"score": np.array([0.5, np.nan], np.float32)}, "score", "in [0, 1]", "nan"),
        ({"outcome": np.array([1, 9], np.int32)}, "outcome", "one of", "9"),
        ({"observation": NAN_INSIDE}, "observation", "finite where mask", "NaN"),
        ({"observation": np.zeros((2, 4))}, "observation", "axes [2, 3]", "[2, 4]"),
        ({"final_observation": np.zeros(3)}, "final_observation", "axis [2]", "[3]"),
        ({"legal": np.ones((2, 3), bool)}, "legal", "shape [2, 3, '*']", "[2, 3]"),
        (
            {"legal": np.zeros((2, 3, 3), bool)},
            "action",
            "legal where mask",
            "row 0, step 0",
        ),
        (
            {"action": np.full((2, 3), 7, np.int32)},
            "action",
            "legal where mask",
            "row 0, step 0",
        ),
        (
            {"action": np.full((2, 3), -1, np.int32)},
            "action",
            "legal where mask",
            "row 0, step 0",
        ),
        (with_tokens(token_mask=None), "token_mask", "present, as tokens is", "None"),
        (
            with_tokens(token_mask=np.ones((2, 3, 5), bool)),
            "token_mask",
            "shape [2, 3, 4]",
            "shape [2, 3, 5]",
        ),
        ({"working_set": np.zeros(2, np.int32)}, "working_set", "[2, '*']", "[2]"),
    ],
)
def test_a_broken_contract_names_field_expected_and_actual(
    fields, field, expected, actual
):
    with pytest.raises(TrajectoryError) as caught:
        check_trajectory(episodes(**fields))
    assert caught.value.field == field
    assert expected in caught.value.expected
    assert actual in caught.value.actual


def test_a_feature_that_is_not_finite_is_found_and_named():
    observation = np.array(episodes().observation)
    observation[0, 2, 1] = np.inf
    broken = episodes(observation=observation)
    with pytest.raises(TrajectoryError, match=r"at row 0, step 2, index \[1\]"):
        check_trajectory(broken)
    with pytest.raises(TrajectoryError, match="at row 0, step 2, 'has_draft'"):
        check_trajectory(broken, feature_names=("progress", "has_draft"))


def test_padding_may_hold_anything():
    trajectory = episodes()
    padding = ~trajectory.mask
    check_trajectory(
        trajectory.replace(
            reward=NAN_PADDING,
            log_prob=NAN_PADDING,
            observation=np.stack([NAN_PADDING, NAN_PADDING], axis=-1),
            action=np.where(padding, 99, trajectory.action).astype(np.int32),
            legal=trajectory.legal & ~padding[..., None],
        )
    )


def test_the_score_of_nobodys_answer_is_not_looked_at():
    outcome = np.array([Outcome.SUCCESS, Outcome.INFRASTRUCTURE], np.int32)
    score = np.array([1, np.nan], np.float32)
    trajectory = check_trajectory(episodes(outcome=outcome, score=score))
    assert valid_episodes(trajectory).tolist() == [True, False]


@pytest.mark.parametrize("index", [np.array([1]), np.array([False, True])])
def test_select_takes_whole_episodes(index):
    trajectory = episodes()
    chosen = check_trajectory(select(trajectory, index))
    np.testing.assert_array_equal(chosen.anchor, trajectory.anchor[1:])
    np.testing.assert_array_equal(chosen.seed, [1])
    assert chosen.tokens is None


def test_concatenate_undoes_select():
    trajectory = episodes((3, 1, 2))
    parts = [select(trajectory, np.array(rows)) for rows in ([0], [1, 2])]
    jax.tree.map(np.testing.assert_array_equal, concatenate(parts), trajectory)


def test_concatenate_refuses_batches_that_differ():
    with pytest.raises(TrajectoryError, match="at least one trajectory"):
        concatenate([])
    with pytest.raises(TrajectoryError, match="same fields"):
        concatenate([episodes(), episodes(legal=None)])
    with pytest.raises(TrajectoryError, match=r"observation: .*\[3, 2\].*\[4, 2\]"):
        concatenate([episodes(), episodes(num_steps=4)])


def test_pad_steps_adds_steps_that_are_not_real():
    trajectory = episodes(working_set=np.ones((2, 9), np.int32), **with_tokens())
    padded = check_trajectory(pad_steps(trajectory, 5))
    assert padded.mask.sum() == trajectory.mask.sum()
    for name in ("observation", "legal", "tokens", "reward", "usage"):
        old, new = getattr(trajectory, name), getattr(padded, name)
        assert new.shape == (2, 5, *old.shape[2:]) and new.dtype == old.dtype
        np.testing.assert_array_equal(new[:, :3], old)
        assert not new[:, 3:].any()
    np.testing.assert_array_equal(padded.working_set, trajectory.working_set)
    np.testing.assert_array_equal(
        padded.final_observation, trajectory.final_observation
    )


def test_pad_steps_never_cuts():
    with pytest.raises(TrajectoryError, match="at most 2 steps, got 3"):
        pad_steps(episodes(), 2)
