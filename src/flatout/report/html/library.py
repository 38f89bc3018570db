"""The chart library, taken from the installed plotly package when a report is written.

Only plotly's script is read, the package is not imported: that would take a second and nothing of it is needed. In the
page the script lies compressed and is unpacked when the first chart comes into view, so that a report of several charts
stays small and opens at once.
"""

from __future__ import annotations

import base64
import functools
import gzip
import hashlib
import importlib.util
from dataclasses import dataclass
from pathlib import Path

from flatout.model.errors import ToolMissing


@dataclass(frozen=True)
class Script:
    packed: str
    """gzip, base64."""
    hash: str
    """What a Content-Security-Policy names it by."""


@functools.cache
def chart_library() -> Script:
    source = _file().read_bytes()
    return Script(pack(source), content_hash(source))


def pack(source: bytes) -> str:
    # Without a time stamp: the same case gives the same report.
    return base64.b64encode(gzip.compress(source, 6, mtime=0)).decode("ascii")


def content_hash(source: bytes) -> str:
    return f"sha256-{base64.b64encode(hashlib.sha256(source).digest()).decode('ascii')}"


def _file() -> Path:
    found = importlib.util.find_spec("plotly")
    for directory in (found.submodule_search_locations or ()) if found else ():
        script = Path(directory) / "package_data" / "plotly.min.js"
        if script.is_file():
            return script
    raise ToolMissing(
        "The charts of a report come from plotly, which is not installed. Install it with "
        '`pip install "flatout[report]"`, or look at the case in the terminal with `flatout show`.'
    )
