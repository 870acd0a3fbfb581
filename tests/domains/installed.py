"""Packages of benchmarks: those that are not installed leave their tests out."""

import importlib.util

import pytest


def needs(package, command):
    """Skips a module, or what a fixture is for, with the command that helps."""
    if importlib.util.find_spec(package) is None:
        pytest.skip(f"needs {package}: {command}", allow_module_level=True)
