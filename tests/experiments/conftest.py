"""One smoke run of the experiment, shared by the tests that look at it."""

import io

import pytest
from rich.console import Console

from experiments.harness_control.config import HarnessConfig
from experiments.harness_control.main import run


@pytest.fixture(scope="session")
def smoke(tmp_path_factory):
    """The config, results and terminal text of a smoke run of two domains."""
    folder = tmp_path_factory.mktemp("smoke") / "run"
    config = HarnessConfig(
        domain=("coding", "research"), smoke=True, seeds=2, out=folder
    )
    text = io.StringIO()
    results = run(config, console=Console(file=text, width=160))
    return config, results, text.getvalue()
