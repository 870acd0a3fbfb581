"""Imports point from the edge inwards, and pure code stays pure (AST, no imports run).

The two tables are the rule; everything else here reads them. A new package needs a row.
"""

import ast
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]

# Each row may import from itself and from the rows above, not from its neighbours.
LAYERS = (
    ("typing", "errors", "records"),
    ("trajectory", "ops"),
    ("advantages", "objectives", "estimators", "harness", "rules", "skills"),
    ("api",),
    ("models", "envs"),
    ("rollout",),
    ("training",),
    ("storage", "bridge"),
    ("domains", "readers"),
    ("runs",),
    ("experiments",),
    ("cli",),
)
NEIGHBOURS_MAY_IMPORT = {("records", "typing"), ("records", "errors")}
# Whether a rule is absorbed is an estimate with an interval.
NEIGHBOURS_MAY_IMPORT |= {("rules", "estimators")}
# Lines of a skill are as plain as rules are.
NEIGHBOURS_MAY_IMPORT |= {("skills", "rules")}
# The root hands out the names of jerp.api, and of deployment, at their first use.
NEIGHBOURS_MAY_IMPORT |= {("__init__", name) for name in ("api", "models", "storage")}

PURE = frozenset(package for row in LAYERS[:7] for package in row)
IMPURE_MODULES = frozenset(
    {
        *("asyncio", "multiprocessing", "threading", "subprocess", "socket", "time"),
        *("io", "os", "pathlib", "shutil", "tempfile", "json", "logging", "random"),
        *("orbax", "transformers", "tokenizers", "safetensors", "gguf"),
        *("matplotlib", "requests", "rich", "tyro"),
    }
)
FORBIDDEN_EVERYWHERE = frozenset({"pickle", "dill", "marshal", "shelve", "cloudpickle"})

LEVEL = {package: level for level, row in enumerate(LAYERS) for package in row}


def package_of(module: str) -> str | None:
    """The row entry that a dotted module belongs to, None for foreign modules."""
    parts = module.split(".")
    if parts[0] == "experiments":
        return "experiments"
    if parts[0] != "jerp":
        return None
    return parts[1] if len(parts) > 1 else "jerp"


def imported_modules(source: str, module: str) -> set[str]:
    """Dotted names of all that the source imports, also inside functions."""
    names = set()
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Import):
            names |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom):
            names |= _from_import(node, module)
        elif isinstance(node, ast.Call) and _is_dynamic_import(node.func):
            names |= {a.value for a in node.args[:1] if isinstance(a, ast.Constant)}
    return names


def _from_import(node: ast.ImportFrom, module: str) -> set[str]:
    base = node.module or ""
    if node.level:
        parents = module.split(".")[: -node.level]
        base = ".".join([*parents, base]) if base else ".".join(parents)
    if base != "jerp":
        return {base}
    # `from jerp import bridge` imports a package, `__version__` only the root.
    names = {alias.name for alias in node.names}
    return {"jerp" if name.startswith("__") else f"jerp.{name}" for name in names}


def _is_dynamic_import(function: ast.expr) -> bool:
    name = getattr(function, "attr", getattr(function, "id", ""))
    return name in ("import_module", "__import__")


def violations(source: str, module: str) -> list[str]:
    """What a module imports and must not, in words."""
    own = package_of(module)
    found = []
    for name in sorted(imported_modules(source, module)):
        top, package = name.split(".")[0], package_of(name)
        if top in FORBIDDEN_EVERYWHERE:
            found.append(f"{module} imports {name}, which nothing may")
        elif own in PURE and top in IMPURE_MODULES:
            found.append(f"{module} is pure and imports {name}")
        elif package is not None and not _may_import(own, package):
            found.append(f"{module} ({own}) imports {name} ({package})")
    return found


def _may_import(own: str | None, package: str) -> bool:
    # The version lives in jerp/__init__.py, which imports nothing.
    if package in (own, "jerp") or (own, package) in NEIGHBOURS_MAY_IMPORT:
        return True
    if own not in LEVEL or package not in LEVEL:
        return False
    return LEVEL[package] < LEVEL[own]


