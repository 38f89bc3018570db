"""Honest comparison on noisy machines: interval statistics of paired measurements."""
