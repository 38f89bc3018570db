"""What a tune writes in the end is the patch that was raced, or nothing."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest
from test_trial_patch import PROGRAM, case_of
from test_trial_patch import program as program  # a fixture

from flatout.model.case import Case
from flatout.model.errors import PatchFailed
from flatout.trial import patch
from flatout.trial.child_process import Launch
from flatout.tune import prove, session
from flatout.tune.request import TuneRequest

LEVERS = ("prefetch",)
EDITED = PROGRAM.replace("def step(x)", "def step(x, y=0)")
"""At a line that nothing was observed of, next to the one that the patch changes."""


def tuned(path: Path) -> Case:
    case = replace(case_of(path), kind="tune", tuned=LEVERS)
    return replace(case, patch=patch.make(case, LEVERS).diff)


def request(path: Path, tmp_path: Path, how: str) -> TuneRequest:
    asked = {"patch": tmp_path / "out.diff", "branch": "faster", "apply": True}
    return replace(TuneRequest(str(path)), **{how: asked[how]})  # type: ignore[arg-type]


def test_the_patch_that_was_raced_is_written_and_applied(program: Path, tmp_path: Path) -> None:
    case = tuned(program)
    session._write_patch(case, request(program, tmp_path, "patch"))
    assert (tmp_path / "out.diff").read_text(encoding="utf-8") == case.patch
    session._write_patch(case, request(program, tmp_path, "apply"))
    assert "prefetch" in program.read_text(encoding="utf-8")


@pytest.mark.parametrize("how", ["patch", "apply", "branch"])
def test_another_patch_than_the_one_that_was_raced_is_not_written(program: Path, tmp_path: Path, how: str) -> None:
    case = tuned(program)
    program.write_text(EDITED)
    with pytest.raises(PatchFailed, match=r"train\.py has changed since the patch was raced.*Run `flatout tune` again"):
        session._write_patch(case, request(program, tmp_path, how))
    assert program.read_text() == EDITED
    assert not (tmp_path / "out.diff").exists()


def test_another_patch_than_the_one_that_was_raced_is_not_proved(program: Path, tmp_path: Path) -> None:
    case = tuned(program)
    program.write_text(EDITED)
    with pytest.raises(PatchFailed, match="has changed since the patch was raced"):
        prove._changed(Launch(("python", str(program))), case, LEVERS, tmp_path)
