"""How a command ends that cannot go on."""

import os
import signal
import subprocess
import sys

import pytest

import jerp.bridge.local
import jerp.cli.version
import jerp.storage.weights
from jerp import cli
from jerp.errors import ConfigError


def test_store_verify_refuses_no_sample_before_anything_is_imported():
    code = "import sys; from jerp import cli\n"
    code += "status = cli.main(['store', 'verify', '--sample', '0'])\n"
    code += "print(status, 'jax' in sys.modules)"
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True
    )
    assert done.stderr == "jerp: --sample: expected at least 1, got 0\n"
    assert done.stdout == "2 False\n"


def test_an_error_that_is_ours_has_no_traceback_and_a_bug_has(
    monkeypatch, runs, capsys
):
    main = sys.modules["experiments.harness_control.main"]

    def fail(error):
        def run(_):
            raise error

        return run

    monkeypatch.setattr(main, "run", fail(ConfigError("seeds: expected 1, got 2")))
    assert cli.main(["run", "harness"]) == 2
    assert capsys.readouterr().err == "jerp: seeds: expected 1, got 2\n"
    monkeypatch.setattr(main, "run", fail(ZeroDivisionError("a bug")))
    with pytest.raises(ZeroDivisionError):
        cli.main(["run", "harness"])


def test_control_c_exits_with_130_and_says_how_to_go_on(monkeypatch, runs, capsys):
    def interrupt(_):
        os.kill(os.getpid(), signal.SIGINT)
        signal.pause()

    main = sys.modules["experiments.harness_control.main"]
    monkeypatch.setattr(main, "run", interrupt)
    assert cli.main(["run", "harness"]) == 130
    assert "the same command resumes" in capsys.readouterr().err
    monkeypatch.setattr(jerp.cli.version.Version, "__call__", interrupt)
    assert cli.main(["version"]) == 130
    assert capsys.readouterr().err == "jerp: interrupted\n"


def test_control_c_while_the_command_is_imported_has_no_traceback(monkeypatch, capsys):
    class Interrupting:
        def find_spec(self, name, *_):
            if name == "jerp.cli.app":
                raise KeyboardInterrupt

    monkeypatch.delitem(sys.modules, "jerp.cli.app")
    monkeypatch.setattr(sys, "meta_path", [Interrupting(), *sys.meta_path])
    assert cli.main(["version"]) == 130
    assert capsys.readouterr().err == "jerp: interrupted before anything began\n"


@pytest.mark.parametrize(
    ("error", "line"),
    [
        (PermissionError(13, "Permission denied", "a/b"), "a/b: Permission denied"),
        (OSError(28, "No space left on device"), "No space left on device"),
        (OSError("two\nlines"), "two lines"),
        (ConnectionResetError(), "ConnectionResetError"),
    ],
)
def test_what_the_system_refuses_is_one_line(monkeypatch, capsys, error, line):
    def refuse(_):
        raise error

    monkeypatch.setattr(jerp.cli.version.Version, "__call__", refuse)
    assert cli.main(["version"]) == 2
    assert capsys.readouterr().err == f"jerp: {line}\n"


def run_version(call, **settings):
    """`jerp version` in a process of its own, with another body."""
    code = "import sys; from jerp import cli; from jerp.cli.version import Version\n"
    code += f"Version.__call__ = lambda _: {call} or 0\nsys.exit(cli.main(['version']))"
    words = [sys.executable, "-c", code]
    return subprocess.run(words, stderr=subprocess.PIPE, **settings)


@pytest.mark.skipif(
    not os.path.exists("/dev/full"),
    reason="no /dev/full, which only Linux has, to stand for a full disk",
)
@pytest.mark.parametrize("call", ["print('short')", "print('x' * 10**6)"])
def test_output_to_a_full_disk_is_one_line_and_status_2(call):
    with open("/dev/full", "w") as full:
        done = run_version(call, stdout=full)
    assert done.returncode == 2
    assert done.stderr == b"jerp: No space left on device\n"


@pytest.mark.parametrize("encoding", ["ascii", "ascii:surrogateescape"])
def test_what_the_output_cannot_encode_is_escaped(encoding):
    environment = {**os.environ, "PYTHONUTF8": "0", "PYTHONIOENCODING": encoding}
    call = r"print('caf\u00e9 \udce9')"
    done = run_version(call, stdout=subprocess.PIPE, env=environment)
    assert (done.returncode, done.stderr) == (0, b"")
    assert done.stdout == rb"caf\xe9 \udce9" + b"\n"
    environment["PYTHONIOENCODING"] = "ascii:replace"
    done = run_version(call, stdout=subprocess.PIPE, env=environment)
    assert done.stdout == b"caf? ?\n"
