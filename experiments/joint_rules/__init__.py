"""JERP: rules and a policy learned together from the same episodes."""
