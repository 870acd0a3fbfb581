"""What is kept on disk: trajectories, controllers, weights, manifests."""
