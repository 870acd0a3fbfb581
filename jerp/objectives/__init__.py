"""Losses and weights of policy learning: pure functions on arrays."""
