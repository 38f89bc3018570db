"""The last line that a program has printed. After an exception, it names the exception."""

from __future__ import annotations

import os
import re
from pathlib import Path

_LOG = re.compile(
    r"[IW]\d{4} \d|\d{4}-\d\d-\d\d [\d:.]+: [IW] |WARNING: All log messages before|To enable the following"
)
"""Log lines of TensorFlow's C++ code, which never are why a program ended."""
_TAIL_BYTES = 4000


def last_line(output: Path, longest: int = 200) -> str:
    """The last line in this file that is not a log line of TensorFlow; empty where there is none."""
    try:
        with open(output, "rb") as stream:
            stream.seek(max(0, os.fstat(stream.fileno()).st_size - _TAIL_BYTES))
            lines = stream.read().decode("utf-8", "replace").splitlines()
    except OSError:
        return ""
    printed = [line.strip() for line in lines if line.strip() and not _LOG.match(line)]
    return printed[-1][:longest] if printed else ""
