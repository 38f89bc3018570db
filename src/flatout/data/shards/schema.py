"""The schema of a set of shards: its features, classes, and files with their checksums. A JSON file next to them.

The file is written last: where it exists, the set is complete. It contains no time and no absolute path, so that the
same source gives the same file.
"""

from __future__ import annotations

import dataclasses
import json
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from flatout.model import codec, json_text
from flatout.model.errors import CaseUnreadable, ShardsUnusable

VERSION = 1
SUFFIX = ".schema.json"


@dataclass(frozen=True)
class Feature:
    """One named value of every element, and how it is restored as a tensor."""

    name: str
    stored: str
    """bytes, int64, float32, or raw: the bytes of an array."""
    dtype: str
    """The type of the tensor, in TensorFlow's names."""
    shape: tuple[int | None, ...] = ()
    """None is a length that varies. The shape of a raw array is then stored in a feature of its own, `name/shape`."""
    encoding: str = ""
    """image, jpeg, wav or json, if the bytes are such a file."""

    @property
    def varies(self) -> bool:
        return None in self.shape


@dataclass(frozen=True)
class Shard:
    file: str
    elements: int
    bytes: int
    sha256: str


@dataclass(frozen=True)
class Skipped:
    """An element that is not in the shards because it could not be read."""

    name: str
    reason: str


@dataclass(frozen=True)
class Schema:
    name: str
    source: str
    """The kind of source: images, audio, files, csv, json, arrays, pipeline."""
    format: str
    compression: str
    elements: int
    digest: str
    """The sum of the digests of all elements, which does not depend on their order."""
    features: tuple[Feature, ...]
    shards: tuple[Shard, ...]
    classes: tuple[str, ...] = ()
    skipped: tuple[Skipped, ...] = ()
    shuffled_by: int | None = None
    structure: Any = None
    """The structure of a pipeline's elements: nested tuples and dictionaries of names of features."""
    fingerprint: str = ""
    """Of the source and the plan: equal if a later conversion would give the same set."""
    layout: dict[str, Any] = field(default_factory=dict)
    """What else is needed to restore the elements as files."""

    @property
    def total(self) -> int:
        """Elements of the source, including those that were skipped."""
        return self.elements + len(self.skipped)

    def to_json(self) -> str:
        values = {"version": VERSION, **dataclasses.asdict(self)}
        # Names of files need not be text; JSON writes such a byte as `\\udcff`.
        return json.dumps(values, indent=1, sort_keys=True) + "\n"

    @classmethod
    def from_json(cls, text: str) -> Schema:
        """Raises ValueError where the text is not a schema."""
        values = json_text.parse(text)
        if not isinstance(values, dict) or not isinstance(values.get("version"), int):
            raise ValueError("it has no version")
        if values["version"] > VERSION:
            raise ValueError(f"it has version {values['version']}; this flatout reads up to {VERSION}")
        try:
            return codec.read(cls, values)
        except CaseUnreadable as error:
            raise ValueError(str(error)) from None


def path_in(directory: Path, name: str) -> Path:
    return directory / f"{name}{SUFFIX}"


def find(path: Path) -> Path:
    """The schema file that a path means: itself, or the only one in a directory."""
    if path.is_file():
        return path
    found = sorted(path.glob(f"*{SUFFIX}")) if path.is_dir() else []
    if len(found) == 1:
        return found[0]
    if found:
        names = ", ".join(one.name for one in found[:5])
        raise ShardsUnusable(f"{path} has {len(found)} sets of shards ({names}). Name the schema file of one.")
    raise ShardsUnusable(
        f"There is no complete set of shards at {path}: no *{SUFFIX}, which `flatout data convert` writes last."
    )


def load(path: Path) -> Schema:
    try:
        return Schema.from_json(path.read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        raise ShardsUnusable(
            f"{path} cannot be read as the schema of shards: {error}. Convert again with --force."
        ) from None
