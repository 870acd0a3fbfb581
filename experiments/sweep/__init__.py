"""Runs many settings side by side, here or on a cluster: submit, retry, merge."""
