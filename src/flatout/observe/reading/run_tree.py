"""The tree of a run, from its spans (exact) and its samples (which lines), so that it adds up to the wall clock."""

from __future__ import annotations

import os
from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from flatout.model.run_tree import PartKind, RunPart, RunTree
from flatout.observe.reading import run_strip
from flatout.observe.reading.recording import Recording
from flatout.observe.reading.run_samples import Phases, Sample, lines_of, phases, samples
from flatout.observe.reading.steps import Measured, Stream, first_batches, measure
from flatout.observe.streams import TRAINING, rank_of
from flatout.source import context

OWNERS: frozenset[str] = frozenset(("callback", "validation", "prediction", "checkpoint", "summary"))
"""Spans that all inside of them belong to; but checkpoints and summaries are themselves, wherever they are made."""
LIFTED = frozenset(("checkpoint", "summary", "observer"))
PLAIN: dict[str, PartKind] = {
    "fit": "epoch-start",
    "prepare": "prepare",
    "epoch-start": "epoch-start",
    "steps": "steps",
    "tracing": "tracing",
    "first-call": "tracing",
    "observer": "observer",
}
SAVING_CALLBACKS = ("ModelCheckpoint", "BackupAndRestore")


@dataclass
class Span:
    number: int
    parent: int
    kind: str
    name: str
    file: str
    line: int
    calls: int
    seconds: float
    children: list[Span] = field(default_factory=list)

    @property
    def own(self) -> float:
        return max(self.seconds - sum(child.seconds for child in self.children), 0.0)


def read(
    recording: Recording, chosen: Stream | None, found: Sequence[Stream], measured: Measured | None
) -> RunTree | None:
    """None where the run was not watched from its start: a trial, a block in a notebook, a case without Python."""
    fact, launched, start = recording.last("run"), recording.last("launch"), recording.last("start")
    try:
        began, ended = float(launched["began"]), float(launched["ended"])
        woke, seen = float(start["at"]), float(fact["at"])
        spans = _spans(fact)
    except (KeyError, TypeError, ValueError):
        return None
    if not began <= woke <= seen <= ended or not spans:
        return None
    chosen, measured = _training(recording, chosen, found, measured)
    root = spans[0]
    last = _end(recording.last("end"), seen, ended)
    root.seconds = (min(seen, last[0]) if last else seen) - woke
    iterated = [(span.file, span.line) for span in spans if span.kind == "iterator" and span.file]
    rows, found_phases = samples(fact), phases(chosen, found, iterated)
    maker = _Maker(found_phases, list(rows.values()), measured, _first_batch_seconds(recording, measured))
    maker.visit(root, None)
    maker.whole(woke - began, ended, seen, last)
    parts = maker.parts()
    return RunTree(
        seconds=ended - began,
        parts=tuple(sorted(parts, key=lambda part: -part.seconds)),
        epochs=len(recording.all("epoch")),
        complete=recording.ended,
        first_step=float(chosen.rows[0, 2]) - began if chosen is not None and len(chosen.rows) else None,
        looks=int(fact.get("looks", 0)),
        strip=run_strip.stretches(fact, rows, _kinds(spans, found_phases), found_phases, (began, ended)),
        epoch_starts=run_strip.epoch_starts(recording.all("epoch"), began),
    )


def _kinds(spans: Sequence[Span], phases: Phases) -> dict[int, tuple[PartKind, str]]:
    """What each span is in the strip: the outermost owner that it is in; nothing for the run itself, and for iterators
    that belong to no phase."""
    found: dict[int, tuple[PartKind, str]] = {}
    for span in spans:  # parents come before their children
        above = found.get(span.parent)
        kind: Any = PLAIN.get(span.kind) or (span.kind if span.kind in OWNERS else None)
        if span.kind == "iterator":
            kind = phases.starts(span.file, span.line)
        if above is not None and above[0] in OWNERS and span.kind not in LIFTED:
            found[span.number] = above
        elif kind is not None:
            found[span.number] = (kind, "validation of fit" if kind == "validation" and above else _name(span))
        elif above is not None:
            found[span.number] = above
    return found


