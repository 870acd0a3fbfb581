"""Written skills: what one is, what it earned, and which skill it came from."""
