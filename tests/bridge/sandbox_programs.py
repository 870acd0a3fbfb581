"""Hostile programs, and how each must end. Imports the standard library alone."""

from __future__ import annotations

from tests.bridge.sandbox_programs_ending import ENDING
from tests.bridge.sandbox_programs_exhausting import EXHAUSTING
from tests.bridge.sandbox_programs_reaching import REACHING

__all__ = ["ATTACKS"]

ATTACKS = EXHAUSTING | REACHING | ENDING
