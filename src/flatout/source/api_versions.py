"""Since when TensorFlow and Keras have a public name, and since when no longer.

`api_versions.json` is made by `scripts/generate_api_table.py` from the packages of each minor version. Names are
canonical (`flatout.source.api_names`): `keras.Model` stands for `tf.keras.Model`.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path

Version = tuple[int, int]
FILE = Path(__file__).with_name("api_versions.json")


@dataclass(frozen=True)
class Span:
    first: Version
    """The oldest TensorFlow 2 that has the name."""
    gone: Version | None = None
    """The first without it again, if there is one."""

    def covers(self, oldest: Version) -> bool:
        """Whether all versions from this one on have it."""
        return self.first <= oldest and self.gone is None


@cache
def table() -> Mapping[str, Span]:
    """The names that some versions have and others have not."""
    rows = json.loads(FILE.read_text(encoding="utf-8"))["names"]
    return {name: Span(_version(first), _version(gone) if gone else None) for name, (first, gone) in rows.items()}


@cache
def versions() -> tuple[Version, Version]:
    """The oldest and the newest TensorFlow that the table knows."""
    first, last = json.loads(FILE.read_text(encoding="utf-8"))["versions"]
    return _version(first), _version(last)


def gone_since(name: str, otherwise: Version) -> Version:
    """The first TensorFlow without a name; `otherwise` for a name that went before TensorFlow 2."""
    span = table().get(name)
    return span.gone if span is not None and span.gone is not None else otherwise


def _version(text: str) -> Version:
    major, minor = text.split(".")
    return int(major), int(minor)