def _training(
    recording: Recording, chosen: Stream | None, found: Sequence[Stream], measured: Measured | None
) -> tuple[Stream | None, Measured | None]:
    """The steps of the run are those that train, also where another stream has most of the time."""
    if chosen is None or chosen.kind in TRAINING:
        return chosen, measured
    training = [stream for stream in found if stream.kind in TRAINING and len(stream.rows)]
    best = max(training, key=lambda stream: (rank_of(stream.kind), stream.covered), default=None)
    return (best, measure(recording, best)) if best is not None else (chosen, measured)


def _first_batch_seconds(recording: Recording, measured: Measured | None) -> float:
    """What the first batch of an epoch takes as one like the others: several steps where a call makes several."""
    if measured is None or not len(measured.sample):
        return 0.0
    first = first_batches(recording, measured)
    steps = float(np.median(measured.n[first])) if first.any() else 1.0
    return steps * float(np.median(measured.sample))


def _end(fact: dict[str, Any], seen: float, ended: float) -> tuple[float, float] | None:
    """When the program's last line was over, and when flatout had written what it knew; None where it was killed."""
    at, began = fact.get("at"), fact.get("began")
    if not isinstance(at, (int, float)) or not isinstance(began, (int, float)) or not began <= at <= ended:
        return None
    return float(began), float(at)


def _spans(fact: dict[str, Any]) -> list[Span]:
    spans = [
        Span(int(r[0]), int(r[1]), str(r[2]), str(r[3]), str(r[4]), int(r[5]), int(r[6]), float(r[7]))
        for r in fact["spans"]
    ]
    known = {span.number: span for span in spans}
    for span in spans[1:]:
        known[span.parent].children.append(span)
    return spans


