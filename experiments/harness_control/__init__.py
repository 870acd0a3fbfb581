"""Harness control: base, rules, cloning and advantage weighting on held-out tasks."""
