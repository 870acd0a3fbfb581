"""`jerp passkt`: from files of outcomes to tables, figures and `results.json`."""