class _Maker:
    def __init__(self, phases: Phases, found: Sequence[Sample], measured: Measured | None, first_batch: float) -> None:
        self.phases = phases
        self.measured = measured
        self.by_span: dict[int, list[Sample]] = defaultdict(list)
        for sample in found:
            self.by_span[sample.span].append(sample)
        self.made: dict[tuple[Any, ...], list[RunPart]] = defaultdict(list)
        self.first_batch = first_batch
        self.loose: list[Sample] = []
        """Samples of spans that turn out to be no phase: they count as if there were none."""

    def add(self, part: RunPart) -> None:
        if part.seconds > 0:
            self.made[part.kind, part.name, part.where].append(part)

    def parts(self) -> list[RunPart]:
        return [_merged(alike) for alike in self.made.values()]

    # ── spans ────────────────────────────────────────────────────────────────────────────────────────────────────

    def visit(self, span: Span, callback: Span | None) -> None:
        """Outside of owners: each span is a part of the run."""
        for child in list(span.children):
            if child.kind == "iterator" and self.phases.starts(child.file, child.line) is None:
                span.children.remove(child)
                self.loose += self.by_span[child.number]
            elif child.kind in OWNERS:
                self.add(self.owner(child, inside_fit=span.kind != "run")[0])
            else:
                self.visit(child, callback)
        if span.kind == "iterator":
            self._iterator(span)
        elif span.kind == "epoch-start":
            self._epoch_start(span)
        elif span.kind in PLAIN:
            lines = lines_of(self.by_span[span.number], *self._scale(span)) if span.kind == "fit" else ()
            count = span.calls if span.kind in ("tracing", "prepare") else 0
            self.add(RunPart(PLAIN[span.kind], _name(span), span.own, count, _where(span), lines))
        elif span.kind == "run":
            self._outside(span)

    def owner(self, span: Span, inside_fit: bool = False) -> tuple[RunPart, float]:
        """A callback, an evaluation, a checkpoint: with all inside of it, but for checkpoints and summaries, which are
        parts of the run themselves; and the seconds of those."""
        parts, lifted = [], 0.0
        for child in span.children:
            made, more = self.owner(child)
            lifted += more
            if child.kind in LIFTED and span.kind not in LIFTED:
                if span.kind == "callback" and not span.file and child.kind != "observer":
                    made = replace(made, name=span.name)
                self.add(made)
                lifted += made.seconds
            else:
                parts.append(made)
        kind: Any = span.kind if span.kind in OWNERS else PLAIN.get(span.kind, "program")
        if kind == "callback" and span.name.partition(".")[0] in SAVING_CALLBACKS:
            kind = "checkpoint"
        name = "validation of fit" if kind == "validation" and inside_fit else _name(span)
        lines = lines_of(self._inside(span), *self._scale(span))
        return RunPart(kind, name, span.seconds - lifted, span.calls, _where(span), (*parts, *lines)), lifted

    def _inside(self, span: Span) -> list[Sample]:
        """Its samples, with the frames from the callback's own function on where it is one."""
        found = self.by_span[span.number]
        if span.kind != "callback" or not span.file:
            return found
        cut = []
        for sample in found:
            depth = next(
                (i for i, frame in enumerate(sample.frames) if (frame[0], frame[3]) == (span.file, span.line)), None
            )
            cut.append(sample if depth is None else replace(sample, frames=sample.frames[: depth + 1]))
        return cut

    def _scale(self, span: Span) -> tuple[float]:
        seen = sum(sample.seconds for sample in self.by_span[span.number])
        return (span.own / seen if seen else 0.0,)

    def _epoch_start(self, span: Span) -> None:
        """Until the first batch of each epoch has ended. That batch itself is a step like the others, and where the
        first call of the training function is in it, so is what the iterator does at every epoch."""
        first = [child for child in span.children if child.kind == "first-call"]
        later = max(span.calls - sum(child.calls for child in first), 0)
        steps = min(later * self.first_batch, span.own)
        excess = span.own - steps
        hidden = 0.0
        for child in first if later > 1 else ():
            part = min(excess / later * child.calls, child.own)
            hidden += self._take(("tracing", _name(child), _where(child)), part)
        self.add(RunPart("steps", "fit", steps, 0, _where(span)))
        self.add(RunPart("epoch-start", "fit", excess + hidden, span.calls, _where(span)))

    def _take(self, key: tuple[Any, ...], seconds: float) -> float:
        """How much of it could be taken out of the parts."""
        left = seconds
        for index, part in enumerate(self.made.get(key, [])):
            taken = min(part.seconds, left)
            self.made[key][index] = replace(part, seconds=part.seconds - taken)
            left -= taken
        return seconds - left

    def _iterator(self, span: Span) -> None:
        usual = 0.0
        if self.measured is not None and len(self.measured.input):
            usual = span.calls * float(np.median(self.measured.input / self.measured.n))
        kind = self.phases.starts(span.file, span.line) or "epoch-start"
        steps = min(usual, span.own)
        if kind == "epoch-start":
            self.add(RunPart("steps", self._steps_name(), steps))
            self.add(RunPart(kind, "dataset", span.own - steps, span.calls, _where(span)))
        else:
            self.add(RunPart(kind, "loop", span.own, 0, _where(span)))

    # ── outside of spans ─────────────────────────────────────────────────────────────────────────────────────────

    def _outside(self, root: Span) -> None:
        found = [*self.by_span[root.number], *self.loose]
        seen = sum(sample.seconds for sample in found)
        scale = root.own / seen if seen else 0.0
        groups: dict[PartKind, list[Sample]] = defaultdict(list)
        for sample in found:
            groups[self.phases.kind_of(sample)].append(sample)
        if not seen:
            self.add(RunPart("unattributed", "", root.own))
        for kind, group in groups.items():
            seconds = scale * sum(sample.seconds for sample in group)
            if kind == "import":
                self._imports(group, scale)
            elif kind == "exit":
                self.add(RunPart("exit", "", seconds, 0, None, (*_threads(group, scale), *lines_of(group, scale))))
            elif kind == "observer":
                self.add(RunPart(kind, "flatout", seconds))
            elif kind == "unattributed":
                self.add(RunPart(kind, "", seconds, 0, None, _packages(group, scale)))
            elif kind == "steps":
                self.add(RunPart("steps", self._steps_name(), seconds, 0, None, lines_of(group, scale)))
            elif kind == "validation":
                self._validation(group, scale)
            else:
                self.add(RunPart(kind, "", seconds, 0, None, lines_of(group, scale)))

    def _validation(self, group: Iterable[Sample], scale: float) -> None:
        loops: dict[tuple[str, int], list[Sample]] = defaultdict(list)
        for sample in group:
            loops[self.phases.validates(sample) or ("", 0)].append(sample)
        for (file, line), found in loops.items():
            seconds = scale * sum(sample.seconds for sample in found)
            self.add(RunPart("validation", "loop", seconds, 0, context.where(file, line), lines_of(found, scale)))

    def _imports(self, group: Iterable[Sample], scale: float) -> None:
        packages: dict[str, list[Sample]] = defaultdict(list)
        for sample in group:
            packages["modules" if sample.importing == "?" else sample.importing].append(sample)
        for name, found in packages.items():
            seconds = scale * sum(sample.seconds for sample in found)
            lines = lines_of(found, scale, most=1)
            self.add(RunPart("import", name, seconds, 0, lines[0].where if lines else None))

    def _steps_name(self) -> str:
        return self.measured.stream.kind if self.measured is not None else "steps"

    def whole(self, until_woken: float, ended: float, seen: float, last: tuple[float, float] | None) -> None:
        """What lies before the first look and after the last."""
        self.add(RunPart("interpreter", "", until_woken))
        if last is None:
            self.add(RunPart("unattributed", "after the last record", ended - seen))
        else:
            self.add(RunPart("observer", "flatout", last[1] - min(seen, last[0])))
            self.add(RunPart("exit", "", ended - last[1]))
        if self.measured is not None:
            self._count_steps(self.measured)

    def _count_steps(self, measured: Measured) -> None:
        """The number of steps goes to their largest part."""
        kinds = {"predict": "prediction", "evaluate": "validation"}
        kind = kinds.get(measured.stream.kind, "steps")
        if kind != "steps":
            return
        keys = [key for key in self.made if key[0] == "steps"]
        alike = [part for key in keys for part in self.made.pop(key)]
        if not alike:
            return
        whole = _merged(alike)
        where = whole.where
        if measured.stream.stack:
            frame = measured.stream.stack[0]
            where = context.where(frame[0], frame[1], frame[2])
        self.made["steps", whole.name, where].append(replace(whole, count=measured.count, where=where))


