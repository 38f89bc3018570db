"""One file per probe, which declares it as `PROBE`.

Its functions run inside the user's program, right after TensorFlow or Keras was imported. They only observe, cost
little, and never let an exception out. A private name of TensorFlow or Keras that they patch is in `private_names`.
"""

from __future__ import annotations

import importlib
import pkgutil

from flatout.observe.observer import Probe


def names() -> list[str]:
    """The files of this folder that declare a probe."""
    return sorted(info.name for info in pkgutil.iter_modules(__path__) if not info.name.startswith("_"))


def load(name: str) -> Probe:
    probe = getattr(importlib.import_module(f"{__name__}.{name}"), "PROBE", None)
    if not isinstance(probe, Probe):
        raise TypeError(f"observe/probes/{name}.py declares no `PROBE = Probe(…)`")
    return probe
