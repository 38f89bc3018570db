"""The tasks of a child process. One process either prepares the subject, or converts, or runs one artefact."""

from __future__ import annotations

import gc
import importlib.util
import time
from dataclasses import asdict
from pathlib import Path
from typing import Any

import numpy as np

from flatout.measure.agreement import difference
from flatout.measure.processors import Mark
from flatout.model.errors import ProcessFailed, RouteNotNeeded
from flatout.optimize import odd_samples
from flatout.optimize.work.sample_files import first_rows, read_arrays
from flatout.process.memory import forget_peak, peak_bytes
from flatout.routes import _conversions, find
from flatout.routes._kept import Kept
from flatout.routes._route import Runner
from flatout.subject import Array, Subject, any_length, for_size, in_batches, plain_array, write_arrays

FEEDS = 8
"""Number of different inputs that a timed block cycles through."""
FEED_BYTES = 64 << 20
WARM_CALLS = 3
ALIKE = 1e-3
"""Largest relative difference from the original for samples of other lengths."""


class Tasks:
    NEEDLESS = (RouteNotNeeded,)
    """Errors that mean: this route has nothing to do for the model."""

    def __init__(self) -> None:
        self._runner: Runner | None = None
        self._batch = 1
        self._feeds: list[list[Array]] = []
        self._evaluator: Any = None

    # ── preparing and judging ────────────────────────────────────────────────────────────────────────────────

    def prepare(self, request: dict[str, Any]) -> dict[str, Any]:
        """Make the subject from what the user gave; afterwards `evaluate` can be called."""
        from flatout.subject.preparation import SubjectRequest, prepare

        prepared = prepare(SubjectRequest.from_json(request))
        self._evaluator = prepared.evaluator
        return prepared.summary()

    def evaluate(self, answers: str, groups: int = 0) -> dict[str, Any]:
        """The user's metric for the answers in this file."""
        return dict(self._evaluator(Path(answers), groups))

    # ── converting ───────────────────────────────────────────────────────────────────────────────────────────

    def convert(self, route: str, subject: str, directory: str, kept: str = "") -> dict[str, Any]:
        """`kept`: the directory of conversions of earlier calls; empty: everything is converted."""
        store = _conversions.store = Kept(Path(kept)) if kept else None
        began = time.monotonic()
        _conversions.convert(find(route), Subject.read(Path(subject)), Path(directory))
        seconds = time.monotonic() - began + (store.seconds if store else 0.0)
        return {"seconds": seconds, "reused": bool(store and store.found)}

    def import_file(self, route: str, given: str, directory: str) -> dict[str, Any]:
        began = time.monotonic()
        find(route).import_file(Path(given), Path(directory))
        inputs, outputs = find(route).ends(Path(directory))
        seconds = time.monotonic() - began
        return {"seconds": seconds, "ends": [[asdict(one) for one in some] for some in (inputs, outputs)]}

    def inspect(self, route: str, directory: str) -> dict[str, Any]:
        contents = find(route).inspect(Path(directory))
        return {"weights": contents.weights, "weight_bytes": contents.weight_bytes, "computes": dict(contents.computes)}

    def ends(self, route: str, directory: str) -> dict[str, Any]:
        inputs, outputs = find(route).ends(Path(directory))
        return {"inputs": [asdict(one) for one in inputs], "outputs": [asdict(one) for one in outputs]}

    # ── running ──────────────────────────────────────────────────────────────────────────────────────────────

    def open(
        self, route: str, directory: str, setting: dict[str, Any], batch: int, feeds: list[str], finite: bool = False
    ) -> dict[str, Any]:
        """Load the artefact and run it until it is warm. `feeds`: an .npz with samples, and the names of its arrays.

        `finite`: with the check of the inputs that the artefact's loader makes.
        """
        batch_bytes = max(1, sum(array.nbytes for array in first_rows(feeds, 1)) * max(batch, 1))
        rows = max(batch, 1) * max(1, min(FEEDS, FEED_BYTES // batch_bytes))
        # No more than these: the peak of the memory is to be that of serving.
        self._feeds = list(in_batches(first_rows(feeds, rows), batch))
        began = time.perf_counter()
        runner = find(route).open(Path(directory), setting, batch)
        self._runner, self._batch = odd_samples.finite_only(runner) if finite else runner, batch
        loaded = time.perf_counter()
        self._runner(self._feeds[0])
        first = time.perf_counter()
        for feed in self._feeds[:WARM_CALLS]:
            self._runner(feed)
        warm = time.perf_counter()
        return {
            "load_ms": (loaded - began) * 1e3,
            "first_ms": (first - loaded) * 1e3,
            "call_ms": (warm - first) * 1e3 / len(self._feeds[:WARM_CALLS]),
            "peak_bytes": peak_bytes(),
        }

    def answer(self, feeds: list[str], output: str, at_most: int | None = None) -> dict[str, Any]:
        """Write the artefact's answers to these samples into an .npz as `out0`, `out1`, …"""
        if self._runner is None:
            raise ProcessFailed(
                "The worker was asked to run a model before it had opened one. This is a fault of flatout."
            )
        samples = read_arrays(feeds)
        write_arrays(Path(output), "out", answers_of(self._runner, samples, self._batch, at_most))
        held_out = len(samples[0])
        del samples
        gc.collect()
        forget_peak()  # the samples of the check are no part of serving
        return {"asked": min(held_out, at_most or held_out), "held_out": held_out}

    def time(self, seconds: float, at_least: int) -> dict[str, Any]:
        """Call it for about this long. Returns the milliseconds of each call."""
        if self._runner is None:
            raise ProcessFailed(
                "The worker was asked to run a model before it had opened one. This is a fault of flatout."
            )
        runner, feeds, clock = self._runner, self._feeds, time.perf_counter
        runner(feeds[0])  # caches are cold after the blocks of others
        gc.collect()
        gc.freeze()  # the collection before the next block leaves out all that is there by now
        gc.disable()
        times: list[float] = []
        mark = Mark.now()
        cpu, end = time.process_time(), clock() + seconds
        began = clock()
        while began < end or len(times) < at_least:
            runner(feeds[len(times) % len(feeds)])
            now = clock()
            times.append((now - began) * 1e3)
            began = now
        cpu = time.process_time() - cpu
        gc.enable()
        taken = mark.taken_since(cpu)
        return {"times": times, "cpu_ms": cpu * 1e3 / len(times), "taken": taken, "peak_bytes": peak_bytes()}

    def run_written(
        self,
        version: str,
        inputs: list[str],
        outputs: list[str],
        feeds: list[str],
        batch: int,
        output: str,
        sizes: list[int],
    ) -> dict[str, Any]:
        """Run what was written for a server, by the names in it; see `answer_sizes`."""
        from flatout.optimize.layouts import trial

        runner = trial.open_written(Path(version), inputs, outputs)
        return {"refused": answer_sizes(runner, read_arrays(feeds), batch, sizes, Path(output))}

    def run_loader(
        self, path: str, directory: str, batch: int, feeds: list[str], output: str, sizes: list[int]
    ) -> dict[str, Any]:
        """Run the artefact's loader as its user would: from its file; see `answer_sizes`."""
        runner = loaded(path, directory)
        return {"refused": answer_sizes(runner, read_arrays(feeds), batch, sizes, Path(output))}

    def run_odd(self, path: str, directory: str, subject: str, batch: int, kind: str) -> dict[str, Any]:
        """What the loader makes of one kind of odd samples, if that is not the original's."""
        _, samples = odd_samples.KINDS[kind]
        return {"differs": odd_samples.differs(Subject.read(Path(subject)), batch, loaded(path, directory), samples)}

    def run_other_lengths(self, path: str, directory: str, subject: str, batch: int) -> dict[str, Any]:
        """Give the loader samples of other lengths: it answers as the original does, or refuses them."""
        model, runner = Subject.read(Path(subject)), loaded(path, directory)
        samples = next(in_batches(model.samples("held_out"), batch))
        answered, refused = 0, ""
        for arrays in any_length.other_lengths(model, samples):
            expected = any_length.answers(Path(subject) / any_length.FOLDER, arrays)
            if expected is None:
                continue  # the original refuses them as well
            try:
                given = [plain_array(array) for array in runner(arrays)]
            except Exception as error:
                refused = " ".join(str(error).split())[:200] or type(error).__name__
                continue
            if difference(expected, given, ALIKE):
                shapes = ", ".join(str(array.shape) for array in arrays)
                return {"answered": False, "problem": f"it answers samples of other lengths ({shapes}) wrongly"}
            answered += 1
        return {"answered": bool(answered) and not refused, "problem": ""}


def loaded(path: str, directory: str) -> Runner:
    """The function that the artefact's loader makes, imported from its file as its user does."""
    specification = importlib.util.spec_from_file_location("artefact_loader", path)
    if specification is None or specification.loader is None:
        raise ProcessFailed(f"{path} cannot be imported as a Python module. Make the artefact again.")
    module = importlib.util.module_from_spec(specification)
    specification.loader.exec_module(module)
    runner: Runner = module.load(directory)
    return runner


def answers_of(runner: Runner, samples: list[Array], batch: int, at_most: int | None) -> list[Array]:
    """All answers, one row per sample, without those to the samples that filled up the last batch."""
    count = min(len(samples[0]), at_most or len(samples[0]))
    pieces = [[plain_array(array) for array in runner(feed)] for feed in in_batches(samples, batch, count)]
    if batch == 0:
        return [np.stack(column) for column in zip(*pieces, strict=True)]
    return [np.concatenate(column)[:count] for column in zip(*pieces, strict=True)]


def answer_sizes(runner: Runner, samples: list[Array], batch: int, sizes: list[int], output: Path) -> dict[str, str]:
    """Write the answers to these samples, and those to other numbers of them at once, each into a file of its own.

    Returns why some numbers are refused: text by number.
    """
    write_arrays(output, "out", answers_of(runner, samples, batch, None))
    refused = {}
    for size in sizes:
        rows = np.arange(size) % len(samples[0])
        try:
            given = [plain_array(array) for array in runner([np.ascontiguousarray(array[rows]) for array in samples])]
        except Exception as error:
            refused[str(size)] = " ".join(str(error).split())[:200] or type(error).__name__
        else:
            write_arrays(for_size(output, size), "out", given)
    return refused
