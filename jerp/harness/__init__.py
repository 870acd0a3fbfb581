"""The Harness MDP: actions, state features, baselines, reward and maturity."""
