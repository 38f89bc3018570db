"""A Python generator in a process of its own, which sends its elements in chunks.

The generator runs ahead without the interpreter lock of the program, and TensorFlow calls into Python once for each
chunk instead of once for each element. The process is forked at the start of an epoch, so that nothing has to be
pickled, and ends with the epoch or when its iterator is dropped.
"""

from __future__ import annotations

import contextlib
import multiprocessing
import time
from collections.abc import Callable, Iterator
from multiprocessing.connection import Connection
from typing import Any

CHUNK = 64
CHUNK_SECONDS = 0.05
"""A chunk is sent at the latest after this time: a slow generator must not be made slower."""
SILENCE = 120.0
"""Seconds without a message after which a worker is considered hung."""

Arrays = tuple[Any, ...]


def chunks(generator: Callable[[], Iterator[Any]], flatten: Callable[[Any], Arrays]) -> Iterator[Arrays]:
    """The elements of `generator()`, each flattened to arrays, stacked in chunks whose elements have one shape."""
    context = multiprocessing.get_context("fork")
    receiving, sending = context.Pipe(duplex=False)
    worker = context.Process(target=_work, args=(generator, flatten, sending), daemon=True)
    worker.start()
    sending.close()
    try:
        while True:
            if not receiving.poll(SILENCE):
                raise TimeoutError(f"the generator's process has sent nothing for {SILENCE:.0f} s")
            try:
                what, content = receiving.recv()
            except EOFError:
                worker.join(1)  # its end of the pipe is closed before it has ended
                raise RuntimeError(f"the generator's process ended with code {worker.exitcode}") from None
            if what == "end":
                return
            if what == "error":
                raise content
            yield content
    finally:
        worker.terminate()
        worker.join()
        receiving.close()


def _work(generator: Callable[[], Iterator[Any]], flatten: Callable[[Any], Arrays], sending: Connection) -> None:
    rows: list[Arrays] = []
    try:
        began = time.monotonic()
        for element in generator():
            row = flatten(element)
            if rows and (_shapes(row) != _shapes(rows[0]) or len(rows) >= CHUNK):
                sending.send(("chunk", _stacked(rows)))
                rows, began = [], time.monotonic()
            rows.append(row)
            if time.monotonic() - began > CHUNK_SECONDS:
                sending.send(("chunk", _stacked(rows)))
                rows, began = [], time.monotonic()
        if rows:
            sending.send(("chunk", _stacked(rows)))
        sending.send(("end", None))
    except BrokenPipeError:
        pass  # the iterator was given up
    except Exception as error:
        with contextlib.suppress(Exception):
            if rows:  # what the generator gave before is not lost
                sending.send(("chunk", _stacked(rows)))
        try:
            sending.send(("error", error))
        except Exception:
            sending.send(("error", RuntimeError(f"{type(error).__name__}: {error}")))


def _shapes(row: Arrays) -> list[Any]:
    return [array.shape for array in row]


def _stacked(rows: list[Arrays]) -> Arrays:
    import numpy as np

    return tuple(np.stack(column) for column in zip(*rows, strict=True))
