"""Pools of natural-language rules, their edits and what became of them."""
