"""The examples in the docstrings of decoders, adapters and their files are run."""

import doctest
import importlib

import pytest

MODULES = ("models.attention", "models.block", "models.lora", "models.presets")
MODULES += ("storage.adapters", "storage.export")


@pytest.mark.parametrize("name", MODULES)
def test_examples_print_what_they_say(name):
    result = doctest.testmod(importlib.import_module(f"jerp.{name}"))
    assert result.failed == 0 and result.attempted > 0
