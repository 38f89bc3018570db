"""JSON that may have been written by anyone, or cut short by a kill.

`json.loads` raises more than its own error: RecursionError for lists inside of lists inside of lists, ValueError for a
number of 5000 digits, UnicodeDecodeError for bytes that are no text. Here it is always a ValueError (or an OSError of
the file), and a file that is too large is refused before it is read.
"""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

LARGEST_FILE = 1 << 30
"""Bytes of a file. A case of a long tune has some megabytes."""


def parse(text: str | bytes) -> Any:
    """What the text says. Raises ValueError, and nothing else, where it is not JSON."""
    try:
        return json.loads(text)
    except RecursionError:
        raise ValueError("it is nested too deeply") from None
    except MemoryError:
        raise ValueError("it does not fit into memory") from None


def read(path: str | os.PathLike[str], largest: int = LARGEST_FILE) -> Any:
    """What a file says. Raises OSError where it cannot be read, and ValueError where it is not JSON."""
    with Path(path).open("rb") as stream:  # a pipe or a device has no size to ask for
        content = stream.read(largest + 1)
    if len(content) > largest:
        raise ValueError(f"it is larger than {largest >> 20} MiB")
    return parse(content.decode("utf-8"))


def read_object(path: str | os.PathLike[str], largest: int = LARGEST_FILE) -> dict[str, Any]:
    """The same for a file that must hold an object."""
    found = read(path, largest)
    if not isinstance(found, dict):
        raise ValueError("it is JSON, but not an object")
    return found
