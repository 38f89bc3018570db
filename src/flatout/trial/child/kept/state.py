"""What a cell may change beside the names that it binds: settings of the process and of libraries, TensorFlow, files.

All of it is read before and after. The first thing that differs says why the cell is not kept: a trial that left the
cell out would lack the change.
"""

from __future__ import annotations

import contextlib
import datetime
import functools
import gc
import glob
import logging
import os
import random
import signal
import sys
import threading
import time
import warnings
from collections.abc import Iterable, Mapping
from types import ModuleType
from typing import Any

from flatout.source import users_code
from flatout.trial.child import shield

_TENSORFLOW = ("tensorflow", "keras", "tf_keras")
_OWN = ("flatout", "__main__", "__mp_main__")
_HARMLESS_THREADS = ("tqdm",)
"""Packages whose threads only watch."""
_PLAIN = (int, float, str, bytes, bool, type(None))
_looks = 0
"""How often the numbers of TensorFlow's tensors were looked at: that takes one."""


def look() -> dict[str, object]:
    """By what a cell does that changes it, in words."""
    found: dict[str, object] = {
        "it changes environment variables": dict(os.environ),
        "it changes the working directory": os.getcwd(),
        "it changes sys.path": list(sys.path),
        "it changes which warnings are errors": [one for one in warnings.filters if one[0] == "error"],
        "it changes the garbage collector": (gc.isenabled(), gc.get_threshold()),
        "it changes the limit of recursion": sys.getrecursionlimit(),
        "it changes how signals are handled": [signal.getsignal(number) for number in signal.valid_signals()],
        "it changes the logging": (logging.root.level, list(logging.root.handlers), logging.root.manager.disable),
        "it changes the standard streams": (sys.stdin, sys.stdout, sys.stderr),
        "it changes how processes are started": _start_method(),
        "it starts threads": {one for one in threading.enumerate() if type(one).__module__ not in _watching()},
        "it starts processes": _processes(),
        "it writes files": shield.written(),
    }
    return found | _of_libraries() | _of_tensorflow() | {f"it changes {name}": _Names(name) for name in _modules()}


def difference(before: Mapping[str, object], after: Mapping[str, object]) -> str:
    """What was done between two looks; empty where nothing was. What was not there before was imported since."""
    return next((words for words, value in before.items() if words in after and value != after[words]), "")


def is_tensorflows(value: object) -> bool:
    """Whether it is an object, a class or a function of TensorFlow or Keras."""
    module = getattr(value, "__module__", None) or type(value).__module__
    return str(module).partition(".")[0] in _TENSORFLOW


class _Names:
    """What the names of a module stand for. Equal where nothing was put in the place of anything."""

    def __init__(self, module: str) -> None:
        self.of_user = is_users_module(sys.modules[module])
        self.of_tensorflow = module.partition(".")[0] in _TENSORFLOW
        self.values = vars(sys.modules[module]).copy()

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, _Names):
            return NotImplemented
        before, now = self.values, other.values
        if any(now.get(name, value) is not value and self._matters(value, now[name]) for name, value in before.items()):
            return False
        return not self.of_user or all(isinstance(now[name], ModuleType) for name in now.keys() - before.keys())

    __hash__ = None  # type: ignore[assignment]

    def _matters(self, before: object, after: object) -> bool:
        """Libraries begin some of their work when it is first asked for, and note that in a variable. A function in
        the place of another one is no such thing."""
        if isinstance(before, ModuleType) or isinstance(after, ModuleType):
            return False
        return self.of_user or self.of_tensorflow or (callable(before) and callable(after))


def _modules() -> list[str]:
    """All but the program itself: what it binds is looked at one by one."""
    modules = [name for name, module in list(sys.modules.items()) if isinstance(module, ModuleType)]
    return [name for name in modules if name.partition(".")[0] not in _OWN]


def is_users_module(module: ModuleType) -> bool:
    file = vars(module).get("__file__")  # asking the module itself would load one that waits to be used
    return isinstance(file, str) and _is_users_file(file)


