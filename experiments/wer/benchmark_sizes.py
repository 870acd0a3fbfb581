"""How much of everything where a language model writes skills for a benchmark.

Prompts hold tools and whole conversations, so they are longer than those for programs.
"""

from __future__ import annotations

from dataclasses import replace

from experiments.wer.language_model_config import PAPER, READER_SMOKE, ReaderSizes

__all__ = ["benchmark_sizes"]

DEFAULT = replace(
    ReaderSizes(),
    prompt_tokens=1024,
    draft_tokens=160,
    evidence_chars=400,
    demonstrations=12,
    validation=6,
    test=12,
)

SMOKE = replace(
    READER_SMOKE,
    prompt_tokens=640,
    draft_tokens=112,
    evidence_chars=120,
    demonstrations=2,
)

PAPER_SIZES = {
    "bfcl": replace(PAPER, validation=12, test=140),
    **dict.fromkeys(
        ("tau2", "tau2-retail", "tau2-telecom"),
        replace(PAPER, train_tasks=24, batches=4, validation=12, test=78),
    ),
    "tau2-airline": replace(PAPER, train_tasks=12, batches=2, validation=6, test=32),
}
"""The paper has 50 training and 150 test tasks of BFCL, and a quarter of tau2-bench's
for training. Here as many train as batches of six hold, and validation, of which it
says nothing, is taken from the rest."""


def benchmark_sizes(env: str, scale: str) -> ReaderSizes:
    """Numbers of a run.

    Args:
      env: the benchmark.
      scale: `smoke`, `default`, or `full`, the paper's.
    """
    if scale == "full":
        return PAPER_SIZES[env]
    return SMOKE if scale == "smoke" else DEFAULT
