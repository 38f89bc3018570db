"""From shards back to files: the way out, and the proof that the way in lost nothing.

A folder of files comes back with the same names and the same bytes. Arrays come back as `.npy` or `.npz`. Rows come
back byte for byte where their text was kept (`--keep-text`). A shuffle is undone: its order follows from its seed.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path, PurePosixPath
from typing import Any

import numpy as np
from numpy.typing import NDArray

from flatout.data.shards import containers, example, plan, tensors, workers
from flatout.data.shards.progress import Progress
from flatout.data.shards.schema import Feature, Schema
from flatout.data.shards.tfrecord import Damaged
from flatout.model.errors import OutputNotWritable, ProcessFailed, ShardsUnusable
from flatout.trace.wire import WireError


@dataclass(frozen=True)
class Part:
    """One shard to give back."""

    path: Path
    format: str
    compression: str
    bytes: int
    destination: Path
    content: str
    array: Feature | None = None

    def elements(self) -> Iterator[example.Decoded]:
        try:
            for record in containers.read(self.path, self.format, self.compression):
                yield example.decode(record)
        except (OSError, Damaged, WireError) as error:
            raise ShardsUnusable(f"{error} Its elements cannot be given back; convert the source again.") from None


def extract(schema: Schema, directory: Path, destination: Path, processes: int | None, quiet: bool = False) -> int:
    """How many elements were given back."""
    try:
        return _extracted(schema, directory, destination, processes, quiet)
    except OSError as error:
        raise OutputNotWritable(
            f"Could not write {error.filename or destination}: {error.strerror}. Make room, remove {destination}, "
            "and try again."
        ) from None


def _extracted(schema: Schema, directory: Path, destination: Path, processes: int | None, quiet: bool) -> int:
    if destination.exists() and (not destination.is_dir() or any(destination.iterdir())):
        raise OutputNotWritable(f"{destination} exists and is not an empty folder. Name a new one.")
    if schema.source == "pipeline":
        raise ShardsUnusable(
            "These shards were made of a pipeline: there are no files to go back to. Use the reader beside them."
        )
    if schema.source in ("csv", "json") and not schema.layout.get("text"):
        raise ShardsUnusable(
            "These shards hold the values of the rows, not their text. Convert with --keep-text to have the same bytes "
            "back, or read the values with the reader beside them."
        )
    destination.mkdir(parents=True, exist_ok=True)
    content = schema.layout.get("text") or schema.layout.get("content") or ""
    array = next((one for one in schema.features if one.name == content and one.stored == "raw"), None)
    parts = [
        Part(directory / one.file, schema.format, schema.compression, one.bytes, destination, content, array)
        for one in schema.shards
    ]
    if schema.source in ("csv", "json"):
        return _rows(schema, parts, destination)
    if "file" in schema.layout:
        return _rows_of_arrays(schema, parts, destination)
    progress = Progress("giving back", schema.elements, sum(part.bytes for part in parts), quiet)
    count = 0
    try:
        for part, result in workers.run(_files, parts, processes or workers.cores(), progress.tell):
            if isinstance(result, workers.Died):
                raise ProcessFailed(
                    f"The worker giving back {part.path.name} {result.reason}, twice. Try again with fewer --processes."
                )
            count += result
    finally:
        progress.end()
    return count


def _files(part: Part, tell: workers.Tell) -> int:
    count = 0
    made: set[Path] = set()
    for element in part.elements():
        path = part.destination / inside(os.fsdecode(bytes(element["name"][0])))
        if path.parent not in made:
            path.parent.mkdir(parents=True, exist_ok=True)
            made.add(path.parent)
        _write(path, element, part)
        count += 1
    tell(count, part.bytes)
    return count


def _write(path: Path, element: example.Decoded, part: Part) -> None:
    # Exclusively: a name that came twice is not overwritten in silence.
    with open(path, "xb") as stream:
        try:
            if part.array is None:
                stream.write(bytes(element[part.content][0]))
            else:
                np.save(stream, tensors.restored(part.array, element), allow_pickle=False)
            stream.flush()
        except OSError:
            path.unlink()  # no half of a file stays behind
            raise


def inside(name: str) -> PurePosixPath:
    """A name that stays below the folder: shards come from anywhere, and `../../` leads out of it."""
    path = PurePosixPath(name)
    if path.is_absolute() or ".." in path.parts or not path.parts or "\0" in name:
        raise ShardsUnusable(
            f"An element is called {name!r}, which leads out of the folder. Nothing was written for it."
        )
    return path


def _original(schema: Schema) -> NDArray[np.int64]:
    """The number in the source of each element, in the order of the shards."""
    if schema.skipped:
        raise ShardsUnusable(
            f"{len(schema.skipped)} elements were skipped when this was converted, so the file they stood in cannot be "
            "given back. Read the others with the reader beside the shards."
        )
    return np.arange(schema.total) if schema.shuffled_by is None else plan.shuffled(schema.total, schema.shuffled_by)


def _rows(schema: Schema, parts: Sequence[Part], destination: Path) -> int:
    """Each row at its place in its file: first how long all are, then the bytes."""
    numbers = _original(schema)
    lengths = np.zeros(len(numbers), np.int64)
    for number, element in zip(numbers, _all(parts), strict=True):
        lengths[number] = len(bytes(element[parts[0].content][0]))
    layout = schema.layout
    paths = [destination / inside(name) for name in layout["files"]]
    headers = [header.encode("latin-1") for header in layout["headers"]]
    ends = np.cumsum(layout["rows"])
    of_file = np.searchsorted(ends, np.arange(len(numbers)), "right")
    before = np.concatenate([np.zeros(1, np.int64), np.cumsum(lengths)])
    begins = before[np.concatenate([np.zeros(1, np.int64), ends[:-1]])]
    streams = []
    for path, header in zip(paths, headers, strict=True):
        path.parent.mkdir(parents=True, exist_ok=True)
        streams.append(os.open(path, os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o644))
        os.pwrite(streams[-1], header, 0)
    try:
        for number, element in zip(numbers.tolist(), _all(parts), strict=True):
            file = int(of_file[number])
            at = len(headers[file]) + int(before[number] - begins[file])
            os.pwrite(streams[file], bytes(element[parts[0].content][0]), at)
    finally:
        for stream in streams:
            os.close(stream)
    return len(numbers)


def _rows_of_arrays(schema: Schema, parts: Sequence[Part], destination: Path) -> int:
    numbers = _original(schema)
    arrays: dict[str, NDArray[Any]] = {}
    for number, element in zip(numbers.tolist(), _all(parts), strict=True):
        for one in schema.features:
            value = tensors.restored(one, element)
            if one.name not in arrays:
                dtype = object if one.dtype == "string" else np.dtype(one.dtype)
                arrays[one.name] = np.empty((len(numbers), *value.shape), dtype)
            arrays[one.name][number] = value
    settled = {name: array.astype("S") if array.dtype == object else array for name, array in arrays.items()}
    path = destination / inside(schema.layout["file"])
    if path.suffix == ".npz":
        np.savez(path, allow_pickle=False, **settled)
    else:
        np.save(path, next(iter(settled.values())), allow_pickle=False)
    return len(numbers)


def _all(parts: Sequence[Part]) -> Iterator[example.Decoded]:
    for part in parts:
        yield from part.elements()
