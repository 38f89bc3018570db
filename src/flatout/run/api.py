"""`flatout.run(program, …)`: the same as the command, from Python."""

from __future__ import annotations

import os
from collections.abc import Sequence

from flatout.model.case import Case
from flatout.model.errors import ProgramUnusable
from flatout.model.quantities import seconds
from flatout.run.request import RunRequest
from flatout.run.session import run_for_case, window_of


def run(
    program: str | os.PathLike[str],
    arguments: Sequence[str] = (),
    *,
    module: bool = False,
    steps: int | None = None,
    window: str | None = None,
    trace: bool | None = None,
    observe_for: str | float | None = None,
    flame: bool = False,
    nsys: bool = False,
    levers: Sequence[str] = (),
    job: str | os.PathLike[str] | None = None,
    show: bool = True,
) -> Case:
    """Run a program unchanged in a process of its own, observe it, and return the case; it is kept in `.flatout/`.

    The parameters are the options of `flatout run`; `levers` are those of `--with`, `observe_for` is `--for`. `show`
    prints the screen to standard error. The program's own exit code is `case.program.exit_code`.
    """
    first, wanted = window_of(window, steps)
    request = RunRequest(
        program=os.fspath(program),
        arguments=tuple(arguments),
        module=module,
        trace=trace,
        observe_for=seconds(observe_for, "observe_for") if observe_for is not None else None,
        window_start=first,
        window_steps=wanted,
        flame=flame,
        nsys=nsys,
        levers=tuple(levers),
        job=os.fspath(job) if job is not None else None,
        quiet=not show,
        silent=not show,
    )
    _, case = run_for_case(request)
    if case is None:
        raise ProgramUnusable("No case could be made of this run; the message above says why.")
    return case
