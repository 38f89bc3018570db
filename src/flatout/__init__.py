"""flatout finds out why a TensorFlow program is slow, fixes it, and proves the fix on that very program."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Any

from flatout import observe, optimize

if TYPE_CHECKING:
    from flatout.case import Case
    from flatout.optimize.compress.cluster import cluster
    from flatout.optimize.compress.distill import distill
    from flatout.optimize.compress.fold import fold
    from flatout.optimize.compress.prune import prune
    from flatout.optimize.compress.quantize import quantize
    from flatout.pipeline.api import inspect, tune_dataset

__version__ = "0.1.0"
__all__ = [
    "Observer", "__version__", "cluster", "distill", "fold", "inspect", "load", "observe", "optimize", "prune",
    "quantize", "tune_dataset",
]  # fmt: skip


def load(path: str | os.PathLike[str] | None = None) -> Case:
    """Read a kept case: a case.json, its directory, its name, or the latest one of the working directory."""
    from flatout import store

    return store.load(store.locate(None if path is None else os.fspath(path)))


def Observer(*, trace: bool = True, show: bool = True) -> Any:  # noqa: N802  # it makes an instance of a Keras callback
    """A Keras callback that observes a whole `fit`: `model.fit(…, callbacks=[flatout.Observer()])`."""
    from flatout.observe import inside

    return inside.callback(trace=trace, show=show)


_LATER = {
    **{name: f"flatout.optimize.compress.{name}" for name in ("cluster", "distill", "fold", "prune", "quantize")},
    **dict.fromkeys(("inspect", "tune_dataset"), "flatout.pipeline.api"),
}
"""Names that are imported when they are first used, and the modules that hold them."""


def __getattr__(name: str) -> Any:
    if name not in _LATER:
        raise AttributeError(f"module 'flatout' has no attribute {name!r}")
    import importlib

    return getattr(importlib.import_module(_LATER[name]), name)
