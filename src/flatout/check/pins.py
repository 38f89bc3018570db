"""The oldest TensorFlow that a project is for, from the files in which it names its dependencies.

Read are requirements*.txt, pyproject.toml, setup.py, setup.cfg, Pipfile, Dockerfile and environments of conda, in the
folder of a file and in those above it, up to the root of the repository.
"""

from __future__ import annotations

import fnmatch
import os
import re
from functools import cache

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
    found = [version for text in texts for version in in_text(text)]
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
