"""WER: an optimizer of skills that a frozen executor follows."""
