from dataclasses import fields, replace
from pathlib import Path

import pytest

from jerp.errors import ConfigError
from jerp.runs.train_harness.settings import (
    TrainSettings,
    check_settings,
    command,
    recorded_settings,
)

SETTINGS = TrainSettings((Path("a"), Path("b c")), Path("out"))


def test_the_defaults_and_their_limits_are_accepted():
    check_settings(SETTINGS)
    check_settings(
        replace(SETTINGS, temperature=float("inf"), min_weight=0, discount=0)
    )


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"trajectories": ()}, "trajectories: expected at least one folder"),
        ({"temperature": 0.0}, "--temperature: expected above 0, or inf, got 0.0"),
        ({"temperature": float("nan")}, "--temperature"),
        ({"epochs": 0}, "--epochs: expected at least 1, got 0"),
        ({"batch_size": 0}, "--batch-size"),
        ({"hidden_size": 0}, "--hidden-size"),
        ({"seed": -1}, "--seed"),
        ({"min_weight": -0.1}, "--min-weight"),
        ({"max_weight": 0.1}, "--max-weight: expected above --min-weight, got 0.1"),
        ({"entropy_weight": -1.0}, "--entropy-weight"),
        ({"learning_rate": 0.0}, "--learning-rate"),
        ({"discount": 1.1}, "--discount"),
        ({"value_epochs": 0}, "--value-epochs"),
        ({"value_learning_rate": -1.0}, "--value-learning-rate"),
        ({"lambda_": 2.0}, r"--lambda: expected in \[0, 1\], got 2.0"),
        (
            {"leave_one_out": True, "advantage": "step"},
            "--leave-one-out: expected only with --advantage trajectory",
        ),
    ],
)
def test_what_cannot_be_is_refused_by_the_options_name(changes, message):
    with pytest.raises(ConfigError, match=message):
        check_settings(replace(SETTINGS, **changes))


def test_the_command_says_what_is_not_default():
    assert command(SETTINGS) == "jerp train harness a 'b c' --out out"
    changed = replace(SETTINGS, normalize=True, batch_size=8, lambda_=0.5)
    assert command(changed).endswith("--batch-size 8 --normalize --lambda 0.5")


def test_every_setting_is_recorded_but_not_where_files_are():
    recorded = recorded_settings(replace(SETTINGS, temperature=float("inf")))
    assert recorded["temperature"] == "inf"
    names = {field.name for field in fields(TrainSettings)}
    assert set(recorded) == names - {"trajectories", "out"}
