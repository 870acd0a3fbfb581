"""Strict JAX for every test, no sockets, and the eager/jit/vmap parity fixture."""

import atexit
import gc
import os
import shutil
import signal
import socket
import tempfile
from pathlib import Path

os.environ.setdefault("JAX_PLATFORMS", "cpu")
os.environ.setdefault("HF_HUB_OFFLINE", "1")

# Compiling is nearly all of the time. Unless told otherwise, programs are compiled in
# half of it, here and in the processes that tests start, to run slower and without
# fused multiply-adds. Where single bits count, tests.optimised compiles as users do.
os.environ.setdefault("JAX_DISABLE_MOST_OPTIMIZATIONS", "1")
os.environ.setdefault(
    "XLA_FLAGS",
    "--xla_cpu_use_fusion_emitters=false --xla_cpu_parallel_codegen_split_count=1",
)

# Workers, and the processes that tests start, compile many a program alike: what one
# has compiled the others take. Made by the first process, gone with it.
if "JAX_COMPILATION_CACHE_DIR" not in os.environ:
    os.environ["JAX_COMPILATION_CACHE_DIR"] = tempfile.mkdtemp(prefix="jerp-tests-")
    os.environ["JAX_PERSISTENT_CACHE_MIN_COMPILE_TIME_SECS"] = "0"
    os.environ["JAX_PERSISTENT_CACHE_MIN_ENTRY_SIZE_BYTES"] = "-1"
    atexit.register(
        shutil.rmtree, os.environ["JAX_COMPILATION_CACHE_DIR"], ignore_errors=True
    )

import hypothesis
import jax
import jax.numpy as jnp
import pytest

jax.config.update("jax_numpy_rank_promotion", "raise")
jax.config.update("jax_debug_key_reuse", True)

# Imports and traces make much that stays a while: garbage is looked for seldom.
gc.set_threshold(100_000, 20, 50)

# A property that does not say how often is tried so often; CONTRIBUTING.md says how to
# try it more often.
hypothesis.settings.register_profile("quick", max_examples=50)
hypothesis.settings.register_profile("thorough", max_examples=400)
hypothesis.settings.load_profile("quick")

# One test of these takes longer than most files do: they start first, so that no
# worker is left alone with them in the end.
LONGEST = ("experiments", "notebooks", "runs", "test_packaging.py", "test_readme.py")


def pytest_collection_modifyitems(items):
    root = Path(__file__).parents[1]

    def is_short(item):
        parts = item.path.relative_to(root).parts
        return parts[parts[0] == "tests"] not in LONGEST

    items.sort(key=is_short)


def pytest_collection_finish():
    """What was imported stays: no garbage is looked for in it."""
    gc.collect()
    gc.freeze()


@pytest.fixture(autouse=True, scope="session")
def _interruptible():
    """Ctrl-C works even in a run that was started in the background without it."""
    signal.signal(signal.SIGINT, signal.default_int_handler)


@pytest.fixture(autouse=True)
def _no_sockets(request, monkeypatch):
    """A test that reaches the network without saying so fails, naming the address."""
    if request.node.get_closest_marker("network"):
        return

    real = socket.socket.connect

    def connect(self, address):
        if self.family in (socket.AF_INET, socket.AF_INET6):
            host = address[0]
            if not host.startswith("127.") and host not in ("localhost", "::1"):
                raise AssertionError(f"test connects to {address}; mark it 'network'")
        return real(self, address)

    monkeypatch.setattr(socket.socket, "connect", connect)


def _vmap_one(fn):
    def wrapped(*args):
        lead = jax.tree.map(lambda x: jnp.asarray(x)[None], args)
        return jax.tree.map(lambda x: x[0], jax.vmap(fn)(*lead))

    return wrapped


def _vmap_many(fn):
    def wrapped(*args):
        stack = jax.tree.map(lambda x: jnp.stack([jnp.asarray(x)] * 3), args)
        return jax.tree.map(lambda x: x[1], jax.vmap(fn)(*stack))

    return wrapped


TRANSFORMS = {
    "eager": lambda fn: fn,
    "jit": jax.jit,
    "vmap_one": _vmap_one,
    "vmap_many": _vmap_many,
}


# A batch of one seldom fails where a batch of many does not, and costs as much.
@pytest.fixture(
    params=[
        pytest.param(name, marks=[pytest.mark.slow] * (name == "vmap_one"))
        for name in sorted(TRANSFORMS)
    ]
)
def transform(request):
    """Runs a function of arrays eagerly, jitted or vmapped; bind keywords first."""
    return TRANSFORMS[request.param]
