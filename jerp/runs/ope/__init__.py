"""`jerp ope`: what a controller is worth, from logged episodes, before it acts."""
