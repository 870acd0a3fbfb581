"""Runs in which rules and a policy are learned together, from the same episodes."""