def _threads(group: Iterable[Sample], scale: float) -> list[RunPart]:
    waited = scale * sum(s.seconds for s in group if not s.frames and s.working == "threading")
    return [RunPart("package", "threading", waited)] if waited else []


def _packages(group: Iterable[Sample], scale: float) -> tuple[RunPart, ...]:
    seconds: dict[str, float] = defaultdict(float)
    for sample in group:
        seconds[sample.working] += scale * sample.seconds
    found = sorted(seconds.items(), key=lambda item: -item[1])[:5]
    return tuple(RunPart("package", name, value) for name, value in found)


def _merged(alike: Sequence[RunPart]) -> RunPart:
    if len(alike) == 1:
        return alike[0]
    inner: dict[tuple[Any, ...], list[RunPart]] = defaultdict(list)
    for part in alike:
        for one in part.parts:
            inner[one.kind, one.name, one.where].append(one)
    parts = tuple(sorted((_merged(found) for found in inner.values()), key=lambda part: -part.seconds))
    seconds, count = sum(part.seconds for part in alike), sum(part.count for part in alike)
    where = next((part.where for part in alike if part.where is not None), None)
    return replace(alike[0], seconds=seconds, count=count, where=where, parts=parts)


def _name(span: Span) -> str:
    if span.kind in ("tracing", "first-call"):
        return span.name or "function"
    return os.path.basename(span.name) if span.kind == "prepare" else span.name


def _where(span: Span) -> Any:
    if span.kind in ("tracing", "first-call") and ("site-packages" in span.file or "dist-packages" in span.file):
        return None
    return context.where(span.file, span.line) if span.file else None
