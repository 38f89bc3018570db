"""Make a trained model fast and small to serve, within an accuracy budget, and prove it.

    prepare/       from what the user gave to the subject, in a child process
    subject.py     the model as everything here sees it, on disk
    route.py       what a way of running a model has to offer
    backends/      the ways, one file each, found by their file
    graph.py       the subject as a TensorFlow function, frozen or not; only in child processes
    work/          the processes in which models are converted and run

    optimizer.py   the story: prepare, line up, make and check, race, claim, hand over
    lineup.py      which routes are tried, and why the others are not
    workshop.py    converts, opens and checks candidates
    checks.py      what an artefact has to pass before it is timed
    race.py        paired, interleaved rounds of contestants (contestant.py)
    claiming.py    the best again, in fresh processes; handover.py puts the artefact together
    front.py       the Pareto front
    telling.py     all of it as a Case; session.py is what surrounds it; verifying.py repeats the check elsewhere

The parent of a command imports no TensorFlow and no converter: those run in processes of their own, so that one which
crashes, hangs or takes all memory is a row of the table and not the end.
"""

from __future__ import annotations

import sys
import types
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from flatout.optimize.session import Result


class _Room(types.ModuleType):
    """`flatout.optimize` is this package, and users call it: `flatout.optimize(model, data, metric="accuracy")`."""

    def __call__(
        self, model: Any, data: Any = None, *, metric: Any = None, max_drop: float = 0.01, **options: Any
    ) -> Result:
        """Make a model fast to serve; see `flatout.optimize.api.optimize` for the options.

        result = flatout.optimize(model, (x, y), metric="accuracy", max_drop=0.01)
        predict = result.load()
        """
        from flatout.optimize import api

        return api.optimize(model, data, metric=metric, max_drop=max_drop, **options)


sys.modules[__name__].__class__ = _Room
