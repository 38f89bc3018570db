"""Measuring on noisy machines: races, intervals, parity of numbers, what other processes take."""
