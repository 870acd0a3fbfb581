"""HumanEval: a function is to be written, and the official program checks it."""

from __future__ import annotations

from jerp.domains.humaneval.benchmark import (
    HumanEval,
    HumanEvalSession,
    official_program,
)
from jerp.domains.humaneval.harness import HumanEvalDomain

__all__ = ["HumanEval", "HumanEvalDomain", "HumanEvalSession", "official_program"]
