"""GiGPO against GRPO, with the control that has no anchors."""
