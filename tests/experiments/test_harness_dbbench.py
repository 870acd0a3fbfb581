"""`jerp run harness --domain dbbench`, with a stand-in for the executor."""

import io
from dataclasses import replace

import pytest
from rich.console import Console

from experiments.executors.endpoint import Endpoint
from experiments.harness_control.config import HarnessConfig
from experiments.harness_control.domains import data_versions, make_domain, make_tasks
from experiments.harness_control.main import run
from jerp.bridge.budget import BudgetExceededError
from jerp.bridge.sandbox import Sandbox
from jerp.bridge.store import ResponseStore
from jerp.errors import ConfigError, SandboxError
from tests.domains.dbbench.files import RECORDS, write_files
from tests.experiments.endpoint_server import scripted_endpoint


def test_its_tasks_are_those_of_the_folder(tmp_path, monkeypatch):
    monkeypatch.delenv("JERP_DBBENCH", raising=False)
    store = ResponseStore(None, mode="off")
    with pytest.raises(ConfigError, match="JERP_DBBENCH"):
        make_domain("dbbench", store)
    assert data_versions(("coding",), None) == {}
    folder = write_files(tmp_path)
    domain = make_domain("dbbench", store, folder)
    assert len(make_tasks(domain, 0)) == len(RECORDS)
    before = data_versions(("coding", "dbbench"), folder)
    write_files(tmp_path, dev=RECORDS[:2])
    assert data_versions(("dbbench",), folder) != before


@pytest.mark.slow
def test_a_run_from_tasks_to_report(tmp_path, monkeypatch):
    with Sandbox() as sandbox:
        try:
            sandbox.isolation  # noqa: B018
        except SandboxError as error:
            pytest.skip(f"no sandbox on this system: {error}")

    right = {record["description"]: record for record in RECORDS}

    def answer(messages):
        asked = messages[-1]["content"]
        record = right[asked.split("\n")[0].removeprefix("Question: ")]
        knows = "Ships at sea" in asked
        statement = record["sql"]["query"] if "sql" in record else record["label"][0]
        return f"```sql\n{statement if knows else 'SELECT 1'}\n```"

    folder = write_files(tmp_path, standard=RECORDS * 3)
    monkeypatch.setenv("JERP_DBBENCH", str(folder))
    text = io.StringIO()
    console = Console(file=text, width=160)
    with scripted_endpoint(answer) as (url, asked):
        config = HarnessConfig(
            domain=("dbbench",), executor=url, seeds=1, smoke=True, out=tmp_path / "run"
        )
        planned = run(replace(config, plan=True), console=console)
        assert not asked and not config.folder.exists()
        # The second sitting has its cap raised, and asks for nothing again.
        with pytest.raises(BudgetExceededError, match="requests: the cap of 3"):
            run(replace(config, endpoint=Endpoint(max_requests=3)), console=console)
        results = run(config, console=console)
        assert 3 < len(asked) <= planned["calls"]
        before = len(asked)
        assert run(config, console=console)["domains"] == results["domains"]
        assert len(asked) == before
    assert results["command"].startswith("jerp run harness --domain dbbench --exec")
    arms = results["domains"]["dbbench"]["arms"]
    assert {*arms["base"]["outcomes"]} == {"success"}
    assert results["executor"]["usage"]["attempts"] == before - 3
    assert "asked of http://127.0.0.1" in text.getvalue()
    assert "sandbox protects network" in text.getvalue()
    assert (config.folder / "report.md").exists()
