"""The oldest TensorFlow that a project is for, from the files in which it names its dependencies.

Read are requirements*.txt, pyproject.toml, setup.py, setup.cfg, Pipfile, Dockerfile and environments of conda, in the
folder of a file and in those above it, up to the root of the repository.
"""

from __future__ import annotations

import fnmatch
import os
import re
from collections.abc import Iterator, Mapping
from functools import cache
from typing import Any

from flatout.check.settings import tomllib

Version = tuple[int, int]
_FILES = (
    *("requirements*.txt", "pyproject.toml", "setup.py", "setup.cfg", "Pipfile", "environment.y*ml", "conda*.y*ml"),
    *("Dockerfile*", "*requirements.txt"),
)
_ROOTS = (".git", ".hg")
_MOST = 200_000
"""Bytes of a file that are read: more are no list of dependencies."""
_PIN = re.compile(
    r"(?<![\w.-])tensorflow(?:[-_](?:cpu|gpu|macos|intel|rocm))?(?:\[[^\]\n]*\])?[\"']?\s*(?P<ranges>[=(\"'\s]*"
    r"(?:(?:[<>=~!]=?|\^|:)\s*\d+(?:\.\d+)*(?:\.\*|[a-z]+\d*)?\s*,?\s*)+)",
    re.IGNORECASE,
)
_NAME = re.compile(r"tensorflow(?:[-_](?:cpu|gpu|macos|intel|rocm))?", re.IGNORECASE)
_KEY = re.compile(r"^[ \t]*(?:[\"']?tensorflow[\w-]*[\"']?[ \t]*=[^=]|\[.*tensorflow)", re.IGNORECASE | re.MULTILINE)
_OLD_KERAS = re.compile(
    r"^[\s\"'-]*keras\s*(?:==?\s*(?:1\.|2\.[0-2]\b)|<=?\s*2\.[0-2]\b)", re.IGNORECASE | re.MULTILINE
)
"""Keras by itself, of versions that have no TensorFlow 2 to run on."""
_ANY = re.compile(r"^[\s\"'-]*tensorflow", re.IGNORECASE | re.MULTILINE)
_OF_CONDA = re.compile(r"^dependencies:", re.MULTILINE)
_CONTAINER = re.compile(r"\bnvcr\.io/nvidia/tensorflow:(\d+)\.(\d+)(-tf\d)?")
"""By year and month. From 20.02 on the tag says which TensorFlow it has; before it is 1."""
_ONE = re.compile(r"(?P<how>[<>=~!]=?|\^|:)\s*(?P<major>\d+)(?:\.(?P<minor>\d+))?")


@cache
def oldest(folder: str) -> Version | None:
    """By the nearest folder that pins TensorFlow; None where none does."""
    try:
        names = os.listdir(folder or ".")
    except OSError:
        return None
    texts = [text for name in sorted(names) if (text := _dependencies(folder, name))]
    found = [version for text in texts for version in (*in_text(text), *in_tables(text))]
    if found:
        return min(found)
    if any(_OLD_KERAS.search(text) for text in texts) and not any(_ANY.search(text) for text in texts):
        return 1, 15
    if any(root in names for root in _ROOTS):
        return None
    above = os.path.dirname(os.path.abspath(folder or "."))
    return oldest(above) if above != os.path.abspath(folder or ".") else None


def _dependencies(folder: str, name: str) -> str:
    """The text of a file that names dependencies; empty for any other file."""
    listed = any(fnmatch.fnmatchcase(name, glob) for glob in _FILES)
    path = os.path.join(folder, name)
    if not (listed or name.endswith((".yml", ".yaml"))) or not os.path.isfile(path):
        return ""
    try:
        with open(path, encoding="utf-8", errors="replace") as stream:
            text = stream.read(_MOST)
    except OSError:
        return ""
    return text if listed or _OF_CONDA.search(text) else ""


def in_text(text: str) -> list[Version]:
    """`tensorflow>=2.4,<2.9` → [(2, 4)]; `tensorflow-gpu==1.14` → [(1, 14)]; an upper bound of 2 → [(1, 15)]."""
    found: list[Version] = []
    for line in text.splitlines():
        container = _CONTAINER.search(line)
        if container is not None:
            if (int(container[1]), int(container[2])) < (20, 2) or container[3] == "-tf1":
                found.append((1, 15))
            continue
        pins = _PIN.finditer(line.partition("#")[0])
        found += [version for pin in pins if (version := _lowest(pin["ranges"])) is not None]
    return found


def in_tables(text: str) -> list[Version]:
    """As a key of TOML, which Poetry, Pixi and Pipenv write: `tensorflow = "2.10"`, `{version = "^2.10"}`, or a list of
    such tables for several Pythons. Other tools write what a requirements.txt has, which `in_text` reads."""
    if _KEY.search(text) is None:
        return []
    try:
        return list(_in_table(tomllib.loads(text)))
    except (tomllib.TOMLDecodeError, RecursionError):
        return []


def _in_table(table: Mapping[str, Any]) -> Iterator[Version]:
    for key, value in table.items():
        if _NAME.fullmatch(key):
            for one in value if isinstance(value, list) else [value]:
                spec = one.get("version") if isinstance(one, dict) else one if one is value else None
                yield from _of_spec(spec) if isinstance(spec, str) else ()
        elif isinstance(value, dict):
            yield from _in_table(value)


def _of_spec(spec: str) -> Iterator[Version]:
    """`2.10`, `^1.15 || >=2.4,<2.9`: a number by itself is that version."""
    for part in spec.split("|"):
        part = part.strip()
        version = _lowest(f"=={part}" if part[:1].isdigit() else part)
        if version is not None:
            yield version


def _lowest(ranges: str) -> Version | None:
    """`>=2.4,<2.9` → (2, 4)"""
    lower: Version | None = None
    upper: Version | None = None
    for one in _ONE.finditer(ranges):
        version = int(one["major"]), int(one["minor"] or 0)
        if one["how"] in ("<", "<="):
            upper = version
        elif one["how"] not in ("!=", "!"):
            lower = version
    if lower is not None and 1 <= lower[0] <= 2:
        return lower
    return (1, 15) if upper is not None and upper <= (2, 0) else None
