"""Tries the cures on the real program: scout, plan, race, combine, confirm, patch. `tuner` tells the story."""
