"""Traces as Chrome/Perfetto JSON, for ui.perfetto.dev and chrome://tracing.

Events are written line by line as they are read, so that a trace of millions of events needs no more memory
than its columns. Names and ops are escaped once per distinct text, not once per event.
"""

from __future__ import annotations

import gzip
import json
import os
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TextIO

import numpy as np

from flatout.model.errors import OutputNotWritable
from flatout.trace.model import Line, Plane, Trace
from flatout.trace.xplane import find_files, load

CHUNK = 20_000

OP_STATS = ("tf_op", "name", "hlo_op", "step_num")
"""Stats that are copied to the events of the timeline."""


def to_chrome_json(
    trace_files: str | Path | Iterable[str | Path], destination: str | Path, all_runs: bool = False
) -> int:
    """Write the traces into one JSON file, compressed if its name ends in .gz. Returns the number of events."""
    given = [trace_files] if isinstance(trace_files, (str, Path)) else list(trace_files)
    files = find_files(given, all_runs)
    base = min(_absolute_origin(load(file)) for file in files) if len(files) > 1 else None
    count = 0
    with _opened(Path(destination)) as stream:
        stream.write('{"displayTimeUnit":"ns","traceEvents":[\n')
        stream.write('{"ph":"M","pid":0,"name":"process_name","args":{"name":"flatout"}}')
        process = 0
        for file in files:
            trace = load(file)
            shift_ns = 0 if base is None else _absolute_origin(trace) - base
            for plane in trace.planes:
                if plane.event_count:
                    process += 1
                    count += _write_plane(stream, plane, process, trace.hostname, shift_ns)
        stream.write("\n]}\n")
    return count


def _absolute_origin(trace: Trace) -> int:
    """The start of the trace on the host's clock. Newer profilers count line times from the start of the profile."""
    environment = trace.plane("Task Environment")
    start = environment.stats.get("profile_start_time") if environment else None
    if isinstance(start, int) and trace.origin_ns < start // 2:
        return start + trace.origin_ns
    return trace.origin_ns


@contextmanager
def _opened(path: Path) -> Iterator[TextIO]:
    """A text file that gets its name only when it is complete."""
    temporary = path.with_name(f".{path.name}.{os.getpid()}")
    try:
        if path.name.endswith(".gz"):
            # The fastest level: traces are so repetitive that higher levels gain little.
            with gzip.open(temporary, "wt", compresslevel=1, encoding="utf-8") as stream:
                yield stream
        else:
            with open(temporary, "w", encoding="utf-8") as stream:
                yield stream
        os.replace(temporary, path)
    except OSError as error:
        raise OutputNotWritable(
            f"{path} cannot be written: {error.strerror or error}. Name a file in a directory that exists and has room."
        ) from None
    finally:
        temporary.unlink(missing_ok=True)


def _write_plane(stream: TextIO, plane: Plane, process: int, host: str, shift_ns: int) -> int:
    def metadata(name: str, thread: int, arguments: dict[str, str | int]) -> None:
        entry = {"ph": "M", "pid": process, "tid": thread, "name": name, "args": arguments}
        stream.write(",\n" + json.dumps(entry))

    title = f"{host} {plane.name}".strip()
    metadata("process_name", 0, {"name": title})
    # Devices above the host, as readers look at them first.
    metadata("process_sort_index", 0, {"sort_index": process + (0 if "/device:" in plane.name else 1000)})
    count = 0
    for thread, line in enumerate(plane.lines, 1):
        if len(line):
            metadata("thread_name", thread, {"name": line.display_name or f"thread {line.id}"})
            metadata("thread_sort_index", thread, {"sort_index": thread})
            count += _write_line(stream, line, process, thread, shift_ns)
    return count


def _write_line(stream: TextIO, line: Line, process: int, thread: int, shift_ns: int) -> int:
    """Every event as a complete ("X") event; times are microseconds with picoseconds after the point."""
    head = f',\n{{"ph":"X","pid":{process},"tid":{thread},"name":'
    ids, inverse = np.unique(line.name_id, return_inverse=True)
    heads = [head + json.dumps(line.plane.name_of(int(i))) + ',"ts":' for i in ids]
    tail_codes, tails = _tails(line)
    shift = shift_ns * 1000
    for low in range(0, len(line), CHUNK):
        part = slice(low, low + CHUNK)
        rows = zip(
            inverse[part].tolist(),
            ((line.start_ps[part] + shift) / 1e6).tolist(),
            (line.duration_ps[part] / 1e6).tolist(),
            tail_codes[part].tolist(),
            strict=True,
        )
        stream.write("".join([f'{heads[n]}{at:.6f},"dur":{length:.6f}{tails[tail]}' for n, at, length, tail in rows]))
    return len(line)


def _tails(line: Line) -> tuple[np.ndarray[tuple[int], np.dtype[np.int64]], list[str]]:
    """The end of each event's JSON with its arguments, one text per distinct combination."""
    key = np.zeros(len(line), np.int64)
    tables: list[tuple[str, list[str], int]] = []
    for name in OP_STATS:
        if line.has_stat(name):
            codes, values = line.stat_strings(name)
            tables.append((name, values, len(values) + 1))
            key = key * (len(values) + 1) + codes + 1
    unique, inverse = np.unique(key, return_inverse=True)
    tails = []
    for combination in unique.tolist():
        arguments = {}
        for name, values, width in reversed(tables):
            combination, code = divmod(combination, width)
            if code:
                arguments[name] = values[code - 1]
        tails.append(f',"args":{json.dumps(arguments)}}}' if arguments else "}")
    return inverse.astype(np.int64), tails