def modules():
    for folder in ("jerp", "experiments"):
        for path in sorted((ROOT / folder).rglob("*.py")):
            parts = path.relative_to(ROOT).with_suffix("").parts
            if "__pycache__" not in parts:
                yield ".".join(parts), path


MODULES = dict(modules())


def test_every_package_has_a_row():
    packages = {package_of(module.removesuffix(".__init__")) for module in MODULES}
    assert packages - {"jerp", "__init__"} <= set(LEVEL), "add the package to LAYERS"
    assert len(LEVEL) == sum(map(len, LAYERS)), "a package in two rows"


@pytest.mark.parametrize("module", sorted(MODULES))
def test_imports_point_inwards(module):
    assert violations(MODULES[module].read_text(encoding="utf-8"), module) == []


def test_the_root_imports_nothing_but_names():
    source = (ROOT / "jerp" / "__init__.py").read_text()
    allowed = {"difflib", "importlib", "importlib.util", "typing", "jerp.api"}
    # For type checkers alone; the lightness of `import jerp` is tested below.
    allowed |= {"jerp.models.acting", "jerp.storage.controllers"}
    allowed |= {"jerp.storage.episode_log"}
    assert imported_modules(source, "jerp") == allowed


@pytest.mark.parametrize(
    ("module", "source"),
    [
        ("jerp.ops.masked", "import jerp.bridge.executor"),
        ("jerp.ops.masked", "from jerp.harness.actions import Action"),
        ("jerp.ops.masked", "from jerp import bridge"),
        ("jerp.ops.masked", "from ..bridge import executor"),
        ("jerp.harness.reward", "def f():\n    from jerp.models import decoder"),
        ("jerp.harness.reward", "from jerp.estimators import intervals"),
        ("jerp.harness.reward", "import os.path"),
        ("jerp.training.awr", "from orbax import checkpoint"),
        ("jerp.training.awr", "import importlib\nimportlib.import_module('json')"),
        ("jerp.typing", "from jerp.records import Task"),
        ("jerp.errors", "from jerp.typing import Outcome"),
        ("jerp.storage.weights", "from jerp.bridge.local import LocalExecutor"),
        ("jerp.bridge.store", "from jerp.storage import weights"),
        ("jerp.bridge.store", "import pickle"),
        ("jerp.runs.harness", "from experiments.launch import main"),
        ("jerp.runs.harness", "import jerp.cli"),
        ("jerp.strange.module", "from jerp.typing import Array"),
        ("experiments.launch", "from jerp.cli import main"),
    ],
)
def test_a_breach_is_found(module, source):
    assert len(violations(source, module)) == 1


@pytest.mark.parametrize(
    ("module", "source"),
    [
        (
            "jerp.harness.reward",
            "import math\nimport jax\nfrom jerp.typing import Array",
        ),
        ("jerp.harness.reward", "from jerp.harness.actions import ACTIONS"),
        ("jerp.harness.reward", "from . import actions"),
        ("jerp.records", "from jerp.typing import Array"),
        ("jerp.bridge.store", "import json, os\nfrom jerp.errors import StorageError"),
        ("jerp.domains.base", "from jerp.bridge.executor import Request"),
        (
            "jerp.cli",
            "from experiments.launch import main\nfrom jerp import __version__",
        ),
        (
            "experiments.launch",
            "from jerp.runs import harness\nimport experiments.sweep",
        ),
    ],
)
def test_a_right_import_is_left_alone(module, source):
    assert violations(source, module) == []


def test_importing_jerp_is_light():
    """In a fresh process: neither the edge's heavy libraries nor jax itself."""
    program = "import sys, jerp; print(*sorted({m.split('.')[0] for m in sys.modules}))"
    loaded = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, check=True
    )
    heavy = {"transformers", "orbax", "matplotlib", "torch", "jax", "flax", "optax"}
    assert not heavy & set(loaded.stdout.split())
    assert "jerp" in loaded.stdout.split()
