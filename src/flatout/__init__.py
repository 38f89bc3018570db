"""flatout finds out why a TensorFlow program is slow, fixes it, and proves the fix on that very program."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Any

from flatout import observe

if TYPE_CHECKING:
    from flatout.case import Case

__version__ = "0.1.0"
__all__ = ["Observer", "__version__", "load", "observe"]


def load(path: str | os.PathLike[str] | None = None) -> Case:
    """Read a kept case: a case.json, its directory, its name, or the latest one of the working directory."""
    from flatout import store

    return store.load(store.locate(None if path is None else os.fspath(path)))


def Observer(*, trace: bool = True, show: bool = True) -> Any:  # noqa: N802  # it makes an instance of a Keras callback
    """A Keras callback that observes a whole `fit`: `model.fit(…, callbacks=[flatout.Observer()])`."""
    from flatout.observe import inside

    return inside.callback(trace=trace, show=show)
