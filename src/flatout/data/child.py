"""Inside the user's program: keeps the datasets that it iterates, and inspects or tunes them once enough was seen.

The program runs as a trial does: observed, with its writes led aside. It is stopped when its steps are known, or ends
by itself; then the datasets are taken up in the same process, where everything lives that they were made of. What is
found is written down after each step, so that a crash or a hang costs the rest and no more.
"""

from __future__ import annotations

import contextlib
import os
import time
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from types import ModuleType
from typing import TYPE_CHECKING, Any

from flatout.data import equality, inspection, tuning
from flatout.data.task import PipelineTask
from flatout.model.case import Case, Note
from flatout.observe import stages
from flatout.observe.installing import finish
from flatout.observe.observer import Probe
from flatout.observe.private_names import Missing, patch
from flatout.pipeline import copies, recipes
from flatout.process.messages import decode

if TYPE_CHECKING:
    from flatout.observe.observer import Observer
from flatout.observe.streams import Stream

RESULT, PROGRESS = "data.json", "progress.txt"
MOST_DATASETS = 4
ENOUGH_SECONDS, MOST_SECONDS = 3.0, 12.0
DIGEST_SECONDS = 20.0

_leave = os._exit
_captured: list[Any] = []
_busy = [False]


def start(observer: Observer, request: str) -> None:
    """Called before any of the user's code. `request`: an encoded `PipelineTask`."""
    task = decode(request, PipelineTask)
    observer.more_probes.append(Probe("data", tensorflow=_watch))
    observer.trial.at_step = _Ending(observer).tick
    observer.hooks.at_end.append(lambda: _work(Path(observer.recorder.directory), task))


def capture(dataset: Any) -> None:
    """Remember a dataset that the program iterates, or that a function of its has made."""
    dataset = stages.plain(dataset)
    if not hasattr(getattr(dataset, "_variant_tensor", None), "_numpy"):
        return  # a part of a graph, not a thing of its own
    if not _busy[0] and len(_captured) < MOST_DATASETS and not any(known is dataset for known in _captured):
        _captured.append(dataset)


def _watch(observer: Observer, module: ModuleType) -> None:
    """Follow the calls that make datasets, and the iterators."""
    recipes.install()

    def create(original: Any) -> Any:
        def _create_iterator(iterator: Any, dataset: Any) -> Any:
            capture(dataset)
            return original(iterator, dataset)

        return _create_iterator

    def consume(original: Any) -> Any:
        def consumer(dataset: Any, *args: Any, **kwargs: Any) -> Any:
            capture(dataset)
            return original(dataset, *args, **kwargs)

        return consumer

    patch("iterator-make", create)
    for key in ("dataset-loop", "dataset-reduce"):
        with contextlib.suppress(Missing):  # iterators alone are worth having
            patch(key, consume)


class _Ending:
    """Ends the program's own run once its steps are known."""

    def __init__(self, observer: Observer) -> None:
        self.observer = observer
        self._began = 0.0

    def tick(self, stream: Stream, end: float, n: int) -> None:
        self._began = self._began or end
        elapsed = end - self._began
        window = self.observer.window
        seen = window.opened_times > 0 and not window.is_open
        if _captured and ((seen and elapsed > ENOUGH_SECONDS) or elapsed > MOST_SECONDS):
            self.observer.trial.at_step = None
            finish(self.observer)
            _leave(0)


def _work(directory: Path, task: PipelineTask) -> None:
    _busy[0] = True
    progress = _Progress(directory)
    try:
        case = _done(task, progress, lambda case: _write(directory, case))
    except Exception as error:
        note = Note("error", f"{type(error).__name__}: {str(error)[:500]}")
        case = Case("data", notes=(note,), verdict="The pipeline could not be taken up.")
    _write(directory, case)


def _done(task: PipelineTask, progress: _Progress, keep: Callable[[Case], None]) -> Case:
    own = [dataset for dataset in _captured if not stages.from_arrays(dataset)]
    if not own:
        made = "The only pipeline of this program is made by Keras from arrays: there is nothing to rewrite."
        return Case("data", notes=(Note("error", made),) if _captured else ())
    if task.do == "inspect":
        return inspection.inspect(own, task.needs, report=progress)
    chosen = own[min(max(task.pipeline, 1), len(own)) - 1]
    if task.do == "digest":
        return _digest(chosen)
    request = tuning.TuningRequest(
        allow=frozenset(task.allow),
        memory=task.memory,
        disk=task.disk,
        seconds=task.seconds,
        without=frozenset(task.without),
    )
    return tuning.tune(chosen, request, progress, keep).case


def _digest(dataset: Any) -> Case:
    """What the elements of a pipeline come to, for another process to compare."""
    head = copies.before_randomness(dataset)
    found = equality.digest(copies.unshuffled(dataset if head is None else head), DIGEST_SECONDS)
    return replace(inspection.described([dataset]), evidence=(found,))


class _Progress:
    """One line for each thing that begins, for the parent to show."""

    def __init__(self, directory: Path) -> None:
        self._path = directory / PROGRESS
        self._began = time.monotonic()

    def __call__(self, text: str) -> None:
        with open(self._path, "a", encoding="utf-8") as stream:
            stream.write(f"{time.monotonic() - self._began:.1f}\t{text}\n")


def _write(directory: Path, case: Case) -> None:
    from flatout.report.json import write

    write(case, str(directory / RESULT))
