"""Packages of benchmarks: those that are not installed leave their tests out."""

import importlib.util

import pytest


def needs(package, command):
    """Skips a module's tests with the command that would let them run."""
    if importlib.util.find_spec(package) is None:
        pytest.skip(f"needs {package}: {command}", allow_module_level=True)
