"""Some of the planted corruptions of `benchmarks/mutations.py`, and honest cures beside them, in one traced program.

In the ordinary run `test_tune_prove.py` catches a corruption to the end of a program, `test_tune.py` one in a tune.
"""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest
from observed import environment

pytestmark = [pytest.mark.slow, pytest.mark.exhaustive]

BENCHMARK = Path(__file__).resolve().parents[2] / "benchmarks" / "mutations.py"
CORRUPT = ("late-gradient-scaled", "late-frozen-schedule", "late-batchnorm-reset", "ema-stale", "bias-gradient-zero")
HONEST = ("placebo", "xla")


def test_corruptions_are_caught_and_honest_cures_accepted(tmp_path: Path) -> None:
    only = f"^(mutation=({'|'.join(CORRUPT)})|{'|'.join(HONEST)})$"
    done = subprocess.run(
        [sys.executable, str(BENCHMARK), "traced", "--only", only],
        cwd=tmp_path,
        env=environment(),
        capture_output=True,
        text=True,
        timeout=900,
    )
    assert done.returncode == 0, done.stdout + done.stderr[-3000:]
    assert f"{len(CORRUPT)} of {len(CORRUPT)} caught" in done.stdout
    assert f"{len(HONEST)} of {len(HONEST)} accepted" in done.stdout
    (placebo,) = [line for line in done.stdout.splitlines() if " placebo " in line and " exact: " in line]
    assert "losses of 150 steps over 3 epochs and all 25 variables, to the end of the program, are the same" in placebo
