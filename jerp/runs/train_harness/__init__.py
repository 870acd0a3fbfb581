"""`jerp train harness`: a controller from logged episodes."""
