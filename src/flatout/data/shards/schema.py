"""What lies in a set of shards: its features, its classes, its files with their checksums. Kept as JSON beside them.

The file is written last. Where it stands, the set is complete. It holds no time and no absolute path, so that the same
source gives the same file.
"""

from __future__ import annotations

import dataclasses
import json
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from flatout.model.errors import ShardsUnusable

VERSION = 1
ENDING = ".schema.json"


@dataclass(frozen=True)
class Feature:
    """One named value of every element, and how it comes back as a tensor."""

    name: str
    stored: str
    """bytes, int64, float32, or raw: the bytes of an array."""
    dtype: str
    """What the reader makes of it, in TensorFlow's names."""
    shape: tuple[int | None, ...] = ()
    """None is a length that varies. A raw array then has its shape in a feature of its own, `name/shape`."""
    encoding: str = ""
    """image, jpeg, wav or json, where the bytes are such a file."""

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
    """The sum of all elements' digests: the same for the same elements in any order."""
    features: tuple[Feature, ...]
    shards: tuple[Shard, ...]
    classes: tuple[str, ...] = ()
    skipped: tuple[Skipped, ...] = ()
    shuffled_by: int | None = None
    structure: Any = None
    """Of a pipeline's elements: nested lists (`tuple`), dictionaries, and names of features."""
    fingerprint: str = ""
    """Of the source and of the way it was cut: tells whether a later conversion would give the same."""
    layout: dict[str, Any] = field(default_factory=dict)
    """What giving the elements back as files needs to know besides."""

    @property
    def total(self) -> int:
        """Elements of the source, those that were skipped included."""
        return self.elements + len(self.skipped)

    def to_json(self) -> str:
        plain = {"version": VERSION, **dataclasses.asdict(self)}
        # Names of files need not be text; `\\udcff` is how JSON says such a byte.
        return json.dumps(plain, indent=1, sort_keys=True) + "\n"

    @classmethod
    def from_json(cls, text: str) -> Schema:
        plain = json.loads(text)
        version = plain.pop("version")
        if version > VERSION:
            raise ValueError(f"it is of version {version}, and this flatout knows {VERSION}")
        plain["features"] = tuple(Feature(**{**one, "shape": tuple(one["shape"])}) for one in plain["features"])
        plain["shards"] = tuple(Shard(**one) for one in plain["shards"])
        plain["skipped"] = tuple(Skipped(**one) for one in plain["skipped"])
        plain["classes"] = tuple(plain["classes"])
        return cls(**plain)


def path_in(directory: Path, name: str) -> Path:
    return directory / f"{name}{ENDING}"


def find(place: Path) -> Path:
    """The schema meant by a path: itself, or the only one of a directory."""
    if place.is_file():
        return place
    found = sorted(place.glob(f"*{ENDING}")) if place.is_dir() else []
    if len(found) == 1:
        return found[0]
    if found:
        names = ", ".join(path.name for path in found[:5])
        raise ShardsUnusable(f"{place} holds {len(found)} sets of shards ({names}). Name the schema file of one.")
    raise ShardsUnusable(
        f"There is no finished set of shards at {place}: no *{ENDING}. `flatout data convert` writes it at its end."
    )


def load(path: Path) -> Schema:
    try:
        return Schema.from_json(path.read_text(encoding="utf-8"))
    except (OSError, ValueError, TypeError, KeyError, AttributeError) as error:
        raise ShardsUnusable(
            f"{path} cannot be read as the schema of shards: {error}. Convert again with --force."
        ) from None
