import numpy as np
import pytest

from jerp.errors import InputError
from jerp.models.support import measure_support

MASK = np.array([[1, 1], [1, 0], [1, 0]], bool)
FEATURE = np.array([[[0.0], [1.0]], [[2.0], [np.nan]], [[5.0], [1e30]]])
ACTION = np.array([[0, 2], [2, 1], [2, 9]])


def measure(**changes):
    arguments = {
        "feature": FEATURE,
        "action": ACTION,
        "mask": MASK,
        "returns": np.array([0.0, 1.0, 0.5]),
        "task_id": np.array([7, 7, 3]),
        "weight": np.array([1.0, 3.0, 0.0]),
        "num_actions": 4,
    }
    return measure_support(**{**arguments, **changes})


def test_support_by_hand_with_poisoned_padding():
    support = measure()
    assert (support.num_episodes, support.num_tasks, support.num_steps) == (3, 2, 4)
    assert support.feature_min + support.feature_max == (0.0, 5.0)
    assert support.feature_mean == (2.0,)
    assert support.action_counts == (1, 0, 3, 0)
    assert (support.mean_return, support.best_return) == (0.5, 0.75)
    assert support.tasks_with_spread == 0.5
    assert support.effective_sample_size == pytest.approx(1.6)


def test_weights_of_steps_are_counted_by_step():
    weight = np.array([[1.0, 1.0], [1.0, np.nan], [1.0, np.nan]])
    assert measure(weight=weight).effective_sample_size == 4.0


def test_nothing_to_measure_is_refused():
    with pytest.raises(InputError, match="mask: expected at least one real step"):
        measure(mask=np.zeros_like(MASK))
