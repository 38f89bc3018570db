"""Sizes and times as people type them, the same in every option: `MB` is 10⁶ bytes, `MiB` is 2²⁰; `90s`, `10m`."""

from __future__ import annotations

import re

from flatout.model.errors import InvalidOption

_LETTERS = "kmgt"
_SIZE = re.compile(r"(\d+(?:\.\d+)?)\s*(?:([kmgt])(i?))?b?", re.IGNORECASE)


def size(text: str, option: str) -> int:
    """`128MB`, `1GiB`, `500k`, or plain bytes."""
    match = _SIZE.fullmatch(text.strip())
    value = 0
    if match is not None:
        power = _LETTERS.index(match[2].lower()) + 1 if match[2] else 0
        value = int(float(match[1]) * (1024 if match[3] else 1000) ** power)
    if value < 1:
        raise InvalidOption(f"{option} takes a size such as 128MB (10⁶) or 1GiB (2³⁰ bytes), not {text!r}.")
    return value


def seconds(text: str | float, option: str = "--budget") -> float:
    """`90s`, `10m`, `1h`, or plain seconds."""
    match = re.fullmatch(r"(\d+(?:\.\d+)?)([smh]?)", str(text).strip())
    if not match or not float(match[1]):
        raise InvalidOption(f"{option} takes a time such as 90s, 10m or 1h, not {text!r}.")
    return float(match[1]) * {"": 1, "s": 1, "m": 60, "h": 3600}[match[2]]