_is_users_file = functools.lru_cache(maxsize=None)(users_code.is_users_file)


def clocks() -> list[Any]:
    """What the clocks show: numbers, and the time of the day."""
    seconds = (time.time, time.perf_counter, time.monotonic, time.process_time)
    parts = (time.time_ns, time.perf_counter_ns, time.monotonic_ns, time.process_time_ns)
    now = datetime.datetime.now
    return [*(read() for read in (*seconds, *parts)), now(), now(datetime.timezone.utc).replace(tzinfo=None)]


def is_time(value: Any, before: Iterable[Any], after: Iterable[Any]) -> bool:
    """Whether a clock has shown this between two looks at them."""
    if isinstance(value, datetime.datetime):
        value = value.replace(tzinfo=None)
    same = ((a, b) for a, b in zip(before, after, strict=True) if type(a) is type(value))
    return any(a <= value <= b for a, b in same)


def _start_method() -> object:
    multiprocessing: Any = sys.modules.get("multiprocessing.context")
    return multiprocessing._default_context.get_start_method(allow_none=True) if multiprocessing is not None else None


def _watching() -> set[str]:
    return {name for name in list(sys.modules) if name.partition(".")[0] in _HARMLESS_THREADS}


def _processes() -> frozenset[str]:
    """The children of this process."""
    found: set[str] = set()
    for path in glob.glob("/proc/self/task/*/children"):
        with contextlib.suppress(OSError), open(path, encoding="ascii") as stream:
            found.update(stream.read().split())
    return frozenset(found)


def _of_libraries() -> dict[str, object]:
    found: dict[str, object] = {}
    numpy, pyplot = sys.modules.get("numpy"), sys.modules.get("matplotlib")
    pandas = sys.modules.get("pandas._config.config")
    if numpy is not None and hasattr(numpy, "geterr"):
        found["it changes settings of numpy"] = (numpy.geterr(), repr(numpy.get_printoptions()))
    if pyplot is not None and hasattr(pyplot, "rcParams"):
        found["it changes settings of matplotlib"] = repr(list(dict.items(pyplot.rcParams)))
    if pandas is not None:
        found["it changes options of pandas"] = repr(getattr(pandas, "_global_config", None))
    return found


# ── TensorFlow ───────────────────────────────────────────────────────────────────────────────────────────────────────


def _of_tensorflow() -> dict[str, object]:
    """Raises AttributeError for a TensorFlow that does not show it."""
    global _looks
    found: dict[str, object] = {}
    context, ops = (sys.modules.get(f"tensorflow.python.{name}") for name in ("eager.context", "framework.ops"))
    if context is not None and ops is not None:
        _looks += 1
        found["TensorFlow computes in it"] = ops.uid() - _looks  # each tensor and variable takes the next number
        found["it changes settings of TensorFlow"] = _told(getattr(context._context, "__dict__", None))
        graph = getattr(getattr(ops, "_default_graph_stack", None), "_global_default_graph", None)
        found["it builds a graph of TensorFlow"] = (id(graph), getattr(graph, "version", 0), getattr(graph, "seed", 0))
    keras = sys.modules.get("keras.src.backend.common.global_state")
    if keras is not None:
        trackers = (keras.GLOBAL_STATE_TRACKER, keras.GLOBAL_SETTINGS_TRACKER)
        found["it changes the state of Keras"] = [_told(vars(one)) for one in trackers]
    return found


def _told(value: Any, depth: int = 3) -> object:
    """Equal as long as nothing was changed: numbers and texts, what lists hold, and the identity of all else."""
    if isinstance(value, _PLAIN):
        return value
    if isinstance(value, random.Random):
        return value.getstate()
    if depth and isinstance(value, dict):
        return {key: _told(one, depth - 1) for key, one in list(value.items())}
    if depth and isinstance(value, (list, tuple)):
        return [_told(one, depth - 1) for one in value]
    return id(value)
