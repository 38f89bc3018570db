"""The Case as JSON, for `--json FILE`. `-` is standard output."""

from __future__ import annotations

import contextlib
import json
import sys
from collections.abc import Iterator
from pathlib import Path

from flatout.model.case import Case
from flatout.model.errors import OutputNotWritable
from flatout.store import write_atomically


def write(case: Case, destination: str) -> None:
    """Write the whole case. A file is written completely or not at all."""
    text = json.dumps(_finite(case.to_json()), ensure_ascii=False, indent=2, allow_nan=False) + "\n"
    write_text(text, destination)


def write_text(text: str, destination: str) -> None:
    """Write JSON to a file or, for `-`, to standard output in its encoding."""
    if destination == "-":
        encoding = getattr(sys.stdout, "encoding", None) or "utf-8"
        # JSON can escape every character as ASCII; a reader gets the same text.
        sys.stdout.write(text if _fits(text, encoding) else json.dumps(json.loads(text), indent=2) + "\n")
        sys.stdout.flush()
        return
    path = Path(destination)
    if path.exists() and not path.is_file():
        # /dev/stderr, /dev/fd/3, a named pipe: write into it. A directory is refused with its reason.
        with _clear_errors(path), open(path, "w", encoding="utf-8") as stream:
            stream.write(text)
        return
    with _clear_errors(path):
        write_atomically(path, text)


@contextlib.contextmanager
def _clear_errors(path: Path) -> Iterator[None]:
    """Turn an error of the file system into a message that says what to do."""
    try:
        yield
    except OSError as error:
        raise OutputNotWritable(
            f"Could not write JSON to {path}: {error.strerror or error}. Give a file in a directory that "
            "exists and may be written, or `-` for standard output."
        ) from None


def _fits(text: str, encoding: str) -> bool:
    try:
        text.encode(encoding)
    except (UnicodeEncodeError, LookupError):
        return False
    return True


def _finite(value: object) -> object:
    """JSON has no infinity: a value that is not finite becomes null."""
    if isinstance(value, float):
        return value if value - value == 0 else None
    if isinstance(value, dict):
        return {key: _finite(item) for key, item in value.items()}
    return [_finite(item) for item in value] if isinstance(value, list) else value
