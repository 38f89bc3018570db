"""Writes the winner for a server, and runs what was written by its names before it is handed over."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from flatout.measure.agreement import relative_error
from flatout.model.errors import Internal
from flatout.optimize.layouts._layout import Layout, Served
from flatout.process.worker import Worker, WorkFailed
from flatout.routes._route import End, Route, Setting
from flatout.subject import Subject, Tensor
from flatout.subject.writer import has_row_per_sample

SECONDS = 120.0
ALIKE = 1e-4
"""Largest relative difference from the artefact's own answers: the server's runtime may use other threads."""


class NotWritten(Internal):
    """Why the artefact could not be written for the server."""


def write(
    layout: Layout, route: Route, setting: Setting, subject: Subject, artefact: Path, final: Path, worker: Worker
) -> str:
    """Write it into a folder of the artefact, which will be at `final`. Returns how the server is started then.

    Raises NotWritten.
    """
    target = artefact / layout.name
    if why := layout.refuses(route):
        raise NotWritten(why)
    try:
        answer = worker.ask("ends", SECONDS, route=route.name, directory=str(artefact))
        inputs = _in_order(subject.inputs, answer["inputs"], route)
        outputs = _in_order(subject.outputs, answer["outputs"], route)
        rows = subject.batching == "dynamic" and has_row_per_sample(subject)
        one = Served(route, setting, artefact, inputs, outputs, subject, rows)
        version = layout.write(one, target)
        _try(one, version, artefact, worker)
    except (WorkFailed, OSError, KeyError) as error:
        raise NotWritten(str(error)) from None
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


def _try(one: Served, version: Path, artefact: Path, worker: Worker) -> None:
    """Answer the samples of the artefact's own check, and compare with the answers that are stored there."""
    count, check = len(one.subject.outputs), artefact / "check.npz"
    output = artefact / ".written.npz"
    try:
        worker.ask(
            "run_written",
            SECONDS,
            version=str(version),
            inputs=[end.name for end in one.inputs],
            outputs=[end.name for end in one.outputs],
            feeds=[str(check), *(f"in{i}" for i in range(len(one.subject.inputs)))],
            batch=one.subject.batches[0],
            output=str(output),
        )
        with np.load(output, allow_pickle=False) as stored, np.load(check, allow_pickle=False) as kept:
            given = [stored[f"out{i}"] for i in range(count)]
            expected = [kept[f"answer{i}"] for i in range(count)]
    finally:
        output.unlink(missing_ok=True)
    if any(a.shape != b.shape for a, b in zip(expected, given, strict=True)):
        raise NotWritten("what was written answers in other shapes than the artefact")
    if (error := relative_error(expected, given)) > ALIKE:
        raise NotWritten(f"what was written answers otherwise than the artefact, by {error:.1e}")
