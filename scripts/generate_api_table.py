"""Writes the table of TensorFlow's public names by version, from the packages themselves.

    python scripts/generate_api_table.py [--check]

For each minor version of TensorFlow 2 that PyPI has, and for the Keras that goes with it, the files of the wheel that
list its public names are read: `tensorflow/_api/v2/` and the `__init__.py` files of Keras. PyPI serves parts of a file,
so a version takes some megabytes instead of hundreds; nothing is kept, imported or run. `--check` writes nothing and
fails where the table would change.

A name counts as there from the first minor version that has it to the last. What all versions have is left out of the
table, as are private names. The result is `src/flatout/source/api_versions.json`.
"""

from __future__ import annotations

import argparse
import ast
import io
import json
import re
import sys
import urllib.request
import zipfile
from collections.abc import Iterator
from pathlib import Path

TABLE = Path(__file__).parent.parent / "src/flatout/source/api_versions.json"
INDEX = "https://pypi.org/simple/{}/"
NEWEST = (2, 21)
FEWEST = 2500
"""Public names that each version has, and more."""
KERAS_OF = {
    **{(2, minor): f"2.{minor}.0" for minor in (6, 7, 8, 9, 10, 11, 12, 14, 15)},
    (2, 13): "2.13.1",
    (2, 16): "3.0.5",
    (2, 17): "3.4.1",
    (2, 18): "3.6.0",
    (2, 19): "3.9.2",
    (2, 20): "3.11.3",
    (2, 21): "3.15.1",
}
"""From 2.6 on tf.keras is another package: the one of the same version, and from 2.16 on one that was new then."""
Version = tuple[int, int]
_LINK = re.compile(r'href="(?P<url>[^"#]+)[^>]*>(?P<name>[^<]+\.whl)<')


class Remote(io.RawIOBase):
    """A file on a server that gives parts of it, as zipfile wants one."""

    def __init__(self, url: str) -> None:
        self.url, self.at, self.got = url, 0, 0
        with self._open("bytes=0-0") as answer:
            self.size = int(answer.headers["Content-Range"].rpartition("/")[2])

    def _open(self, wanted: str):  # type: ignore[no-untyped-def]
        return urllib.request.urlopen(urllib.request.Request(self.url, headers={"Range": wanted}), timeout=180)

    def seekable(self) -> bool:
        return True

    def readable(self) -> bool:
        return True

    def tell(self) -> int:
        return self.at

    def seek(self, offset: int, whence: int = 0) -> int:
        self.at = offset + (0, self.at, self.size)[whence]
        return self.at

    def readinto(self, buffer: bytearray | memoryview) -> int:  # type: ignore[override]
        end = min(self.at + len(buffer), self.size) - 1
        if end < self.at:
            return 0
        with self._open(f"bytes={self.at}-{end}") as answer:
            content = answer.read()
        buffer[: len(content)] = content
        self.at += len(content)
        self.got += len(content)
        return len(content)


def main() -> None:
    parser = argparse.ArgumentParser(description="Write the table of TensorFlow's public names by version.")
    parser.add_argument("--check", action="store_true", help="write nothing; fail where the table would change")
    arguments = parser.parse_args()
    names: dict[Version, set[str]] = {}
    for version, url in wheels("tensorflow").items():
        if version < (2, 0) or version > NEWEST:
            continue
        found, got = public_names(url)
        if version in KERAS_OF:
            keras, more = public_names(_exactly("keras", KERAS_OF[version]))
            found = {name for name in found if not name.startswith("keras.")} | keras  # an old copy is there as well
            got += more
        if len(found) < FEWEST:
            sys.exit(f"TensorFlow {version} shows {len(found)} names: its lists have moved to where none is looked for")
        names[version] = found
        print(f"{version[0]}.{version[1]}: {len(found)} names, {got / 2**20:.1f} MiB read", file=sys.stderr)
    text = written(table(names), names)
    if arguments.check:
        sys.exit(0 if TABLE.read_text() == text else f"{TABLE} is not what the packages say: run this script")
    TABLE.write_text(text)


