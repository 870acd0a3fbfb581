"""A program under another Python: answers, failures, and what is left of it."""

import os
import subprocess
import sys
import threading
import time
from contextlib import closing
from pathlib import Path

import pytest

from jerp.domains.apart import Apart, named_python
from jerp.errors import ConfigError, InfrastructureError, SandboxError

PROGRAM = r"""
import json, os, sys, time
print(json.dumps({"answer": {"pid": os.getpid(), "secret": os.environ.get("API_KEY")}}))
sys.stdout.flush()
for line in sys.stdin:
    request = json.loads(line)
    wish = request["do"]
    if wish == "die":
        print("line one\nout of everything", file=sys.stderr)
        sys.exit(3)
    if wish == "talk":
        print("x" * 300_000, file=sys.stderr)
    if wish == "hang":
        print("still at it", file=sys.stderr, flush=True)
        time.sleep(60)
    failed = {"failed": "cannot do it"}
    print("}{" if wish == "mumble" else json.dumps(
        failed if wish == "fail" else {"answer": request}
    ), flush=True)
"""


def program(**settings):
    command = (sys.executable, "-S", "-c", PROGRAM)
    return closing(Apart(command, **settings))


def test_it_answers_and_keeps_nothing_of_ours(monkeypatch):
    monkeypatch.setenv("API_KEY", "secret")
    with program() as apart:
        first = apart.start()
        assert first["pid"] != os.getpid() and first["secret"] is None
        asked = {"do": "x", "ä": [1.5, None, "\ud800 and ☃"]}
        assert apart.ask(asked) == asked
        assert apart.ask({"do": "talk"}) == {"do": "talk"}
        assert apart.start() == first


def test_what_it_says_that_failed_ends_nothing():
    with program() as apart:
        first = apart.start()
        with pytest.raises(InfrastructureError, match="cannot do it"):
            apart.ask({"do": "fail"})
        assert apart.ask({"do": "x"}) == {"do": "x"} and apart.start() == first


@pytest.mark.parametrize(
    ("wish", "message"),
    [
        ("die", "ended with 3; it told: line one | out of everything"),
        ("hang", "gave no answer in 0.5 s; it told: still at it"),
        ("mumble", r"answered b'}{'"),
    ],
)
def test_one_that_breaks_is_an_error_with_its_words_and_starts_again(wish, message):
    with program(seconds=0.5) as apart:
        first = apart.start()
        with pytest.raises(InfrastructureError) as caught:
            apart.ask({"do": wish})
        assert message in str(caught.value) and isinstance(caught.value, SandboxError)
        assert apart.ask({"do": "x"}) == {"do": "x"}
        assert apart.start()["pid"] != first["pid"]
        with pytest.raises(ProcessLookupError):
            os.kill(first["pid"], 0)


def test_threads_get_their_own_answers():
    wrong = []

    def ask(name):
        for number in range(50):
            request = {"do": "x", "name": name, "number": number}
            if apart.ask(request) != request:
                wrong.append(request)

    with program() as apart:
        threads = [threading.Thread(target=ask, args=(i,)) for i in range(4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    assert wrong == []


def test_a_request_that_json_cannot_say_leaves_it_as_it_was():
    with program() as apart:
        first = apart.start()
        with pytest.raises(ValueError, match="JSON"):
            apart.ask({"do": float("nan")})
        assert apart.start() == first


def test_closed_it_is_gone_and_starts_no_more():
    with program() as apart:
        assert not apart.running
        process = apart.start()["pid"]
        assert apart.running
    with pytest.raises(ProcessLookupError):
        os.kill(process, 0)
    apart.close()
    assert not apart.running
    with pytest.raises(InfrastructureError, match="is closed"):
        apart.ask({"do": "x"})


def test_it_ends_with_who_started_it(tmp_path):
    source = (
        f"import os\nfrom jerp.domains.apart import Apart\nPROGRAM = {PROGRAM!r}\n"
        f"apart = Apart(({sys.executable!r}, '-S', '-c', PROGRAM))\n"
        "print(apart.start()['pid'], flush=True)\nos._exit(1)\n"
    )
    parent = Path(tmp_path, "parent.py")
    parent.write_text(source)
    ran = subprocess.run([sys.executable, parent], capture_output=True, text=True)
    told = ran.stdout
    deadline = time.monotonic() + 10
    while Path(f"/proc/{told.strip()}").exists() and time.monotonic() < deadline:
        time.sleep(0.01)
    assert told.strip().isdigit() and not Path(f"/proc/{told.strip()}").exists()


def test_one_that_does_not_start_says_so(tmp_path):
    with pytest.raises(InfrastructureError, match="none does not start"):
        Apart((str(tmp_path / "none"),)).ask({})
    silent = (sys.executable, "-S", "-c", "import time; time.sleep(60)")
    with pytest.raises(InfrastructureError, match=r"no answer in 0\.2 s"):
        Apart(silent, start_seconds=0.2).start()


def test_a_python_is_named_by_argument_or_variable(tmp_path, monkeypatch):
    monkeypatch.delenv("JERP_X", raising=False)
    with pytest.raises(ConfigError, match=r"variable JERP_X.*Make one: do this"):
        named_python(None, "JERP_X", "do this")
    with pytest.raises(ConfigError, match=r"is no program. Make one: do this"):
        named_python(tmp_path, "JERP_X", "do this")
    Path(tmp_path, "bin").mkdir()
    link = Path(tmp_path, "bin", "python")
    link.symlink_to(sys.executable)
    assert named_python(tmp_path, "JERP_X", "") == link
    assert named_python(link, "JERP_X", "") == link
    monkeypatch.setenv("JERP_X", str(tmp_path))
    assert named_python(None, "JERP_X", "") == link


def test_mistakes_are_named():
    with pytest.raises(ConfigError, match=r"got \[\], 1 and 300"):
        Apart((), seconds=1)
    with pytest.raises(ConfigError, match="times above 0"):
        Apart(("python",), seconds=0)
