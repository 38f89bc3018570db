"""`flatout.tune(program, …)`: the same as the command, from Python."""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path

from flatout.model.case import Case
from flatout.model.quantities import seconds
from flatout.process.fence.means import Leave
from flatout.tune.request import TuneRequest
from flatout.tune.session import tune_for_case


def tune(
    program: str | os.PathLike[str],
    arguments: Sequence[str] = (),
    *,
    module: bool = False,
    levers: Sequence[str] = (),
    without: Sequence[str] = (),
    allow: Sequence[str] = (),
    budget: str | float | None = None,
    patch: str | os.PathLike[str] | None = None,
    branch: str | None = None,
    apply: bool = False,
    resume: bool = False,
    prove: bool = False,
    on: str | None = None,
    unfenced: bool = False,
    network: bool = False,
    show: bool = True,
) -> Case:
    """Try cures on a program, measure and prove them, and return the case.

    `case.conclusion` says what it has come to, `case.tuned` names the levers, `case.patch` is the diff. The parameters
    are the options of `flatout tune`; `levers` are those of `--lever`, `budget` is a time as `10m` or in seconds (8m,
    more where the program starts slowly).
    `show` prints the progress and the screen to standard error.
    """
    request = TuneRequest(
        os.fspath(program),
        tuple(arguments),
        module=module,
        levers=tuple(levers),
        without=tuple(without),
        allow=tuple(allow),
        budget=None if budget is None else seconds(budget, "budget"),
        resume=resume,
        quiet=not show,
        silent=not show,
        patch=None if patch is None else Path(patch),
        branch=branch,
        apply=apply,
        prove=prove,
        on=on,
        leave=Leave(unfenced, network),
    )
    return tune_for_case(request)
