"""Finding trace files in log directories with many runs and hosts, and reading their bytes."""

from __future__ import annotations

import zlib
from collections.abc import Iterable
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from flatout.model.errors import TraceNotFound, TraceUnreadable
from flatout.trace.wire import PADDING

SUFFIXES = (".xplane.pb", ".xplane.pb.gz", ".xplane.pb.gzip")
GZIP = b"\x1f\x8b"
PIECE = 1 << 20
PACKED_PIECE = 1 << 15
"""Bytes that are unpacked at once, into 34 MB at most."""
LARGEST = (1 << 31) - 1
"""Bytes of a protocol buffer message, and so of a trace."""
LARGEST_RATIO = 40
"""How much larger than its gzip file a trace may be. Real traces are 2 to 6 times as large; gzip can do 1030."""
ALWAYS_UNPACKED = 64 << 20
"""Bytes that are unpacked whatever the ratio."""


def find_files(paths: Iterable[str | Path], all_runs: bool = False) -> list[Path]:
    """The trace files for files, log directories and patterns.

    A directory means the newest run below it (`plugins/profile/<run>/<host>.xplane.pb`, every host of
    it), or for all runs with `all_runs`. A file that is given is read whatever its name.
    """
    found: list[Path] = []
    for given in [paths] if isinstance(paths, (str, Path)) else paths:
        path = Path(given).expanduser()
        if path.is_dir():
            found += _in_directory(path, all_runs)
        elif path.exists():
            found.append(path)
        else:
            found += _by_pattern(path, all_runs)
    unique = list(dict.fromkeys(found))
    if not unique:
        raise TraceNotFound("No path was given. Name a `*.xplane.pb` file or a profiler's log directory.")
    return unique


def _in_directory(directory: Path, all_runs: bool) -> list[Path]:
    files = sorted(file for file in directory.rglob("*") if file.name.endswith(SUFFIXES) and file.is_file())
    if not files:
        raise TraceNotFound(
            f"There is no trace in {directory}. Expected `*.xplane.pb` files, here or under "
            "`plugins/profile/<run>/`. Record one with tf.profiler.experimental.start/stop, "
            "jax.profiler.trace or `flatout run`."
        )
    runs: dict[Path, list[Path]] = {}
    for file in files:
        runs.setdefault(file.parent, []).append(file)
    if all_runs:
        return files
    # Runs are named by time in a form that differs between profilers, so the time of the files decides.
    newest = max(runs, key=lambda run: (max(file.stat().st_mtime for file in runs[run]), run.name))
    return runs[newest]


def _by_pattern(path: Path, all_runs: bool) -> list[Path]:
    if any(sign in str(path) for sign in "*?["):
        anchor = Path(path.anchor) if path.is_absolute() else Path()
        matches = sorted(anchor.glob(str(path.relative_to(path.anchor) if path.is_absolute() else path)))
        files = [file for file in matches if file.is_file()]
        for directory in (match for match in matches if match.is_dir()):
            files += _in_directory(directory, all_runs)
        if files:
            return files
        raise TraceNotFound(f"Nothing matches {path}. Expected `*.xplane.pb` files or directories with them.")
    near = sorted(file.name for file in path.parent.glob("*.xplane.pb*"))[:3] if path.parent.is_dir() else []
    hint = f" The directory contains: {', '.join(near)}." if near else " Name a `*.xplane.pb` file or a log directory."
    raise TraceNotFound(f"{path} does not exist.{hint}")


def read_bytes(source: str | Path | bytes) -> tuple[NDArray[np.uint8], str]:
    """The unpacked bytes followed by padding, and a warning if the compressed file is truncated.

    Compression is detected from the content, not from the name: suffixes differ between profilers.
    """
    if isinstance(source, bytes):
        name, data = "The data", bytearray(source)
    else:
        name = str(source)
        data = _content(name)
    complaint = ""
    if data[:2] == GZIP:
        data, complaint = _unpack(name, data)
    if not data:
        raise TraceUnreadable(
            f"{name} is empty. A trace is written when profiling stops: let the program reach "
            "tf.profiler.experimental.stop() or the end of its `with` block, and record again."
        )
    data += bytes(PADDING)
    return np.frombuffer(data, np.uint8), complaint


def _content(name: str) -> bytearray:
    """What is in the file. At most a little more than the largest trace is read: it may be a pipe that never ends."""
    data = bytearray()
    try:
        with open(name, "rb") as stream:
            while len(data) <= LARGEST and (piece := stream.read(PIECE)):
                data += piece
    except FileNotFoundError:
        raise TraceNotFound(f"{name} does not exist. Name a `*.xplane.pb` file or a directory.") from None
    except OSError as error:
        raise TraceUnreadable(
            f"{name} cannot be read: {error.strerror or error}. Expected a trace that this user may read."
        ) from None
    if len(data) > LARGEST:
        raise TraceUnreadable(f"{name} is larger than 2 GiB. No trace is: its format ends there. Record fewer steps.")
    return data


def _unpack(name: str, packed: bytearray) -> tuple[bytearray, str]:
    """The content of a gzip file, and what is wrong with it. A file that unpacks to far too much is refused."""
    limit = min(LARGEST, max(ALWAYS_UNPACKED, LARGEST_RATIO * len(packed)))
    unpacked = bytearray()
    view, position = memoryview(packed), 0
    while view[position : position + 2] == GZIP:  # a gzip file may consist of several members
        unpacker = zlib.decompressobj(wbits=31)
        try:
            while not unpacker.eof and position < len(packed):
                piece = view[position : position + PACKED_PIECE]
                unpacked += unpacker.decompress(piece)
                position += len(piece) - len(unpacker.unused_data)
                if len(unpacked) > limit:
                    raise TraceUnreadable(
                        f"{name} has {len(packed) / 1e6:.1f} MB and unpacks to more than {limit / 1e6:.0f} MB, which "
                        "no trace does: it was not read. If it is one all the same, unpack it with gunzip and give the "
                        "unpacked file."
                    )
        except zlib.error as error:
            return unpacked, f"The compressed data of {name} is damaged ({error}); the part before it was read."
        if not unpacker.eof:
            return unpacked, f"The compressed data of {name} is truncated; the part before the end was read."
    return unpacked, ""
