"""`jerp sandbox`: what it says where code is protected, and where it is not."""

import pytest

from jerp import cli
from jerp.bridge import sandbox_pool
from jerp.bridge.sandbox import REQUIRED_PROTECTIONS, Sandbox
from jerp.errors import SandboxError


def test_protections_of_both_sandboxes_are_named(capsys):
    try:
        with Sandbox() as sandbox:
            isolation = sandbox.isolation
    except SandboxError as error:
        pytest.skip(f"no sandbox on this system: {error}")
    assert cli.main(["sandbox"]) == 0
    python, sql = capsys.readouterr().out.split("SQL: ")
    for text in (python, sql):
        assert f"isolation {isolation}" in text
        names = [line.split()[0] for line in text.splitlines()[1:]]
        assert {*REQUIRED_PROTECTIONS, "time", "output"} <= set(names)
    assert "steps" in sql and "steps" not in python


@pytest.mark.parametrize(("words", "status"), [([], 1), (["--allow-weaker"], 0)])
def test_what_is_not_there_is_said(monkeypatch, capsys, words, status):
    started = sandbox_pool.Worker

    def weak(isolation, settings):
        if isolation != "limits":
            raise SandboxError("not on this system")
        return started(isolation, settings)

    monkeypatch.setattr(sandbox_pool, "Worker", weak)
    assert cli.main(["sandbox", *words]) == status
    out = capsys.readouterr().out
    if status:
        assert "Python: refused: untrusted code is not run here" in out
        assert "namespaces: not on this system" in out
    else:
        assert "isolation limits" in out and "network      NOT PROTECTED" in out
