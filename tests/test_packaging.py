import configparser
import json
import os
import re
import shutil
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

import jerp

ROOT = Path(__file__).parents[1]
SOURCES = ("setup.py", "pyproject.toml", "README.md", "LICENSE", "jerp", "experiments")


def data_files(suffixes):
    files = (p for s in ("jerp", "experiments") for p in (ROOT / s).rglob("*"))
    return {
        str(p.relative_to(ROOT))
        for p in files
        if p.name.endswith(suffixes) and "__pycache__" not in p.parts
    }


@pytest.fixture(scope="module")
def wheel(tmp_path_factory):
    """Built from a copy, so that nothing stale from an earlier build gets in."""
    copy = tmp_path_factory.mktemp("source")
    for name in SOURCES:
        source = ROOT / name
        if source.is_dir():
            shutil.copytree(
                source, copy / name, ignore=shutil.ignore_patterns("__pycache__")
            )
        else:
            shutil.copy(source, copy / name)
    command = ["-m", "build", "--wheel", "--no-isolation", "--outdir", "dist", "."]
    run([sys.executable, *command], copy)
    (path,) = (copy / "dist").glob("*.whl")
    return path


@pytest.fixture(scope="module")
def installed(wheel, tmp_path_factory):
    """Runs the installed command from a folder that knows nothing of the checkout."""
    site = tmp_path_factory.mktemp("site")
    command = ["-m", "pip", "install", "--no-deps", "--no-index", "--target", site]
    run([sys.executable, *command, wheel], site)
    environment = {**os.environ, "PYTHONPATH": str(site), "JAX_PLATFORMS": "cpu"}
    # What is compiled here runs for a moment: conftest.py says so of whole folders.
    environment["JAX_DISABLE_MOST_OPTIMIZATIONS"] = "1"

    def execute(*words, folder, program=site / "bin" / "jerp"):
        return run([program, *words], folder, environment)

    execute.site = site
    return execute


def run(command, folder, environment=None):
    done = subprocess.run(
        list(map(str, command)),
        cwd=folder,
        env=environment,
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def test_the_wheel_holds_the_code_and_its_data_and_nothing_else(wheel):
    names = set(zipfile.ZipFile(wheel).namelist())
    data = data_files((".py", ".html", ".typed", ".jsonl.xz"))
    assert {"jerp/py.typed", "jerp/runs/viewer.html"} <= data
    assert data <= names
    tops = {name.split("/")[0] for name in names}
    assert tops == {"jerp", "experiments", f"jerp-{jerp.__version__}.dist-info"}


def test_the_wheel_knows_its_command_version_and_extras(wheel):
    archive = zipfile.ZipFile(wheel)
    info = f"jerp-{jerp.__version__}.dist-info"
    scripts = configparser.ConfigParser()
    scripts.read_string(archive.read(f"{info}/entry_points.txt").decode())
    assert scripts["console_scripts"]["jerp"] == "jerp.cli:main"
    metadata = archive.read(f"{info}/METADATA").decode()
    assert f"Version: {jerp.__version__}\n" in metadata
    assert "Requires-Python: >=3.11" in metadata
    extras = ("cuda12", "tpu", "dev", "notebooks", "parity", "parquet")
    for extra in (*extras, "remote", "serve", "torch", "llama-cpp"):
        assert f"Provides-Extra: {extra}\n" in metadata


def test_the_installed_command_runs_from_another_folder(installed, tmp_path):
    code = "import jerp, experiments; print(jerp.__file__, experiments.__file__)"
    where = installed("-c", code, folder=tmp_path, program=sys.executable)
    assert all(Path(path).is_relative_to(installed.site) for path in where.split())
    assert f"jerp    {jerp.__version__}\n" in installed("version", folder=tmp_path)


def test_the_installed_experiment_runs_from_another_folder(installed, tmp_path):
    # One domain of six: that the stores of all are in the wheel is tested above. In the
    # sizes of tests/experiments/conftest.py, whose programs need no second compilation.
    domains = ("coding",)
    settings = ("--smoke", "--domain", *domains, "--seeds", "2", "--out", "here")
    installed("run", "harness", *settings, folder=tmp_path)
    run_folder = tmp_path / "here"
    for name in ("manifest.json", "results.json", "report.md", "report.html"):
        assert (run_folder / name).stat().st_size > 0
    results = json.loads((run_folder / "results.json").read_text())
    assert tuple(results["domains"]) == domains
    store = results["executor"]["store"]["completion"]
    assert store["hits"] > 0 and store["misses"] == 0


def test_importing_jerp_is_light(installed, tmp_path):
    code = "import sys, jerp, jerp.cli; print([m for m in ('jax', 'transformers', "
    code += "'orbax', 'numpy') if m in sys.modules])"
    loaded = installed("-c", code, folder=tmp_path, program=sys.executable)
    assert loaded.strip() == "[]"


def test_the_readmes_commands_are_the_promised_ones_and_ci_runs_them():
    readme = (ROOT / "README.md").read_text(encoding="utf-8")
    commands = re.findall(r"^```bash\n(.+?)\n```$", readme, re.MULTILINE | re.DOTALL)
    assert commands[:2] == [
        "pip install -e . && jerp run harness",
        "pip install -e '.[dev]' && pytest",
    ]
    ci = (ROOT / ".ci" / "run").read_text(encoding="utf-8")
    assert f"\n({commands[1]})\n" in ci
    assert os.access(ROOT / ".ci" / "run", os.X_OK)


def test_files_that_the_readme_links_to_exist():
    for page in ("README.md", "CONTRIBUTING.md"):
        text = (ROOT / page).read_text(encoding="utf-8")
        links = re.findall(r"\]\(([^)#:]+)\)", text)
        assert [link for link in links if not (ROOT / link).exists()] == []
