"""The executors that experiments run with: a model of this machine, or an endpoint."""
