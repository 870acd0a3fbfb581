"""Other tools' logs as outcomes and trajectories."""
