"""Tasks, their worlds and their verifiers."""
