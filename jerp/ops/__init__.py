"""Masked reductions and returns: pure functions on arrays."""
