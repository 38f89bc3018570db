"""Reads `.npy` and `.npz` files that may have been written by anyone.

A `.npz` of a megabyte can unpack to gigabytes, and a `.npy` can claim any shape. Honest arrays may compress as well as
that (masks, padding), so no ratio is held against them: they must fit into the memory that is left.
"""

from __future__ import annotations

import struct
import zipfile
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray


def read(path: str | Path) -> dict[str, NDArray[Any]]:
    """The arrays of a file by name; that of a `.npy` file is named `""`. Raises OSError or ValueError alone."""
    check_size(path)
    try:
        stored = np.load(path, allow_pickle=False)
        if isinstance(stored, np.ndarray):
            return {"": stored}
        with stored:
            return {name: stored[name] for name in stored.files}
    except (OSError, ValueError):
        raise
    except Exception as error:  # of numpy, zipfile, zlib, tokenize: whatever a damaged file makes them raise
        raise ValueError(f"{type(error).__name__}: {error}") from None


def check_size(path: str | Path) -> None:
    """Raise ValueError where the arrays of a compressed file do not fit into memory. Reads only its directory."""
    if not zipfile.is_zipfile(path):
        return
    try:
        with zipfile.ZipFile(path) as archive:
            unpacked = sum(member.file_size for member in archive.infolist())
    except (zipfile.BadZipFile, struct.error, NotImplementedError) as error:
        raise ValueError(str(error)) from None
    left = memory_left()
    if left is not None and unpacked > left:
        raise ValueError(
            f"its arrays take {unpacked / 1e9:.1f} GB unpacked, and {left / 1e9:.1f} GB of memory are free"
        )


def memory_left() -> int | None:
    """Bytes that the machine has left, as far as it says."""
    try:
        lines = Path("/proc/meminfo").read_text(encoding="ascii").splitlines()
    except (OSError, ValueError):
        return None
    found = [int(words[1]) * 1024 for words in map(str.split, lines) if words[0] == "MemAvailable:"]
    return found[0] if found else None
