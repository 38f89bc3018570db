"""Observing from inside a program or a notebook: `flatout.observe()` and the Keras callback `flatout.Observer`.

The same probes as in `flatout run`, installed in this process and taken out again. What happened before is not seen:
functions that were traced already are known only by their calls.
"""

from __future__ import annotations

import contextlib
import datetime
import os
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from flatout import store
from flatout.model.case import Case, Program
from flatout.model.errors import CaseNotReady, InvalidOption
from flatout.store import saving

_active = False


class Observation:
    """The result of `observe()`; it has its `case` once the block has ended."""

    def __init__(self, directory: Path) -> None:
        self.directory = directory
        self._case: Case | None = None

    @property
    def case(self) -> Case:
        if self._case is None:
            raise CaseNotReady("The case is made when the block ends: use it after `with flatout.observe() as seen:`.")
        return self._case

    def __str__(self) -> str:
        from flatout.report.terminal import render

        return render(self.case, directory=self.directory)


@contextlib.contextmanager
def observe(*, trace: bool = True, show: bool = True) -> Iterator[Observation]:
    """Observe what TensorFlow does inside the block; then diagnose it, keep the case, and print it where `show`."""
    global _active
    if _active:
        raise InvalidOption("This process is being observed already. One `flatout.observe()` at a time.")
    import tensorflow  # noqa: F401  # the probes go into the TensorFlow that is there

    from flatout.observe import private_names
    from flatout.observe.installing import finish, install_in_imported_packages
    from flatout.observe.observer import Observer
    from flatout.observe.recorder import Recorder
    from flatout.observe.settings import ObserveSettings

    directory = store.new_directory(Path(sys.argv[0] or "session").stem or "session")
    observer = Observer(Recorder(str(directory)), ObserveSettings(trace=trace))
    observer.recorder.fact("start", pid=os.getpid(), at=time.perf_counter(), python=sys.version.split()[0])
    _active = True
    seen, began = Observation(directory), time.perf_counter()
    started = datetime.datetime.now().astimezone().isoformat(timespec="seconds")
    try:
        install_in_imported_packages(observer)
        yield seen
    finally:
        finish(observer)
        private_names.restore()
        _active = False
    program = Program(tuple(sys.argv), os.getcwd(), started, round(time.perf_counter() - began, 3))
    seen._case = _conclude(directory, program)
    if show:
        sys.stderr.write(f"\n{seen}")


def _conclude(directory: Path, program: Program) -> Case:
    from flatout.run.session import conclude

    case = conclude(directory, program, quiet=True)
    saving.save(case, directory)
    return case


def callback(**options: Any) -> Any:
    """A Keras callback that observes from the beginning of training to its end. Its `case` holds what was seen."""
    import keras

    class Observer(keras.callbacks.Callback):  # type: ignore[misc]
        # Nothing per batch: a callback that looks at each batch makes Keras wait for it.
        def __init__(self) -> None:
            super().__init__()
            self._block: Any = None
            self._seen: Observation | None = None

        def on_train_begin(self, logs: Any = None) -> None:
            self._block = observe(**options)
            self._seen = self._block.__enter__()

        def on_train_end(self, logs: Any = None) -> None:
            self._block.__exit__(None, None, None)

        @property
        def case(self) -> Case:
            if self._seen is None:
                raise CaseNotReady("There is no case yet: give this callback to `model.fit(…, callbacks=[…])` first.")
            return self._seen.case

    return Observer()
