"""XPlane traces (TensorFlow, JAX, PyTorch/XLA; CPU, GPU, TPU) as numpy columns, without TensorFlow.

Use it like this:

    trace = load("run/plugins/profile/2024_01_31/host.xplane.pb")
    for plane in trace.planes:                  # /host:CPU, /device:GPU:0, Task Environment, …
        for line in plane.lines:                # a thread, a stream, "XLA Ops"
            line.start_ns, line.duration_ns     # float64, one entry per event, since trace.origin_ns
            line.name_id                        # plane.name_of(id), line.names(), line.where(predicate)
            line.stat("step_num")               # one entry per event, decoded when first used
"""

from __future__ import annotations

from array import array
from pathlib import Path
from typing import Any

import numpy as np

from flatout.model.errors import TraceUnreadable
from flatout.trace import wire
from flatout.trace.columns import read_events
from flatout.trace.files import find_files, read_bytes
from flatout.trace.model import EventMetadata, Line, Plane, Trace

__all__ = ["EventMetadata", "Line", "Plane", "Trace", "find_files", "load"]

LINE_NUMBERS = (1, 3, 9, 10)
LINE_TEXTS = (2, 11)
"""Fields of a line that are read, beside its events (4)."""


def load(source: str | Path | bytes) -> Trace:
    """Read one trace file, plain or gzip'ed, or its bytes.

    Raises TraceNotFound if there is no file and TraceUnreadable if it is not a trace. Of a truncated file, the
    planes and lines that can be read completely are kept, and `trace.warnings` says what is missing.
    """
    path = None if isinstance(source, bytes) else Path(source)
    data, complaint = read_bytes(source)
    trace = Trace(path, data)
    if complaint:
        trace.warnings.append(complaint)
    name = str(path) if path else "The data"
    try:
        for number, kind, begin, end in wire.fields(trace._view, 0, data.size - wire.PADDING):
            if kind != wire.LENGTH:
                raise wire.WireError("a number where a plane was expected")
            trace.take(objects=16 if number == 1 else 1)
            if number == 1:
                plane = Plane(trace)
                _read_plane(plane, begin, end)
                trace.planes.append(plane)
            elif number in (2, 3):
                trace.warnings.append("The profiler said: " + _string(trace._view, begin, end))
            elif number == 4:
                trace.hostnames.append(_string(trace._view, begin, end))
    except wire.WireError as damage:
        _keep_readable(trace, name, damage)
    if not trace.planes:
        if trace.warnings:
            raise TraceUnreadable(f"{name} holds no events that can be read. {trace.warnings[-1]}")
        raise TraceUnreadable(
            f"{name} is no XPlane trace: no plane can be read from it. Expected the `*.xplane.pb` file that "
            "tf.profiler or jax.profiler writes under `plugins/profile/<run>/`: give it or its log directory."
        )
    return trace


def _keep_readable(trace: Trace, name: str, damage: wire.WireError) -> None:
    """Keep what precedes the damage: the planes read so far, and the complete lines of the damaged plane."""
    end = trace._array.size - wire.PADDING
    if isinstance(damage, wire.TruncatedError):
        # The damaged plane begins where the last complete one ended.
        position = 0
        try:
            for field in wire.fields(trace._view, 0, end):
                position = field[3]
        except wire.WireError:
            pass
        try:
            tag, begin = wire.varint(trace._view, position, end)
            if tag == (1 << 3 | wire.LENGTH):
                _, begin = wire.varint(trace._view, begin, end)
                plane = Plane(trace)
                _read_plane(plane, begin, end, cut=True)
                if plane.name and (plane.lines or trace.planes):
                    trace.planes.append(plane)
                elif plane.name.startswith("/"):
                    trace.warnings.append(
                        f"It is cut off inside its first plane, {plane.name}. Was the program killed, or "
                        "the file copied while it was written? Copy it again or record again."
                    )
        except wire.WireError:
            pass
    if trace.planes:
        events = sum(plane.event_count for plane in trace.planes)
        trace.warnings.append(
            f"{name} is cut off or damaged ({damage}): {len(trace.planes)} planes with {events} events were "
            "read, the rest is missing, perhaps names of events too. Record the trace again for full numbers."
        )


