"""What surrounds an optimize: its directory, its display, the case that is kept. For the command and for the API."""

from __future__ import annotations

import os
import shutil
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from flatout import store
from flatout.model.case import Case
from flatout.model.errors import CaseNotReady, FlatoutError, InvalidOption
from flatout.optimize import allowance
from flatout.optimize.front import OBJECTIVES
from flatout.optimize.optimizer import Optimizer, Options
from flatout.optimize.telling import case_of, now, write_manifest
from flatout.report.progress import Progress
from flatout.store import saving
from flatout.subject.preparing import Request, prepare


@dataclass(frozen=True)
class Result:
    """What the API gives back: the case, and the directory of the artefact where one passed its checks."""

    case: Case
    artefact: Path | None
    directory: Path
    """Where the case is kept."""

    def load(self) -> Callable[..., Any]:
        """The artefact as a function from a list of arrays to a list of arrays."""
        from flatout.routes import find

        trial = next((one for one in self.case.trials if one.serving is not None and one.serving.artefact), None)
        if trial is None or trial.serving is None or self.artefact is None:
            raise CaseNotReady("No artefact passed its checks: there is nothing to load.")
        return find(trial.serving.route).open(self.artefact, trial.serving.setting, trial.serving.latencies[0].batch)


def optimize(
    request: Request,
    options: Options,
    *,
    quiet: bool = False,
    original: Any = None,
    given: Any = None,
    metric: Callable[..., Any] | None = None,
) -> Result:
    """`original`, `given` and `metric` are for a model, data and a function in memory."""
    if options.objective not in OBJECTIVES:
        raise InvalidOption(f"An artefact is made for {', '.join(OBJECTIVES)}, not for {options.objective!r}.")
    started, began = now(), time.monotonic()
    directory = store.new_directory(f"optimize-{Path(request.model).stem}")
    request = replace(request, directory=str(directory / "subject"))
    (directory / "subject").mkdir()
    try:
        in_memory = original is not None or given is not None or metric is not None
        prepared = prepare(request, original, given, metric) if in_memory else None
        progress = Progress(options.budget or allowance.LEAST, quiet)
        with progress:
            outcome = Optimizer(request, options, directory, progress, prepared).run()
        command = tuple(sys.argv[1:]) if original is None else ("flatout.optimize", request.model)
        case = case_of(outcome, options, command, started, time.monotonic() - began)
        write_manifest(outcome, case)
        saving.save(case, directory)
        return Result(case, outcome.claim.place if outcome.claim and outcome.claim.winner else None, directory)
    except (FlatoutError, KeyboardInterrupt):
        shutil.rmtree(directory, ignore_errors=True)  # nothing was measured: there is no case
        raise
    finally:
        for name in ("subject", "candidates"):
            shutil.rmtree(directory / name, ignore_errors=True)


def show(result: Result, json: str | None = None, quiet: bool = False) -> None:
    case = result.case
    if json is not None:
        from flatout.report.json import write

        write(case, json)
    if quiet:
        sys.stderr.write(f"flatout: {case.verdict}\n")
        return
    from flatout.report.terminal import render

    terminal = sys.stderr.isatty()
    width = os.get_terminal_size(sys.stderr.fileno()).columns if terminal else None
    text = render(case, "serving", width, terminal and "NO_COLOR" not in os.environ, directory=result.directory)
    sys.stderr.write("\n" + text)
