"""Domains whose tasks are generated from a seed and verified by program."""
