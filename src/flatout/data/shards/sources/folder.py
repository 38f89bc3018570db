"""A folder of files, each an element; the folders directly below it are the classes.

Shared by pictures, sounds and other files, which differ in the files that they accept and in what counts as corrupt.
"""

from __future__ import annotations

import collections
import dataclasses
import hashlib
import os
import stat
from collections.abc import Collection, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar

import numpy as np

from flatout.data.shards.example import Element
from flatout.data.shards.schema import Feature
from flatout.data.shards.source import Corrupt, Numbers
from flatout.model.errors import DataUnusable

OVERHEAD = 96
"""An upper limit of the bytes of an element besides its content, its name and the names of its features."""
NO_CLASS = -1


@dataclass(frozen=True)
class FileListing:
    """The files of a folder, sorted by name."""

    root: str
    names: tuple[str, ...]
    bytes: Numbers
    modified: Numbers
    labels: Numbers | None
    classes: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()

    def select(self, numbers: Numbers) -> FileListing:
        return dataclasses.replace(
            self,
            names=tuple(self.names[number] for number in numbers.tolist()),
            bytes=self.bytes[numbers],
            modified=self.modified[numbers],
            labels=None if self.labels is None else self.labels[numbers],
        )


def list_files(root: Path, suffixes: Collection[str] | None, what: str) -> FileListing:
    """All files with these suffixes, at any depth. Hidden files are ignored; a note counts other files left out."""
    others: collections.Counter[str] = collections.Counter()
    rows: list[tuple[str, int, int]] = []
    for name, status in _walk(os.fspath(root), "", frozenset()):
        suffix = os.path.splitext(name)[1].lower()
        if suffixes is None or suffix in suffixes:
            rows.append((name, status.st_size, status.st_mtime_ns))
        else:
            others[suffix or "no suffix"] += 1
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
        notes.append(f"{tops.count(None)} files are outside of the class folders and have the label {NO_CLASS}")
    return FileListing(
        root=os.path.abspath(root),
        names=names,
        bytes=np.array([size for _, size, _ in rows], np.int64),
        modified=np.array([when for _, _, when in rows], np.int64),
        labels=np.array([number_of.get(top, NO_CLASS) for top in tops], np.int64) if classes else None,
        classes=classes,
        notes=tuple(notes),
    )


def _walk(root: str, below: str, above: frozenset[tuple[int, int]]) -> Iterator[tuple[str, os.stat_result]]:
    directory = os.path.join(root, below)
    status = os.stat(directory)
    if (status.st_dev, status.st_ino) in above:
        return  # a link to a folder that contains it
    above = above | {(status.st_dev, status.st_ino)}
    with os.scandir(directory) as entries:
        for entry in entries:
            if entry.name.startswith("."):
                continue
            name = f"{below}/{entry.name}" if below else entry.name
            try:
                status = entry.stat()
            except OSError:  # a link to nothing: reading it will say so
                yield name, entry.stat(follow_symlinks=False)
                continue
            if stat.S_ISDIR(status.st_mode):
                yield from _walk(root, name, above)
            elif stat.S_ISREG(status.st_mode):
                yield name, status


@dataclass(frozen=True)
class Folder:
    """Elements with a file's bytes, its name relative to the folder, and the number of its class."""

    listing: FileListing
    kind: ClassVar[str] = "files"
    content: ClassVar[str] = "content"

    @classmethod
    def open(cls, root: Path) -> Folder:
        return cls(list_files(root, None, "files"))

    @property
    def encoding(self) -> str:
        """The encoding of the files, if all have the same."""
        return ""

    def fault(self, data: bytes, suffix: str) -> str | None:
        """What is wrong with a file's content."""
        return None

    @property
    def features(self) -> tuple[Feature, ...]:
        label = (Feature("label", "int64", "int64"),) if self.listing.labels is not None else ()
        content = Feature(self.content, "bytes", "string", encoding=self.encoding)
        return (content, *label, Feature("name", "bytes", "string"))

    @property
    def classes(self) -> tuple[str, ...]:
        return self.listing.classes

    @property
    def notes(self) -> tuple[str, ...]:
        return self.listing.notes

    @property
    def layout(self) -> dict[str, Any]:
        return {"content": self.content}

    def __len__(self) -> int:
        return len(self.listing.names)

    def sizes(self) -> Numbers:
        names = np.array([len(os.fsencode(name)) for name in self.listing.names], np.int64)
        return self.listing.bytes + names + OVERHEAD

    def fingerprint(self) -> str:
        digest = hashlib.sha256("\0".join(self.listing.names).encode(errors="surrogateescape"))
        digest.update(self.listing.bytes.tobytes() + self.listing.modified.tobytes())
        return digest.hexdigest()

    def select(self, numbers: Numbers) -> Folder:
        return dataclasses.replace(self, listing=self.listing.select(numbers))

    def name(self, number: int) -> str:
        return self.listing.names[number]

    def bytes_of(self, number: int) -> bytes:
        name = self.listing.names[number]
        try:
            with open(os.path.join(self.listing.root, name), "rb") as stream:
                data = stream.read()
        except OSError as error:
            raise Corrupt(f"it cannot be read: {error.strerror}") from None
        if len(data) != self.listing.bytes[number]:
            # The plan was made with the sizes seen before; another size means that the file was written meanwhile.
            raise Corrupt("it changed during the conversion")
        return data

    def labelled(self, number: int, values: dict[str, Any]) -> Element:
        if self.listing.labels is not None:
            values["label"] = int(self.listing.labels[number])
        return {**values, "name": os.fsencode(self.listing.names[number])}

    def read(self, number: int) -> Element:
        data = self.bytes_of(number)
        fault = self.fault(data, os.path.splitext(self.listing.names[number])[1].lower())
        if fault is not None:
            raise Corrupt(fault)
        return self.labelled(number, {self.content: data})
