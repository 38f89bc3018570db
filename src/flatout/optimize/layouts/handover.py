"""Writes the winner for a server, and runs what was written by its names before it is handed over."""

from __future__ import annotations

import tempfile
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from flatout.measure.agreement import difference
from flatout.model.errors import Internal
from flatout.optimize.checks import AccuracyBudget, check_few
from flatout.optimize.layouts._layout import Layout, Served
from flatout.process.worker import Worker, WorkFailed
from flatout.routes._route import End, Route, Setting
from flatout.subject import Subject, Tensor, for_size, written_arrays
from flatout.subject.writer import has_row_per_sample

SECONDS = 120.0
SIZES = (1, 3)
"""Samples at once, besides the batch that was measured."""
ALIKE = 1e-4
"""Largest relative difference from the artefact's own answers: the server's runtime may use other threads."""


class NotWritten(Internal):
    """Why the artefact could not be written for the server."""


@dataclass(frozen=True)
class Handed:
    """The artefact that is to be written for a server as well."""

    route: Route
    setting: Setting
    batch: int
    subject: Subject
    budget: AccuracyBudget


def write(layout: Layout, handed: Handed, artefact: Path, final: Path, worker: Worker) -> str:
    """Write it into a folder of the artefact, which will be at `final`. Returns how the server is started then.

    Raises NotWritten.
    """
    target, route, subject = artefact / layout.name, handed.route, handed.subject
    if why := layout.refuses(route):
        raise NotWritten(why)
    try:
        answer = worker.ask("ends", SECONDS, route=route.name, directory=str(artefact))
        inputs = _in_order(subject.inputs, answer["inputs"], route)
        outputs = _in_order(subject.outputs, answer["outputs"], route)
        rows = subject.batching == "dynamic" and has_row_per_sample(subject)
        one = Served(route, handed.setting, artefact, inputs, outputs, subject, rows)
        version = layout.write(one, target)
        problem = _problem(one, handed, version, artefact, worker)
    except (WorkFailed, OSError, KeyError) as error:
        raise NotWritten(str(error)) from None
    if problem:
        raise NotWritten(f"what was written answers otherwise than the artefact: {problem}")
    return layout.command(one, final / layout.name)


def _in_order(wanted: Sequence[Tensor], found: Sequence[dict[str, Any]], route: Route) -> list[End]:
    """A signature of a SavedModel has names and no order; other files have the model's order."""
    ends = [End(**{**one, "shape": tuple(one["shape"])}) for one in found]
    if route.format != "SavedModel":
        if len(ends) != len(wanted):
            raise NotWritten(f"the file has {len(ends)} inputs or outputs; the model has {len(wanted)}")
        return ends
    named = {one.name: one for one in ends}
    if missing := [one.name for one in wanted if one.name not in named]:
        raise NotWritten(f"the signature of the SavedModel has no {missing[0]!r}, but {', '.join(named)}")
    return [named[one.name] for one in wanted]


def _problem(one: Served, handed: Handed, version: Path, artefact: Path, worker: Worker) -> str:
    """Answer the samples of the artefact's own check, and compare with the answers that are stored there. Where the
    server puts requests together, other numbers of them are tried as well."""
    check, inputs, outputs = artefact / "check.npz", len(one.subject.inputs), len(one.subject.outputs)
    sizes = [size for size in SIZES if size != handed.batch] if one.rows else []
    with tempfile.TemporaryDirectory(dir=artefact) as scratch:
        output = Path(scratch) / "written.npz"
        told = worker.ask(
            "run_written",
            SECONDS,
            version=str(version),
            inputs=[end.name for end in one.inputs],
            outputs=[end.name for end in one.outputs],
            feeds=[str(check), *(f"in{i}" for i in range(inputs))],
            batch=handed.batch,
            output=str(output),
            sizes=sizes,
        )
        with np.load(check, allow_pickle=False) as kept:
            expected, original = ([kept[f"{name}{i}"] for i in range(outputs)] for name in ("answer", "original"))
        if found := difference(expected, written_arrays(output, "out"), ALIKE):
            return found
        for size in sizes:
            rows = np.arange(size) % len(expected[0])
            if found := str(told["refused"].get(str(size), "")):
                return f"batches of {size}: {found}"
            few, own = ([array[rows] for array in arrays] for arrays in (original, expected))
            if found := check_few(handed.route, few, own, written_arrays(for_size(output, size), "out"), handed.budget):
                return found
    return ""
