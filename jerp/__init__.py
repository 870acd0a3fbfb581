"""jerp: LLM agents that improve from their own trajectories, in pure-functional JAX."""

__version__ = "0.1.0"
