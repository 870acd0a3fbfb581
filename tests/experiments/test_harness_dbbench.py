"""`jerp run harness --domain dbbench`, with a stand-in for the executor."""

import io

import pytest
from rich.console import Console

from experiments.harness_control import executors
from experiments.harness_control.config import HarnessConfig
from experiments.harness_control.domains import data_versions, make_domain, make_tasks
from experiments.harness_control.main import run
from jerp.bridge.sandbox import Sandbox
from jerp.bridge.scripted import ScriptedExecutor
from jerp.bridge.store import ResponseStore
from jerp.errors import ConfigError, SandboxError
from tests.domains.dbbench.files import RECORDS, write_files


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

    def answer(request):
        question = (
            request.messages[-1].content.split("\n")[0].removeprefix("Question: ")
        )
        record = right[question]
        knows = "Ships at sea" in request.messages[-1].content
        statement = record["sql"]["query"] if "sql" in record else record["label"][0]
        return f"```sql\n{statement if knows else 'SELECT 1'}\n```"

    folder = write_files(tmp_path, standard=RECORDS * 3)
    monkeypatch.setattr(executors, "_smollm2", lambda _: ScriptedExecutor(answer))
    monkeypatch.setenv("JERP_DBBENCH", str(folder))
    config = HarnessConfig(
        domain=("dbbench",),
        executor="smollm2",
        seeds=1,
        smoke=True,
        out=tmp_path / "run",
    )
    text = io.StringIO()
    console = Console(file=text, width=160)
    results = run(config, console=console)
    arms = results["domains"]["dbbench"]["arms"]
    assert {*arms["base"]["outcomes"]} == {"success"}
    assert results["executor"]["store"]["completion"]["misses"] > 0
    assert "sandbox protects network" in text.getvalue()
    assert (config.folder / "report.md").exists()
