"""Runs of skills: an optimizer drafts, a frozen executor executes, and it learns."""
