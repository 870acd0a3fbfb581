import json
import os
import subprocess
import sys

import pytest

import jerp
from jerp.errors import ConfigError, StorageError
from jerp.storage.manifest import devices, git_state, open_run, versions

CONFIG = {"domain": ("coding", "research"), "seeds": 3, "sizes": {"tasks": 300}}


def test_the_manifest_is_written_first_and_says_what_ran(tmp_path):
    with open_run(tmp_path / "run", CONFIG, seeds=(0, 1)) as run:
        manifest = json.loads((run.folder / "manifest.json").read_text())
    assert manifest == run.manifest and not run.resumed
    assert manifest["config"] == {**CONFIG, "domain": ["coding", "research"]}
    assert manifest["seeds"] == [0, 1]
    assert manifest["versions"] == versions()
    assert manifest["backend"] == "cpu" and manifest["devices"]
    assert manifest["git"] == git_state()
    assert manifest["started"].endswith("+00:00")


def test_versions_name_what_the_numbers_depend_on():
    names = ["jerp", "jax", "jaxlib", "flax", "optax", "numpy", "python"]
    assert list(versions()) == names
    assert versions()["jerp"] == jerp.__version__
    assert devices()["backend"] == "cpu"


def test_the_same_config_resumes_and_each_session_is_noted(tmp_path):
    with open_run(tmp_path, CONFIG) as first:
        (tmp_path / "results.json").write_text("{}")
    with open_run(tmp_path, CONFIG) as second:
        assert second.resumed
        assert second.manifest["started"] == first.manifest["started"]
        assert len(second.manifest["resumed"]) == 1
        assert second.manifest["resumed"][0]["versions"] == versions()
    with open_run(tmp_path, CONFIG) as third:
        assert len(third.manifest["resumed"]) == 2


@pytest.mark.parametrize(
    ("config", "seeds", "message"),
    [
        ({**CONFIG, "seeds": 5}, (), r"config\.seeds: 3 there, 5 here"),
        ({**CONFIG, "sizes": {"tasks": 9}}, (), r"config\.sizes\.tasks: 300 there, 9"),
        ({**CONFIG, "new": 1}, (), r"config\.new: absent there, 1 here"),
        (CONFIG, (7,), "seeds: 0 entries there, 1 here"),
    ],
)
def test_another_config_is_refused_and_the_field_named(
    tmp_path, config, seeds, message
):
    open_run(tmp_path, CONFIG).close()
    before = (tmp_path / "manifest.json").read_bytes()
    with pytest.raises(ConfigError, match=message):
        open_run(tmp_path, config, seeds=seeds)
    assert (tmp_path / "manifest.json").read_bytes() == before
    open_run(tmp_path, CONFIG).close()


def test_a_folder_with_other_files_is_refused(tmp_path):
    (tmp_path / "thesis.tex").write_text("")
    with pytest.raises(ConfigError, match=r"got one that holds 'thesis\.tex'"):
        open_run(tmp_path, CONFIG)
    assert not (tmp_path / "manifest.json").exists()


def test_a_damaged_or_newer_manifest_is_refused(tmp_path):
    open_run(tmp_path, CONFIG).close()
    path = tmp_path / "manifest.json"
    path.write_text(path.read_text().replace('"manifest_version": 1', '"x": 1'))
    with pytest.raises(StorageError, match="expected manifest version 1, got None"):
        open_run(tmp_path, CONFIG)
    path.write_text("{")
    with pytest.raises(StorageError, match=r"manifest\.json: truncated or altered"):
        open_run(tmp_path, CONFIG)


def test_a_config_that_is_not_json_is_refused_and_the_lock_given_free(tmp_path):
    with pytest.raises(StorageError, match="expected plain"):
        open_run(tmp_path, {"x": object()})
    open_run(tmp_path, CONFIG).close()


def test_the_leftover_of_a_killed_start_is_removed(tmp_path):
    (tmp_path / ".manifest.json.1.tmp").write_text("{")
    open_run(tmp_path, CONFIG).close()
    assert not (tmp_path / ".manifest.json.1.tmp").exists()


HOLDER = """
import sys
from jerp.storage.manifest import open_run
run = open_run(sys.argv[1], {})
print("held", flush=True)
sys.stdin.read()
"""


def test_two_processes_cannot_use_one_folder_and_a_killed_one_frees_it(tmp_path):
    command = [sys.executable, "-c", HOLDER, str(tmp_path)]
    with subprocess.Popen(
        command, stdin=subprocess.PIPE, stdout=subprocess.PIPE
    ) as holder:
        assert holder.stdout.readline() == b"held\n"
        with pytest.raises(StorageError, match=f"in use by process {holder.pid}"):
            open_run(tmp_path, {})
        holder.kill()
    with open_run(tmp_path, {}) as run:
        assert run.resumed


def test_one_process_cannot_open_a_folder_twice(tmp_path):
    with (
        open_run(tmp_path, CONFIG),
        pytest.raises(StorageError, match=f"in use by process {os.getpid()}"),
    ):
        open_run(tmp_path, CONFIG)


def test_git_state_is_of_the_checkout_alone(monkeypatch, tmp_path):
    package = tmp_path / "checkout" / "lib" / "jerp"
    package.mkdir(parents=True)
    monkeypatch.setattr(jerp, "__file__", str(package / "__init__.py"))
    assert git_state() is None
    git = ["git", "-C", str(tmp_path / "checkout"), "-c", "user.name=a"]
    git += ["-c", "user.email=a@b"]
    subprocess.run([*git, "init", "-q"], check=True)
    subprocess.run([*git, "commit", "-q", "--allow-empty", "-m", "x"], check=True)
    assert git_state() is None
    package = tmp_path / "checkout" / "jerp"
    package.mkdir()
    (package / "__init__.py").write_text("")
    monkeypatch.setattr(jerp, "__file__", str(package / "__init__.py"))
    state = git_state()
    assert len(state["commit"]) == 40 and state["edited"] is False
    subprocess.run([*git, "add", "."], check=True)
    assert git_state()["edited"] is True
