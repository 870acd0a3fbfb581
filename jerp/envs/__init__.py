"""Worlds in pure JAX."""
