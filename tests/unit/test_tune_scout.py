"""What a scouting run says of a program that ends before its first step."""

from __future__ import annotations

import sys
import time

from flatout.model.case import Case
from flatout.process.watchdog import Watchdog
from flatout.trial.child_process import Launch
from flatout.tune.request import TuneRequest
from flatout.tune.scout import scout
from flatout.tune.verdict import conclude


def scouted(program: str, tmp_path, *arguments: str) -> Case:
    file = tmp_path / "train.py"
    file.write_text(program)
    launch = Launch((sys.executable, str(file), *arguments))
    watchdog = Watchdog()
    try:
        return scout(launch, tmp_path / "scout", watchdog, time.monotonic() + 60)
    finally:
        watchdog.close()


PARSES = """
import argparse
parser = argparse.ArgumentParser()
parser.add_argument("--epochs", type=int)
parser.parse_args()
"""


def test_a_program_that_refuses_its_arguments_says_so_in_the_verdict(tmp_path):
    """`flatout tune train.py --budget 7m`: what stands behind the program is the program's own."""
    case = scouted(PARSES, tmp_path, "--budget", "7m")
    reason = conclude(case, TuneRequest("train.py")).reason
    assert reason.startswith("The program failed before its first step: exit code 2: ")
    assert reason.endswith("unrecognized arguments: --budget 7m")


def test_so_does_one_that_is_killed(tmp_path):
    case = scouted("import os, signal\nos.kill(os.getpid(), signal.SIGKILL)\n", tmp_path)
    assert conclude(case, TuneRequest("train.py")).reason == "The program failed before its first step: signal 9"
