"""Ctrl-C in the middle of `flatout optimize`: what was raced is shown, nothing is handed over."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path

import keras
import pytest
from observed import case_in, environment
from swift import MAIN, SHORT_CALLS

from waiting import until

pytestmark = pytest.mark.slow


def test_what_was_raced_is_shown(tmp_path: Path) -> None:
    model = keras.Sequential([keras.Input((16,)), keras.layers.Dense(8, activation="relu"), keras.layers.Dense(3)])
    model.save(tmp_path / "model.keras")
    routes = ["--route", "tf-frozen", "--route", "litert-fp32"]
    with open(tmp_path / "told", "wb") as file:
        process = subprocess.Popen(
            [sys.executable, "-c", SHORT_CALLS + MAIN, "optimize", "model.keras", *routes, "-o", "served"],
            cwd=tmp_path, env=environment(), stdin=subprocess.DEVNULL, stdout=file, stderr=file, start_new_session=True,
        )  # fmt: skip
        until(lambda: b"measuring the best again" in (tmp_path / "told").read_bytes())
        os.killpg(process.pid, signal.SIGINT)  # as a terminal does
        assert process.wait(120) == 130
    told = " ".join((tmp_path / "told").read_text().split())  # its lines are as wide as the terminal
    assert "Interrupted: nothing was handed over. 2 of 2 routes raced. What was converted is kept" in told
    case = case_in(tmp_path)
    assert case.program.exit_code == 130
    assert {trial.levers[0] for trial in case.trials if trial.rounds} >= {"tf-frozen", "litert-fp32"}
