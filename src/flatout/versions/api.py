"""`flatout.compare_environments(program, …)` and `flatout.bisect(program, …)`: the commands, from Python."""

from __future__ import annotations

import os
import sys
from collections.abc import Sequence

from flatout.compare.bisection import Bisection
from flatout.compare.environments import EnvironmentComparison
from flatout.model.quantities import seconds
from flatout.process.fence.means import Leave
from flatout.versions import search
from flatout.versions.request import CompareRequest, Subject
from flatout.versions.search import BisectRequest
from flatout.versions.session import compare_environments as compare


def compare_environments(
    program: str | os.PathLike[str],
    arguments: Sequence[str] = (),
    *,
    before: str,
    after: str,
    module: bool = False,
    budget: str | float = "5m",
    unfenced: bool = False,
    network: bool = False,
    show: bool = True,
) -> EnvironmentComparison:
    """Race a program in two environments, and return what differs.

    `before` and `after` are what `--env` of `flatout compare` takes: a Python, a virtual environment, or packages as
    in `tensorflow==2.15`. `show` prints progress and result to standard error.
    """
    subject = Subject(os.fspath(program), tuple(arguments), module, Leave(unfenced, network))
    found = compare(CompareRequest(subject, before, after, seconds(budget, "budget"), not show))
    if show:
        from flatout.report.terminal.environments import render

        sys.stderr.write(render(found))
    return found


def bisect(
    program: str | os.PathLike[str],
    arguments: Sequence[str] = (),
    *,
    good: str,
    bad: str,
    versions: Sequence[str] = (),
    module: bool = False,
    budget: str | float = "2m",
    unfenced: bool = False,
    network: bool = False,
    show: bool = True,
) -> Bisection:
    """Find the release of a package, or the package of a list, that made a program slower.

    The parameters are the options of `flatout bisect`; `budget` is that of each comparison.
    """
    subject = Subject(os.fspath(program), tuple(arguments), module, Leave(unfenced, network))
    request = BisectRequest(subject, good, bad, tuple(versions), seconds(budget, "budget"), not show)
    found = search.bisect(request)
    if show:
        from flatout.report.terminal.bisection import render

        sys.stderr.write(render(found))
    return found