def wheels(package: str) -> dict[Version, str]:
    """For each minor version a wheel of its last release, for Linux: those of others may only name another package."""
    best: dict[Version, tuple[int, str]] = {}
    for name, url in _links(package):
        found = re.match(rf"{package}-(\d+)\.(\d+)\.(\d+)-", name)
        if found is None or "manylinux" not in name or "x86_64" not in name:
            continue
        key = int(found[1]), int(found[2])
        if key not in best or int(found[3]) > best[key][0]:
            best[key] = int(found[3]), url
    return {key: best[key][1] for key in sorted(best)}


def _exactly(package: str, release: str) -> str:
    return next(url for name, url in _links(package) if name.startswith(f"{package}-{release}-"))


def _links(package: str) -> Iterator[tuple[str, str]]:
    with urllib.request.urlopen(INDEX.format(package), timeout=180) as answer:
        for found in _LINK.finditer(answer.read().decode()):
            yield found["name"], found["url"]


def public_names(url: str) -> tuple[set[str], int]:
    """All names that the package's own lists import, by their dotted names; and how many bytes were read."""
    remote = Remote(url)
    found: set[str] = set()
    with zipfile.ZipFile(io.BufferedReader(remote, 1 << 20)) as wheel:
        for member in sorted(wheel.namelist(), key=lambda name: wheel.getinfo(name).header_offset):
            module = _module_of(member)
            if module is not None:
                found |= {f"{module}.{name}" for name in listed(wheel.read(member).decode())}
    return found, remote.got


def _module_of(member: str) -> str | None:
    """`tensorflow/_api/v2/data/__init__.py` → `tensorflow.data`; None for a file that lists no public names."""
    if member in ("tensorflow/_api/v2/v2.py", "tensorflow_core/_api/v2/v2.py"):
        return "tensorflow"
    if not member.endswith("/__init__.py"):
        return None
    folder = member.removesuffix("/__init__.py")
    for top, name in (
        ("tensorflow/_api/v2", "tensorflow"),
        ("tensorflow/python/keras/api/_v2/keras", "keras"),
        ("tensorflow_core/python/keras/api/_v2/keras", "keras"),
        ("tensorflow_core/_api/v2", "tensorflow"),
        ("keras/api/_v2/keras", "keras"),
        ("keras/api/_tf_keras/keras", "keras"),
        ("keras/api", "keras"),
        ("keras/_tf_keras/keras", "keras"),
    ):
        if folder == top or folder.startswith(f"{top}/"):
            inner = folder[len(top) :].replace("/", ".")
            if any(part.startswith("_") or part == "compat" for part in inner.split(".")):
                return None
            return f"{name}{inner}".replace("tensorflow.keras", "keras")
    return None


def listed(text: str) -> Iterator[str]:
    """The public names that a list of imports makes."""
    for node in ast.parse(text).body:
        if isinstance(node, ast.ImportFrom):
            for alias in node.names:
                name = alias.asname or alias.name
                if not name.startswith("_") and name != "*":
                    yield name


def table(names: dict[Version, set[str]]) -> dict[str, list[str | None]]:
    """Name → the first version that has it, and the first after it that has not; None where it is so to this day."""
    versions = sorted(names)
    found: dict[str, list[str | None]] = {}
    for name in sorted(set().union(*names.values())):
        having = [version for version in versions if name in names[version]]
        after = [version for version in versions if version > having[-1]]
        if having[0] == versions[0] and not after:
            continue
        found[name] = [_text(having[0]), _text(after[0]) if after else None]
    return found


def written(rows: dict[str, list[str | None]], names: dict[Version, set[str]]) -> str:
    """One line for each name, so that a change can be read."""
    lines = [f"{json.dumps(name)}: {json.dumps(rows[name])}" for name in rows]
    first, last = _text(min(names)), _text(max(names))
    return f'{{"versions": ["{first}", "{last}"], "names": {{\n' + ",\n".join(lines) + "\n}}\n"


def _text(version: Version) -> str:
    return f"{version[0]}.{version[1]}"


if __name__ == "__main__":
    main()
