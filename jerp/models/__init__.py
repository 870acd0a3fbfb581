"""Networks as flax.linen modules; parameters are explicit pytrees."""
