"""The example in every public docstring of the equations is run, and there is one."""

import doctest
import importlib
import inspect
import pkgutil

import pytest

import jerp

PACKAGES = (
    "ops",
    "advantages",
    "objectives",
    "estimators",
    "harness",
    "rules",
    "skills",
)


def modules():
    for package in PACKAGES:
        folder = importlib.import_module(f"jerp.{package}")
        for module in pkgutil.iter_modules(folder.__path__, f"jerp.{package}."):
            yield module.name


MODULES = sorted(modules())


@pytest.mark.parametrize("name", MODULES)
def test_examples_print_what_they_say(name):
    module = importlib.import_module(name)
    result = doctest.testmod(module)
    assert result.failed == 0


@pytest.mark.parametrize("name", [m for m in MODULES if ".harness." not in m])
def test_every_public_function_has_an_example(name):
    module = importlib.import_module(name)
    functions = {
        public: value
        for public in module.__all__
        if inspect.isroutine(value := getattr(module, public))
        or hasattr(value, "__wrapped__")  # jitted
    }
    without = [n for n, f in functions.items() if ">>>" not in (f.__doc__ or "")]
    assert functions, f"{name} has no public function"
    assert not without, f"{name}: no example in {without}"


def test_the_modules_were_found():
    assert {name.split(".")[1] for name in MODULES} == set(PACKAGES)
    assert jerp.__version__
