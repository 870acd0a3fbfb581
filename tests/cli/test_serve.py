import os
import re
import signal
import subprocess
import sys
import urllib.request

import pytest

import jerp.storage.weights
from jerp import cli
from jerp.bridge.xla_flags import COMPUTE_LATE
from jerp.storage.export import export_folder
from tests.bridge.tiny_model import tiny_model


@pytest.fixture
def runs(monkeypatch):
    """Applications and sockets that a server was run with."""
    import uvicorn

    made = []
    monkeypatch.setenv("XLA_FLAGS", "--xla_dump_to=")  # whatever a user has set
    monkeypatch.setattr(jerp.storage.weights, "load_weights", lambda name: tiny_model())
    monkeypatch.setattr(
        uvicorn.Server,
        "run",
        lambda self, sockets: made.append((self.config.app, sockets[0].getsockname())),
    )
    return made


def test_a_model_is_served_at_a_free_port_of_this_machine(runs, capsys):
    assert cli.main(["serve", "models/tiny", "--port", "0"]) == 0
    [(_, (host, port))] = runs
    said = capsys.readouterr().err
    assert said == f"tiny is served at http://127.0.0.1:{port}/v1; Ctrl-C ends it\n"
    assert host == "127.0.0.1"
    assert os.environ["XLA_FLAGS"] == f"--xla_dump_to= {COMPUTE_LATE}"


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["--host", "0.0.0.0"], "expected a variable with a key for 0.0.0.0"),
        (["--api-key-env", "NO_SUCH_KEY"], "expected NO_SUCH_KEY to hold a key"),
        (["--port", "70000"], "--port: expected 0 to 65535, got 70000"),
    ],
)
def test_what_would_be_open_to_all_or_cannot_be_is_refused(runs, capsys, words, said):
    assert cli.main(["serve", "tiny", *words]) == 2
    assert said in capsys.readouterr().err
    assert runs == []


@pytest.mark.slow
def test_a_served_folder_answers_until_ctrl_c(tmp_path):
    model = tiny_model()
    export_folder(
        tmp_path / "tiny",
        model.config,
        model.params,
        model.tokenizer,
        chat_template=model.chat_template,
        stop_tokens=model.stop_tokens,
    )
    code = "import sys; from jerp import cli; sys.exit(cli.main(sys.argv[1:]))"
    words = ["serve", str(tmp_path / "tiny"), "--port", "0"]
    server = subprocess.Popen(
        [sys.executable, "-c", code, *words], stderr=subprocess.PIPE, text=True
    )
    assert server.stderr is not None
    try:
        found = re.search(r"http://\S+/v1", server.stderr.readline())
        assert found is not None
        with urllib.request.urlopen(f"{found[0]}/models", timeout=30) as response:
            assert b'"tiny"' in response.read()
        os.kill(server.pid, signal.SIGINT)
        assert server.wait(timeout=30) == 130
        assert server.stderr.read().startswith("jerp: interrupted; answers under way")
    finally:
        server.kill()
        server.wait()
        server.stderr.close()
