"""Training runs of policies: they own the files, the loop and the progress bar."""
