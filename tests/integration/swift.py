"""`flatout` with shorter blocks in its races and one pair of whole runs: for tests in which ratios are far from 1, and
for those that assert none."""

from __future__ import annotations

import sys

MAIN = """
import sys
from flatout.cli import main
sys.argv[0] = "flatout"
main()
"""
DRIVER = """
from flatout.tune import race, starter, whole_runs
starter.BLOCK_SECONDS = race.BLOCK_SECONDS = 0.1
whole_runs.MOST_PAIRS, whole_runs.FURTHER = 1, 0
"""
SWIFT = [sys.executable, "-c", DRIVER + MAIN]

SHORT_CALLS = """
import flatout.optimize.contestant
flatout.optimize.contestant.BLOCK_SECONDS = 0.03
"""
"""For `flatout optimize`, which races calls of a model."""
