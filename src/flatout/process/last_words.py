"""The last line that a program has printed, which after an exception names it."""

from __future__ import annotations

import os
import re
from pathlib import Path

_LOG = re.compile(
    r"[IW]\d{4} \d|\d{4}-\d\d-\d\d [\d:.]+: [IW] |WARNING: All log messages before|To enable the following"
)
"""Lines that TensorFlow prints in passing; none of them ends a program."""


def last_words(output: Path, most: int = 200) -> str:
    try:
        with open(output, "rb") as stream:
            stream.seek(max(0, os.fstat(stream.fileno()).st_size - 4000))
            lines = stream.read().decode("utf-8", "replace").splitlines()
    except OSError:
        return ""
    said = [line.strip() for line in lines if line.strip() and not _LOG.match(line)]
    return said[-1][:most] if said else ""
