"""Arrays turned into tensors: which line, how many bytes, and whether it is the same array again."""

from __future__ import annotations

import contextlib
import sys
import weakref
from time import perf_counter
from types import ModuleType
from typing import Any

from flatout.observe.imports import loaded
from flatout.observe.observer import Observer, Probe
from flatout.observe.private_names import patch, replace, resolve
from flatout.observe.ticks import KERAS, TRACE
from flatout.source import users_code

SMALLEST = 4096
"""Bytes below which a conversion is not worth a look."""
REMEMBERED = 4
"""Arrays of one line that are recognised when they come again: enough for what repeats, too few for a data set."""


def on_tensorflow(observer: Observer, module: ModuleType) -> None:
    import numpy

    thread = observer.thread
    array = numpy.ndarray
    rows: dict[Any, list[Any]] = {}

    def write() -> None:
        table = [
            [users_code.absolute(code.co_filename), line, code.co_name, *row[:4], len(row[4])]
            for (code, line), row in sorted(rows.items(), key=lambda item: -item[1][1])[:200]
        ]
        if table:
            observer.recorder.fact("conversions", rows=table)

    observer.hooks.at_flush.append(write)

    def wrap(original: Any) -> Any:
        def convert_to_eager_tensor(value: Any, *args: Any, **kwargs: Any) -> Any:
            kind = type(value)
            if kind is array:
                size = value.nbytes
            elif kind is list or kind is tuple:
                size = len(value) * 256  # lists are slow to convert: a few elements already count
            else:
                return original(value, *args, **kwargs)
            if size < SMALLEST or thread.busy & (KERAS | TRACE):
                return original(value, *args, **kwargs)
            start = perf_counter()
            tensor = original(value, *args, **kwargs)
            elapsed = perf_counter() - start
            frame = users_code.innermost(sys._getframe(1), 25)
            if frame is not None:
                row = rows.setdefault((frame.f_code, frame.f_lineno), [0, 0.0, 0, 0, {}])
                row[0] += 1
                row[1] += elapsed
                row[2] += getattr(value, "nbytes", size)
                if _seen_before(value, row[4]):
                    row[3] += getattr(value, "nbytes", size)
            return tensor

        return convert_to_eager_tensor

    patch("convert", wrap)
    # Modules that imported the name before the patch keep the original.
    holder, name, wrapper = resolve("convert")
    for other in loaded():
        if (
            other is not holder
            and str(getattr(other, "__name__", "")).startswith("tensorflow.python.")
            and (other.__dict__.get(name) is wrapper.__wrapped__)
        ):
            replace(other, name, wrapper)


def _seen_before(value: Any, seen: dict[Any, Any]) -> bool:
    """Whether the same memory was converted before. Nothing is kept alive for it: a new array may take the address."""
    owner = value if getattr(value, "base", None) is None else value.base
    interface = getattr(value, "__array_interface__", None)
    key = (id(owner), interface["data"][0] if interface else 0)
    known = seen.get(key)
    if known is not None and known() is owner:
        return True
    for other in [other for other, reference in seen.items() if reference() is None]:
        del seen[other]
    if len(seen) < REMEMBERED:
        with contextlib.suppress(TypeError):  # lists, and owners that are no arrays, cannot be referred to weakly
            seen[key] = weakref.ref(owner)
    return False


PROBE = Probe("conversions", tensorflow=on_tensorflow)
