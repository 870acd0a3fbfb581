"""Experiments: what was asked, the command that answers, the number to expect."""