def _read_plane(plane: Plane, begin: int, end: int, cut: bool = False) -> None:
    """Fill a plane from its message. Of a truncated plane, the fields before the end are kept."""
    view = plane.trace._view
    kinds = {1: wire.VARINT, 2: wire.LENGTH, 3: wire.LENGTH, 4: wire.LENGTH, 5: wire.LENGTH, 6: wire.LENGTH}
    try:
        for number, kind, content, stop in wire.fields(view, begin, end):
            if kinds.get(number, kind) != kind:
                raise wire.WireError(f"a plane's field {number} has wire type {kind}")
            plane.trace.take(objects=8 if number == 3 else 1)
            if number == 1:
                plane.id = wire.signed(content)
            elif number == 2:
                plane.name = bytes(view[content:stop]).decode()  # strict: a trace has UTF-8 names
            elif number == 3:
                plane.lines.append(_read_line(plane, content, stop))
            elif number == 4:
                metadata = _read_event_metadata(view, content, stop)
                plane.trace.take(objects=len(metadata.stats_at))
                plane.event_metadata[metadata.id] = metadata
            elif number == 5:
                key, text = _read_stat_metadata(view, content, stop)
                plane.stat_names[key] = text
            elif number == 6:
                plane._stats_at.append((content, stop))
    except wire.TruncatedError:
        if not cut:
            raise wire.WireError("a plane's field runs past its end") from None
    except UnicodeDecodeError:
        raise wire.WireError("a plane's name is no text") from None


def _read_line(plane: Plane, begin: int, end: int) -> Line:
    view = plane.trace._view
    header: dict[int, Any] = {}
    begins, ends = array("q"), array("q")  # a list would take five times the memory
    position = begin
    while position < end:
        # The hot loop: one iteration per event. Events shorter than 128 bytes need no call.
        if view[position] == 0x22 and position + 1 < end:
            length = view[position + 1]
            if length < 0x80:
                position += 2
            else:
                length, position = wire.varint(view, position + 1, end)
            begins.append(position)
            position += length
            ends.append(position)
            continue
        number, kind, content, position = next(wire.fields(view, position, end))
        if number in LINE_TEXTS and kind == wire.LENGTH:
            header[number] = _string(view, content, position)
        elif number in LINE_NUMBERS:
            if kind != wire.VARINT:
                raise wire.WireError("a line's number is text")
            header[number] = content
    if position > end:
        raise wire.WireError("an event runs past its line")
    plane.trace.take(events=len(begins))
    events = read_events(plane.trace._array, np.frombuffer(begins, np.int64), np.frombuffer(ends, np.int64))
    return Line(plane, header, events)


def _read_event_metadata(view: memoryview, begin: int, end: int) -> EventMetadata:
    """One entry of the map from id to XEventMetadata."""
    key = 0
    name = display = ""
    stats: list[tuple[int, int]] = []
    for number, kind, content, stop in wire.fields(view, begin, end):
        if number == 1 and kind == wire.VARINT:
            key = wire.signed(content)
        elif number == 2 and kind == wire.LENGTH:
            for inner, _, at, upto in wire.fields(view, content, stop):
                if inner == 2:
                    name = _string(view, at, upto)
                elif inner == 4:
                    display = _string(view, at, upto)
                elif inner == 5:
                    stats.append((at, upto))
    return EventMetadata(key, name, display, tuple(stats))


def _read_stat_metadata(view: memoryview, begin: int, end: int) -> tuple[int, str]:
    """One entry of the map from id to XStatMetadata, of which only the name is used."""
    key, name = 0, ""
    for number, kind, content, stop in wire.fields(view, begin, end):
        if number == 1 and kind == wire.VARINT:
            key = wire.signed(content)
        elif number == 2 and kind == wire.LENGTH:
            for inner, _, at, upto in wire.fields(view, content, stop):
                if inner == 2:
                    name = _string(view, at, upto)
    return key, name


def _string(view: memoryview, begin: int, end: int) -> str:
    return bytes(view[begin:end]).decode("utf-8", "replace")
