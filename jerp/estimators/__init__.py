"""Estimators of what was learned, with intervals: pure functions on arrays."""
