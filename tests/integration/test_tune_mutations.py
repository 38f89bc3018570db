"""Some of the planted corruptions of `benchmarks/mutations.py`, and honest cures beside them, in one traced program."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest
from observed import environment

pytestmark = pytest.mark.slow

BENCHMARK = Path(__file__).resolve().parents[2] / "benchmarks" / "mutations.py"
FEW = (("late-gradient-scaled", "ema-stale"), ("placebo",))
MORE = (("late-frozen-schedule", "late-batchnorm-reset", "bias-gradient-zero"), ("placebo", "xla"))


@pytest.mark.parametrize(
    ("corrupt", "honest"), [pytest.param(*FEW, id="few"), pytest.param(*MORE, id="more", marks=pytest.mark.exhaustive)]
)
def test_corruptions_are_caught_and_honest_cures_accepted(
    corrupt: tuple[str, ...], honest: tuple[str, ...], tmp_path: Path
) -> None:
    only = f"^(mutation=({'|'.join(corrupt)})|{'|'.join(honest)})$"
    done = subprocess.run(
        [sys.executable, str(BENCHMARK), "traced", "--only", only],
        cwd=tmp_path,
        env=environment(),
        capture_output=True,
        text=True,
        timeout=900,
    )
    assert done.returncode == 0, done.stdout + done.stderr[-3000:]
    assert f"{len(corrupt)} of {len(corrupt)} caught" in done.stdout
    assert f"{len(honest)} of {len(honest)} accepted" in done.stdout
    (placebo,) = [line for line in done.stdout.splitlines() if " placebo " in line and " exact: " in line]
    assert "losses of 150 steps over 3 epochs and all 25 variables, to the end of the program, are the same" in placebo
