"""`jerp.<name>`: every public equation, and nothing loaded before it is asked for."""

import importlib
import pkgutil
import subprocess
import sys

import pytest

import jerp
from jerp import api

PACKAGES = ("ops", "advantages", "objectives", "estimators", "rules", "skills")
# What equations are made of is for those who add some, not for those who use them.
PARTS = {
    "jerp.advantages.similarity",
    "jerp.estimators.arguments",
    "jerp.estimators.blocks",
    "jerp.estimators.clusters",
    "jerp.estimators.episode_weights",
    "jerp.estimators.ope_methods",
    "jerp.estimators.ope_summary",
    "jerp.estimators.ope_terms",
    "jerp.estimators.quantiles",
    "jerp.estimators.regression",
    "jerp.estimators.resampling",
    "jerp.estimators.studentized",
    "jerp.estimators.tally",
    "jerp.estimators.trinomial",
    "jerp.objectives.entries",
    "jerp.ops.checks",
    "jerp.rules.book",
    "jerp.rules.operations",
    "jerp.rules.instructions",
    "jerp.rules.text",
    "jerp.skills.node",
}
CHECKS = {"budgets", "check_counts", "check_grid"}


def public_names():
    for package in PACKAGES:
        folder = importlib.import_module(f"jerp.{package}")
        for module in pkgutil.iter_modules(folder.__path__, f"jerp.{package}."):
            if module.name not in PARTS:
                yield from functions_and_classes(module.name)


def functions_and_classes(module):
    """What a module defines and offers; names of types alone are left to it."""
    found = importlib.import_module(module)
    for name in found.__all__:
        own = getattr(getattr(found, name), "__module__", None) == module
        if own and name not in CHECKS:
            yield module, name


@pytest.mark.parametrize(("module", "name"), sorted(public_names()))
def test_every_equation_is_a_name_of_jerp(module, name):
    assert getattr(jerp, name) is getattr(importlib.import_module(module), name)
    assert name in dir(jerp)


def test_every_name_is_there_once():
    assert sorted(set(api.__all__)) == sorted(api.__all__)
    assert all(getattr(jerp, name) is not None for name in api.__all__)


def test_subpackages_are_attributes():
    assert jerp.estimators is importlib.import_module("jerp.estimators")


def test_a_misspelt_name_is_answered_with_the_nearest():
    with pytest.raises(AttributeError, match="did you mean 'gigpo_advantages'"):
        _ = jerp.gigpo_advantage
    with pytest.raises(AttributeError, match="no attribute '_secret'"):
        _ = jerp._secret


def test_what_deployment_needs_is_a_name_of_jerp_that_loads_no_jax():
    program = (
        "import sys, jerp\n"
        "assert jerp.load_controller.__module__ == 'jerp.storage.controllers'\n"
        "assert jerp.Decision(0, 'check', 0.0).name == 'check'\n"
        "assert 'jax' not in sys.modules\n"
    )
    subprocess.run([sys.executable, "-c", program], check=True)
    assert {"Decision", "EpisodeLog", "load_controller"} <= {*dir(jerp)}
    assert {"Decision", "EpisodeLog", "load_controller"} <= {*jerp.__all__}
    assert jerp.EpisodeLog.__module__ == "jerp.storage.episode_log"
    with pytest.raises(AttributeError, match="did you mean 'load_controller'"):
        _ = jerp.load_controler
