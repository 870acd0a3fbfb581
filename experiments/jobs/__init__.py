"""Jobs of experiments, side by side in processes: running them, and their files."""
