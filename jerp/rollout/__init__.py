"""Episodes collected by one batch-native scan."""
