"""Runs an optimize request from start to end: directory, compression, display, the kept case. For command and API."""

from __future__ import annotations

import shutil
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from flatout import store
from flatout.model.case import Case
from flatout.model.errors import CaseNotReady, FlatoutError
from flatout.optimize import case as case_module
from flatout.optimize import time_budget
from flatout.optimize.artefact import LOADER, unfinished
from flatout.optimize.optimizer import Optimizer
from flatout.optimize.request import OptimizeRequest
from flatout.report import standard_error
from flatout.report.progress import Progress
from flatout.store import saving
from flatout.subject.preparation import InMemory, prepare


@dataclass(frozen=True)
class Result:
    """What the API returns: the case, and the directory of the artefact if one passed its checks."""

    case: Case
    artefact: Path | None
    directory: Path
    """Where the case is kept."""
    interrupted: bool = False

    def load(self) -> Callable[..., Any]:
        """The artefact as a function from a list of arrays to a list of arrays."""
        from flatout.routes._route import run_loader

        trial = next((one for one in self.case.trials if one.serving is not None and one.serving.artefact), None)
        if trial is None or trial.serving is None or self.artefact is None:
            raise CaseNotReady(
                "No artefact passed its checks, so there is nothing to load. `trials` says what each route did."
            )
        return run_loader((self.artefact / LOADER).read_text(encoding="utf-8"), self.artefact)


def optimize(request: OptimizeRequest, *, quiet: bool = False, in_memory: InMemory | None = None) -> Result:
    if request.compress is not None:
        from flatout.optimize.compress.command import compress_for_race

        request = compress_for_race(request, quiet)
    started, began = case_module.now(), time.monotonic()
    directory = store.new_directory(f"optimize-{Path(request.model).stem}")
    (directory / "subject").mkdir()
    try:
        prepared = prepare(request.subject_request(directory / "subject"), in_memory) if in_memory else None
        with Progress(request.seconds or time_budget.MIN_SECONDS, quiet) as progress:
            outcome = Optimizer(request, directory, progress, prepared).run()
        in_process = in_memory is not None and in_memory.original is not None
        command = ("flatout.optimize", request.model) if in_process else tuple(sys.argv[1:])
        case = case_module.make_case(outcome, request, command, started, time.monotonic() - began)
        try:
            case_module.publish(outcome, case)
        except OSError as error:  # what was measured stands, but there is nothing to hand over
            assert outcome.claim is not None
            outcome.claim.withdraw(f"the artefact could not be written: {error}")
            case = case_module.make_case(outcome, request, command, started, time.monotonic() - began)
        saving.save(case, directory)
        artefact = outcome.claim.artefact if outcome.claim and outcome.claim.winner else None
        return Result(case, artefact, directory, outcome.interrupted)
    except (FlatoutError, KeyboardInterrupt):
        shutil.rmtree(directory, ignore_errors=True)  # nothing was measured: there is no case
        raise
    finally:
        for name in ("subject", "candidates", "logs/tmp"):
            shutil.rmtree(directory / name, ignore_errors=True)
        shutil.rmtree(unfinished(request.output or directory / "artefact"), ignore_errors=True)


def show(result: Result) -> None:
    standard_error.show(result.case, "serving", result.directory)
