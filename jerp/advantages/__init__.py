"""Group-relative advantages: pure functions on arrays."""
