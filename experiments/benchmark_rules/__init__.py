"""Rules that a frozen model is reminded of, learned in benchmarks in text."""
