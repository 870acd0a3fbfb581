"""What recording refuses before it loads a model."""

from pathlib import Path

import pytest

from experiments.harness_control.record import Record
from jerp.errors import ConfigError, UnknownNameError


def test_an_unknown_domain_is_answered_with_the_nearest():
    with pytest.raises(UnknownNameError, match="did you mean 'coding'"):
        Record("codding", Path("recording"))


@pytest.mark.parametrize("name", ["num_tasks", "batch"])
def test_nothing_to_walk_is_refused_by_name(name):
    with pytest.raises(ConfigError, match=f"{name}: expected at least 1, got 0"):
        Record("coding", Path("recording"), **{name: 0})
