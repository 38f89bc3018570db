"""flatout finds out why a TensorFlow program is slow, fixes it, and proves the fix on that very program."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Any

from flatout._callable import make_callable
from flatout.model import notebook_view
from flatout.model.version import __version__

if TYPE_CHECKING:
    from contextlib import AbstractContextManager

    from flatout.cli.check import check
    from flatout.data.api import inspect, tune_dataset
    from flatout.model.case import Case
    from flatout.optimize.api import optimize
    from flatout.optimize.compress.cluster import cluster
    from flatout.optimize.compress.distill import distill
    from flatout.optimize.compress.fold import fold
    from flatout.optimize.compress.prune import prune
    from flatout.optimize.compress.quantize import quantize
    from flatout.run.api import run
    from flatout.run.inside import Observation
    from flatout.tune.api import tune
    from flatout.versions.api import bisect, compare_environments
else:  # packages that are called; an editor is shown the functions above
    from flatout import check, observe, optimize, run, tune


__all__ = [
    "Observer", "__version__", "bisect", "check", "cluster", "compare_environments", "distill", "fold", "inspect",
    "load", "observe", "optimize", "prune", "quantize", "run", "tune", "tune_dataset",
]  # fmt: skip


def load(path: str | os.PathLike[str] | None = None) -> Case:
    """Read a kept case: a case.json, its directory, its name, or the latest one of the working directory."""
    from flatout import store

    return store.load(store.locate(None if path is None else os.fspath(path)))


def Observer(*, trace: bool = True, show: bool = True) -> Any:  # noqa: N802  # it makes an instance of a Keras callback
    """A Keras callback that observes a whole `fit`: `model.fit(…, callbacks=[flatout.Observer()])`."""
    from flatout.run import inside

    return inside.callback(trace=trace, show=show)


def _observe(*, trace: bool = True, show: bool = True) -> AbstractContextManager[Observation]:
    """Observe a block of this program, for those who cannot use the command line (a notebook).

    with flatout.observe() as seen:
        model.fit(dataset)
    seen.case.findings
    """
    from flatout.run import inside

    return inside.observe(trace=trace, show=show)


def _as_html(case: Case) -> str:
    from flatout.report.html.fragment import render

    return render(case)


def load_ipython_extension(shell: Any) -> None:
    """`%load_ext flatout`: gives a notebook `%%flatout` and `%%flatout tune`."""
    from flatout.jupyter.magics import register

    register(shell)


notebook_view.render = _as_html
if TYPE_CHECKING:
    observe = _observe
else:
    make_callable(check, "flatout.cli.check:check")
    make_callable(observe, _observe)
    make_callable(optimize, "flatout.optimize.api:optimize")
    make_callable(run, "flatout.run.api:run")
    make_callable(tune, "flatout.tune.api:tune")

_LATER = {
    **{name: f"flatout.optimize.compress.{name}" for name in ("cluster", "distill", "fold", "prune", "quantize")},
    **dict.fromkeys(("inspect", "tune_dataset"), "flatout.data.api"),
    **dict.fromkeys(("bisect", "compare_environments"), "flatout.versions.api"),
}
"""Names that are imported when they are first used, and the modules that hold them."""


def __getattr__(name: str) -> Any:
    if name not in _LATER:
        raise AttributeError(f"module 'flatout' has no attribute {name!r}")
    import importlib

    return getattr(importlib.import_module(_LATER[name]), name)
