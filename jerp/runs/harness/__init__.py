"""The harness-control loop: collect, train, evaluate, compare, report."""
