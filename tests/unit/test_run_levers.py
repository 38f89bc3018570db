"""Which levers a run injects, and which it writes into copies of the source."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from flatout import store
from flatout.model.case import Case, Evidence, Finding, Program, Where
from flatout.model.errors import CaseNotFound, InvalidOption
from flatout.model.evidence.steps import HostSync
from flatout.run import session
from flatout.run.request import RunRequest
from flatout.run.session import Levers

SOURCE = """\
import numpy as np
def learn(values):
    best = np.zeros(64)
    for row in range(64):
        best[row] = max(values[row])
    return best
"""


@pytest.fixture
def tuned(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The command of a program of which a tune is kept here."""
    program = tmp_path / "train.py"
    program.write_text(SOURCE)
    where = Where(str(program), 5)
    pulls: Evidence = HostSync(4.0, per_step=64.0, calls=640, bytes_per_step=256.0, where=where)
    command = ["python", str(program)]
    case = Case(
        "tune",
        Program(tuple(command), str(tmp_path)),
        evidence=(pulls,),
        findings=(Finding("host-sync", "", where),),
        tuned=("read-once", "xla"),
    )
    monkeypatch.chdir(tmp_path)
    directory = tmp_path / store.HOME / "cases" / "tune-train-1"
    directory.mkdir(parents=True)
    store.write_case(case, directory)
    return command


def test_what_a_tune_has_written_into_the_source_is_run_from_a_copy(tuned, tmp_path):
    levers = session._levers(RunRequest(tuned[1], levers=("@tuned",)), tuned)
    assert (levers.injected, levers.written) == (("xla",), ("read-once",))
    command = session._edited(tuned, levers, tmp_path / "recording")
    copies = json.loads(command[2])
    assert command[3:] == tuned[1:]
    assert "np.asarray(values)" in Path(copies[tuned[1]]).read_text()
    assert Path(tuned[1]).read_text() == SOURCE


def test_an_edit_that_no_tune_has_found_cannot_be_asked_for(tuned):
    with pytest.raises(InvalidOption, match="read-once is an edit of the source"):
        session._levers(RunRequest(tuned[1], levers=("read-once",)), tuned)


def test_a_program_without_a_tune_is_named_with_the_place_that_was_searched(tuned, tmp_path):
    with pytest.raises(CaseNotFound, match=f"No tune of other.py in {tmp_path / store.HOME}"):
        session._levers(RunRequest("other.py", levers=("@tuned",)), ["python", "other.py"])


def test_without_edits_the_command_stays(tuned, tmp_path):
    assert session._edited(tuned, Levers(("xla",)), tmp_path) == tuned
