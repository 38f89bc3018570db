"""A folder of files, each an element; the folders right below it are the classes.

Shared by pictures, sounds and any other files: these differ in which files they take and what they find corrupt.
"""

from __future__ import annotations

import collections
import dataclasses
import hashlib
import os
from collections.abc import Collection, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar

import numpy as np

from flatout.data.shards.example import Element
from flatout.data.shards.schema import Feature
from flatout.data.shards.sources import Corrupt, Numbers
from flatout.model.errors import DataUnusable

AROUND = 96
"""More bytes than an element has besides its content, its name and the names of its features."""
WITHOUT_CLASS = -1


@dataclass(frozen=True)
class Listed:
    """The files of a folder, in the order of their names, whatever order the file system has."""

    root: str
    names: tuple[str, ...]
    bytes: Numbers
    modified: Numbers
    labels: Numbers | None
    classes: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()

    def select(self, numbers: Numbers) -> Listed:
        return dataclasses.replace(
            self,
            names=tuple(self.names[number] for number in numbers.tolist()),
            bytes=self.bytes[numbers],
            modified=self.modified[numbers],
            labels=None if self.labels is None else self.labels[numbers],
        )


def listed(root: Path, suffixes: Collection[str] | None, what: str) -> Listed:
    """All files with such an ending, at any depth. Hidden files are left out; of others that are, a note tells."""
    others: collections.Counter[str] = collections.Counter()
    rows: list[tuple[str, int, int]] = []
    for name, status in _walk(os.fspath(root), "", frozenset()):
        suffix = os.path.splitext(name)[1].lower()
        if suffixes is None or suffix in suffixes:
            rows.append((name, status.st_size, status.st_mtime_ns))
        else:
            others[suffix or "no ending"] += 1
    if not rows:
        wanted = ", ".join(sorted(suffixes or ())) or "any"
        raise DataUnusable(f"There are no {what} in {root} (looked for: {wanted}). Name another folder or --kind.")
    rows.sort()
    names = tuple(name for name, _, _ in rows)
    tops = [name.split("/", 1)[0] if "/" in name else None for name in names]
    classes = tuple(sorted({top for top in tops if top is not None}))
    number_of: dict[str | None, int] = {top: number for number, top in enumerate(classes)}
    notes = []
    if others:
        kinds = ", ".join(f"{count} × {suffix}" for suffix, count in others.most_common(4))
        notes.append(f"{sum(others.values())} other files were left out ({kinds})")
    if classes and None in tops:
        notes.append(f"{tops.count(None)} files lie beside the class folders and have the label {WITHOUT_CLASS}")
    return Listed(
        root=os.path.abspath(root),
        names=names,
        bytes=np.array([size for _, size, _ in rows], np.int64),
        modified=np.array([when for _, _, when in rows], np.int64),
        labels=np.array([number_of.get(top, WITHOUT_CLASS) for top in tops], np.int64) if classes else None,
        classes=classes,
        notes=tuple(notes),
    )


def _walk(root: str, below: str, above: frozenset[tuple[int, int]]) -> Iterator[tuple[str, os.stat_result]]:
    directory = os.path.join(root, below)
    status = os.stat(directory)
    if (status.st_dev, status.st_ino) in above:
        return  # a link that leads back to a folder it lies in
    above = above | {(status.st_dev, status.st_ino)}
    with os.scandir(directory) as entries:
        for entry in entries:
            if entry.name.startswith("."):
                continue
            name = f"{below}/{entry.name}" if below else entry.name
            if entry.is_dir():
                yield from _walk(root, name, above)
            elif entry.is_file():
                yield name, entry.stat()


@dataclass(frozen=True)
class Folder:
    """Each file's bytes as they are, its name below the folder, and the number of its class where there are any."""

    listed: Listed
    kind: ClassVar[str] = "files"
    content: ClassVar[str] = "content"

    @classmethod
    def open(cls, root: Path) -> Folder:
        return cls(listed(root, None, "files"))

    @property
    def encoding(self) -> str:
        """What the bytes are, where all of them are the same."""
        return ""

    def fault(self, data: bytes, suffix: str) -> str | None:
        """What is wrong with a file's content."""
        return None

    @property
    def features(self) -> tuple[Feature, ...]:
        label = (Feature("label", "int64", "int64"),) if self.listed.labels is not None else ()
        content = Feature(self.content, "bytes", "string", encoding=self.encoding)
        return (content, *label, Feature("name", "bytes", "string"))

    @property
    def classes(self) -> tuple[str, ...]:
        return self.listed.classes

    @property
    def notes(self) -> tuple[str, ...]:
        return self.listed.notes

    @property
    def layout(self) -> dict[str, Any]:
        return {"content": self.content}

    def __len__(self) -> int:
        return len(self.listed.names)

    def sizes(self) -> Numbers:
        names = np.array([len(os.fsencode(name)) for name in self.listed.names], np.int64)
        return self.listed.bytes + names + AROUND

    def fingerprint(self) -> str:
        digest = hashlib.sha256("\0".join(self.listed.names).encode(errors="surrogateescape"))
        digest.update(self.listed.bytes.tobytes() + self.listed.modified.tobytes())
        return digest.hexdigest()

    def select(self, numbers: Numbers) -> Folder:
        return dataclasses.replace(self, listed=self.listed.select(numbers))

    def name(self, number: int) -> str:
        return self.listed.names[number]

    def bytes_of(self, number: int) -> bytes:
        name = self.listed.names[number]
        try:
            with open(os.path.join(self.listed.root, name), "rb") as stream:
                data = stream.read()
        except OSError as error:
            raise Corrupt(f"it cannot be read: {error.strerror}") from None
        if len(data) != self.listed.bytes[number]:
            # The shards were cut by the sizes seen before; another size means that somebody is writing there.
            raise Corrupt("it changed while it was converted")
        return data

    def labelled(self, number: int, values: dict[str, Any]) -> Element:
        if self.listed.labels is not None:
            values["label"] = int(self.listed.labels[number])
        return {**values, "name": os.fsencode(self.listed.names[number])}

    def read(self, number: int) -> Element:
        data = self.bytes_of(number)
        fault = self.fault(data, os.path.splitext(self.listed.names[number])[1].lower())
        if fault is not None:
            raise Corrupt(fault)
        return self.labelled(number, {self.content: data})
