"""Text from outside (variables, drivers, TensorFlow's log) made safe to print and to keep.

A variable can hold terminal escapes, and a log can be endless: both are cut here, once, before anything else
sees them.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

LIMIT = 1000
_ESCAPES = re.compile(r"\x1b\[[0-9;?]*[ -/]*[@-~]|\x1b\][^\x07\x1b]*(?:\x07|\x1b\\)?")
# Control characters of both ranges, line separators, and the marks that reverse the reading order.
_UNSAFE = re.compile(r"[\x00-\x1f\x7f-\x9f\u2028\u2029\u202a-\u202e\u2066-\u2069\ud800-\udfff]")


def clean(text: str, limit: int = LIMIT) -> str:
    """One printable line of at most `limit` characters."""
    plain = _UNSAFE.sub(" ", _ESCAPES.sub("", text[: limit * 4])).strip()
    return plain if len(plain) <= limit else plain[: limit - 1] + "…"


def clean_all(value: Any) -> Any:
    """The same for every string in a nest of dicts and lists."""
    if isinstance(value, str):
        return clean(value)
    if isinstance(value, Mapping):
        return {clean(str(key), 80): clean_all(item) for key, item in value.items()}
    if isinstance(value, (list, tuple)):
        return [clean_all(item) for item in value]
    return value
