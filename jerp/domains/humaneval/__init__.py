"""HumanEval: a function is to be written, and the official program checks it."""

from __future__ import annotations

from jerp.domains.humaneval.benchmark import (
    HumanEval,
    HumanEvalSession,
    official_program,
)

__all__ = ["HumanEval", "HumanEvalSession", "official_program"]
