"""The edge to executors, processes and text."""
