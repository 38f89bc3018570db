"""Ids of tests are the same in every process: by them runs are compared, and failures are looked for."""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
from pathlib import Path

import pytest

from conftest import reason_against

ROOT = Path(__file__).resolve().parents[2]
COLLECT = [sys.executable, "-m", "pytest", "--collect-only", "-q", "-p", "no:cacheprovider", "-m", "", "tests"]
LATER = ["sh", "-c", 'sleep 2; exec "$@"', "later"]
"""A second is the finest unit that a name is likely to be made of."""


def collecting(command: list[str], seed: str) -> subprocess.Popen[str]:
    variables = {**os.environ, "PYTHONHASHSEED": seed, "PYTEST_ADDOPTS": "", "PYTEST_XDIST_WORKER": ""}
    return subprocess.Popen(
        command, cwd=ROOT, env=variables, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True
    )


@pytest.mark.exhaustive
def test_two_processes_collect_the_same_tests() -> None:
    """With other hashes, and at another time. In the ordinary run the two processes that run the tests are compared."""
    first, second = (
        process.communicate(timeout=300)[0].splitlines()
        for process in (collecting(COLLECT, "1"), collecting([*LATER, *COLLECT], "2"))
    )
    ids = [line for line in first if "::" in line]
    assert len(ids) > 1000, first[-20:]
    assert len(set(ids)) == len(ids)
    assert ids == [line for line in second if "::" in line]


@pytest.mark.parametrize(
    ("identity", "why"),
    [
        ("tests/unit/test_x.py::test_y[small batch]", ""),
        ("tests/unit/test_x.py::test_y[0x10]", ""),
        ("tests/unit/test_x.py::test_y[\a]", "cannot be printed"),
        ("tests/unit/test_x.py::test_y[<lambda> at 0xffff7e404550]", "address"),
        ("tests/unit/test_x.py::test_y[<Case object>]", "address"),
        (f"tests/unit/test_x.py::test_y[{tempfile.gettempdir()}/a]", "directory of this machine"),
        (f"tests/unit/test_x.py::test_y[{ROOT}/train.py]", "directory of this machine"),
    ],
    ids=["words", "short number", "control", "address", "object", "temporary", "here"],
)
def test_an_id_that_another_run_would_not_have_is_refused(identity: str, why: str) -> None:
    assert why in reason_against(identity)
    assert bool(why) == bool(reason_against(identity))
