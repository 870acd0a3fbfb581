import copy
import inspect

import pytest

import jerp.errors
from jerp.errors import (
    ConfigError,
    EnvironmentCheckError,
    ExecutorError,
    InfrastructureError,
    InputError,
    JerpError,
    MissingExtraError,
    SandboxError,
    ShapeError,
    SkillError,
    StorageError,
    StoreMissError,
    TrajectoryError,
    UnknownNameError,
    WeightsError,
)

EXAMPLES = {
    ConfigError: (ConfigError("seeds: expected >= 1, got 0"), ValueError),
    EnvironmentCheckError: (EnvironmentCheckError("anchor", "a", "b"), ValueError),
    ExecutorError: (ExecutorError("no model"), RuntimeError),
    InfrastructureError: (InfrastructureError("it died"), SandboxError),
    InputError: (InputError("k: expected >= 1, got 0"), ValueError),
    MissingExtraError: (MissingExtraError("torch", "parity"), ImportError),
    SandboxError: (SandboxError("no protections"), RuntimeError),
    ShapeError: (ShapeError("mask: expected axes [N], got [2, 3]"), ValueError),
    SkillError: (SkillError("name: expected some words, got none"), ValueError),
    StorageError: (StorageError("a.json: truncated"), OSError),
    StoreMissError: (StoreMissError("never recorded"), KeyError),
    TrajectoryError: (TrajectoryError("mask", "bool", "int32"), ValueError),
    UnknownNameError: (UnknownNameError("domain", "codin", ("coding",)), ValueError),
    WeightsError: (WeightsError("not in the cache"), OSError),
}


def test_every_error_of_the_package_is_listed_here():
    classes = {getattr(jerp.errors, name) for name in jerp.errors.__all__}
    assert classes == {*EXAMPLES, JerpError}
    assert all(inspect.getdoc(error) for error in classes)


@pytest.mark.parametrize("kind", EXAMPLES)
def test_an_error_is_ours_and_also_the_standard_one(kind):
    error, standard = EXAMPLES[kind]
    assert type(error) is kind
    assert isinstance(error, JerpError) and isinstance(error, standard)


@pytest.mark.parametrize("kind", EXAMPLES)
def test_an_error_survives_being_rebuilt(kind):
    """As it is by `copy`, and when it crosses the border between two processes."""
    error, _ = EXAMPLES[kind]
    again = copy.copy(error)
    assert again is not error
    assert type(again) is kind and str(again) == str(error)
    assert vars(again) == vars(error)


def test_a_message_is_never_quoted_or_wrapped():
    assert str(EXAMPLES[StoreMissError][0]) == "never recorded"
    assert str(StoreMissError()) == ""
    assert str(EXAMPLES[StorageError][0]) == "a.json: truncated"


def test_a_trajectory_error_names_field_expected_and_actual():
    assert str(TrajectoryError("mask", "bool", "int32")) == (
        "trajectory.mask: expected bool, got int32"
    )


def test_a_missing_extra_says_what_to_install():
    assert "pip install 'jerp[parity]'" in str(MissingExtraError("torch", "parity"))


@pytest.mark.parametrize(
    ("name", "hint"),
    [("codin", "did you mean 'coding'?"), ("reserch", "did you mean 'research'?")],
)
def test_an_unknown_name_gets_the_nearest_known_one(name, hint):
    message = str(UnknownNameError("domain", name, iter(("coding", "research"))))
    assert message == f"unknown domain {name!r}; {hint} (known: coding, research)"


def test_without_known_names_no_name_is_offered():
    assert str(UnknownNameError("model", "x", ())) == "unknown model 'x' (known: )"
