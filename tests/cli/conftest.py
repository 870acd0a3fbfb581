"""The command without the experiment that it runs."""

import sys
import types

import pytest

from tests.cli.fake_config import FakeConfig


@pytest.fixture
def runs(monkeypatch):
    """Configs that the experiment was run with; the real experiment is left out."""
    made = []
    config = types.ModuleType("config")
    config.HarnessConfig = FakeConfig
    main = types.ModuleType("main")
    main.run = made.append
    package = "experiments.harness_control"
    monkeypatch.setitem(sys.modules, f"{package}.config", config)
    monkeypatch.setitem(sys.modules, f"{package}.main", main)
    return made
