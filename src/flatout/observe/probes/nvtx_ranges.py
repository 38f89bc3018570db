"""Marks each step as an NVTX range, so that Nsight Systems shows the steps beside kernels and copies. `--nsys` only.

A range runs from one step's end to the next one's, like the steps that flatout reports. The ranges are pushed and
popped (not started and ended), because Nsight projects only those onto the GPU's timeline; they belong to one thread.
"""

from __future__ import annotations

import ctypes
import ctypes.util
import glob
import os
import sys
import threading
from collections.abc import Callable
from types import ModuleType
from typing import Any

from flatout.observe.observer import Observer, Probe
from flatout.observe.streams import Stream

DOMAIN = "flatout"


def on_tensorflow(observer: Observer, module: ModuleType) -> None:
    if not observer.settings.nvtx:
        return
    found = _package() or _library()
    if found is None:
        observer.note(
            "the steps are not marked in Nsight Systems: neither the package nvtx (`pip install nvtx`) nor "
            "libnvToolsExt was found"
        )
        return
    ranges = _Ranges(*found)
    ticks, tick = observer.ticks, observer.ticks.tick

    def tick_and_mark(stream: Stream, start: float, end: float, n: int = 1) -> None:
        tick(stream, start, end, n)
        ranges.tick(stream)

    # On the instance, so that a run without --nsys pays nothing.
    ticks.tick = tick_and_mark  # type: ignore[method-assign]
    observer.hooks.at_end.append(ranges.close)


class _Ranges:
    def __init__(self, push: Callable[[str], Any], pop: Callable[[], Any]) -> None:
        self.push = push
        self.pop = pop
        self.stream: Stream | None = None
        self.thread = 0

    def tick(self, stream: Stream) -> None:
        """Streams of a program cover each other; the best one seen so far gets the ranges."""
        here = threading.get_ident()
        if self.stream is not None:
            if stream is not self.stream and stream.rank <= self.stream.rank:
                return
            if here != self.thread:
                return
            self.pop()
        self.stream = stream
        self.thread = here
        self.push(f"step {stream.count}")

    def close(self) -> None:
        if self.stream is not None and threading.get_ident() == self.thread:
            self.pop()
            self.stream = None


def _package() -> tuple[Callable[[str], Any], Callable[[], Any]] | None:
    try:
        import nvtx
    except ImportError:
        return None

    def push(name: str) -> None:
        nvtx.push_range(name, domain=DOMAIN)

    def pop() -> None:
        nvtx.pop_range(domain=DOMAIN)

    return push, pop


def _library() -> tuple[Callable[[str], Any], Callable[[], Any]] | None:
    """The C library of older CUDA toolkits; newer ones have a header only, which the package wraps."""
    pattern = os.path.join("nvidia", "nvtx", "lib", "libnvToolsExt.so*")
    installed = [path for entry in sys.path for path in glob.glob(os.path.join(glob.escape(entry), pattern))]
    for name in (ctypes.util.find_library("nvToolsExt"), *installed):
        try:
            library = ctypes.CDLL(name) if name else None
        except OSError:
            continue
        if library is not None and hasattr(library, "nvtxRangePushA"):
            push = library.nvtxRangePushA
            return (lambda text, push=push: push(text.encode())), library.nvtxRangePop
    return None


PROBE = Probe("nvtx_ranges", tensorflow=on_tensorflow)
