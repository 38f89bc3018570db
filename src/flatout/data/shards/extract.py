"""Restores files from shards, which also proves that the conversion lost nothing.

A folder of files is restored with the same names and bytes, arrays as `.npy` or `.npz`, rows byte for byte where their
text was stored (`--keep-text`). A shuffle is undone: its order follows from its seed.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path, PurePosixPath
from typing import Any

import numpy as np
from numpy.typing import NDArray

from flatout.data.shards import example, formats, plan, tensors, workers
from flatout.data.shards.progress import Progress
from flatout.data.shards.schema import Feature, Schema
from flatout.data.shards.tfrecord import Damaged
from flatout.model.errors import OutputNotWritable, ProcessFailed, ShardsUnusable
from flatout.trace.wire import WireError


@dataclass(frozen=True)
class Part:
    """One shard to restore."""

    path: Path
    format: str
    compression: str
    bytes: int
    count: int
    """How many elements were written to it."""
    destination: Path
    content: str
    array: Feature | None = None

    def elements(self) -> Iterator[example.Decoded]:
        try:
            found = 0
            for record in formats.read(self.path, self.format, self.compression):
                yield example.decode(record)
                found += 1
            if found != self.count:  # a file that was cut between two records has no damage of its own
                raise Damaged(f"{self.path} has {found:,} elements; {self.count:,} were written.")
        except (OSError, Damaged, WireError) as error:
            raise ShardsUnusable(f"{error} Its elements cannot be restored; convert the source again.") from None


def extract(schema: Schema, directory: Path, destination: Path, processes: int | None, quiet: bool = False) -> int:
    """Returns how many elements were restored."""
    try:
        return _extract(schema, directory, destination, processes, quiet)
    except OSError as error:
        raise OutputNotWritable(
            f"Could not write {error.filename or destination}: {error.strerror}. Free some space, remove "
            f"{destination}, and try again."
        ) from None
    except (ArithmeticError, LookupError, MemoryError, TypeError, ValueError) as error:
        raise ShardsUnusable(
            f"The shards in {directory} do not hold what their schema says ({type(error).__name__}: {error}). Their "
            "elements cannot be restored; convert the source again."
        ) from None


def _extract(schema: Schema, directory: Path, destination: Path, processes: int | None, quiet: bool) -> int:
    if destination.exists() and (not destination.is_dir() or any(destination.iterdir())):
        raise OutputNotWritable(f"{destination} exists and is not an empty directory. Name a new one.")
    if schema.source == "pipeline":
        raise ShardsUnusable(
            "These shards were made from a pipeline: there are no files to restore. Use the reader in their directory."
        )
    if schema.source in ("csv", "json") and not schema.layout.get("text"):
        raise ShardsUnusable(
            "These shards contain the values of the rows, not their text. Convert with --keep-text to restore the same "
            "bytes, or read the values with the reader in their directory."
        )
    destination.mkdir(parents=True, exist_ok=True)
    content = schema.layout.get("text") or schema.layout.get("content") or ""
    array = next((one for one in schema.features if one.name == content and one.stored == "raw"), None)
    parts = [
        Part(
            directory / one.file,
            schema.format,
            schema.compression,
            one.bytes,
            one.elements,
            destination,
            content,
            array,
        )
        for one in schema.shards
    ]
    if schema.source in ("csv", "json"):
        return _restore_rows(schema, parts, destination)
    if "file" in schema.layout:
        return _restore_arrays(schema, parts, destination)
    progress = Progress("restoring", schema.elements, sum(part.bytes for part in parts), quiet)
    count = 0
    try:
        for part, result in workers.run(_restore_files, parts, processes or workers.cores(), progress.report):
            if isinstance(result, workers.Died):
                raise ProcessFailed(
                    f"The worker restoring {part.path.name} {result.reason}, twice. Try again with fewer --workers."
                )
            count += result
    finally:
        progress.end()
    return count


def _restore_files(part: Part, report: workers.Report) -> int:
    count = 0
    created: set[Path] = set()
    for element in part.elements():
        path = part.destination / relative_path(os.fsdecode(bytes(element["name"][0])))
        if path.parent not in created:
            path.parent.mkdir(parents=True, exist_ok=True)
            created.add(path.parent)
        _write(path, element, part)
        count += 1
    report(count, part.bytes)
    return count


def _write(path: Path, element: example.Decoded, part: Part) -> None:
    # Exclusively, so that a name that occurs twice is an error.
    with open(path, "xb") as stream:
        try:
            if part.array is None:
                stream.write(bytes(element[part.content][0]))
            else:
                np.save(stream, tensors.restored(part.array, element), allow_pickle=False)
            stream.flush()
        except OSError:
            path.unlink()  # leave no incomplete file
            raise


def relative_path(name: str) -> PurePosixPath:
    """The name as a path below the destination. Shards may come from anywhere, so `../../` is refused."""
    path = PurePosixPath(name)
    if path.is_absolute() or ".." in path.parts or not path.parts or "\0" in name:
        raise ShardsUnusable(
            f"An element is named {name!r}, which is outside of the directory. Nothing was written for it."
        )
    return path


def _source_numbers(schema: Schema) -> NDArray[np.int64]:
    """The number of each element in the source, in the order of the shards."""
    if schema.skipped:
        raise ShardsUnusable(
            f"{len(schema.skipped)} elements were skipped in the conversion, so their file cannot be restored. Read "
            "the others with the reader in the directory of the shards."
        )
    return np.arange(schema.total) if schema.shuffled_by is None else plan.shuffled(schema.total, schema.shuffled_by)


def _restore_rows(schema: Schema, parts: Sequence[Part], destination: Path) -> int:
    """Write each row at its offset in its file: first find the lengths of all rows, then write the bytes."""
    numbers = _source_numbers(schema)
    lengths = np.zeros(len(numbers), np.int64)
    for number, element in zip(numbers, _all_elements(parts), strict=True):
        lengths[number] = len(bytes(element[parts[0].content][0]))
    layout = schema.layout
    paths = [destination / relative_path(name) for name in layout["files"]]
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
        for number, element in zip(numbers.tolist(), _all_elements(parts), strict=True):
            file = int(of_file[number])
            offset = len(headers[file]) + int(before[number] - begins[file])
            os.pwrite(streams[file], bytes(element[parts[0].content][0]), offset)
    finally:
        for stream in streams:
            os.close(stream)
    return len(numbers)


def _restore_arrays(schema: Schema, parts: Sequence[Part], destination: Path) -> int:
    numbers = _source_numbers(schema)
    arrays: dict[str, NDArray[Any]] = {}
    for number, element in zip(numbers.tolist(), _all_elements(parts), strict=True):
        for one in schema.features:
            value = tensors.restored(one, element)
            if one.name not in arrays:
                dtype = object if one.dtype == "string" else np.dtype(one.dtype)
                arrays[one.name] = np.empty((len(numbers), *value.shape), dtype)
            arrays[one.name][number] = value
    saved = {name: array.astype("S") if array.dtype == object else array for name, array in arrays.items()}
    path = destination / relative_path(schema.layout["file"])
    if path.suffix == ".npz":
        np.savez(path, allow_pickle=False, **saved)
    else:
        np.save(path, next(iter(saved.values())), allow_pickle=False)
    return len(numbers)


def _all_elements(parts: Sequence[Part]) -> Iterator[example.Decoded]:
    for part in parts:
        yield from part.elements()
