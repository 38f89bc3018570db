"""`flatout` with shorter blocks in its races and one pair of whole runs: for tests in which ratios are far from 1."""

from __future__ import annotations

import sys

DRIVER = """
import sys
from flatout.tune import race, starter, whole_runs
starter.BLOCK_SECONDS = race.BLOCK_SECONDS = 0.1
whole_runs.MOST_PAIRS, whole_runs.FURTHER = 1, 0
from flatout.cli import main
sys.argv[0] = "flatout"
main()
"""
SWIFT = [sys.executable, "-c", DRIVER]
