"""Which kind of source a path is, unless the user says: by its ending, a folder by what most of its files are."""

from __future__ import annotations

import collections
import os
from dataclasses import dataclass
from pathlib import Path

from flatout.data.shards.sources import Source, arrays, audio, csv_rows, images, json_rows
from flatout.data.shards.sources.folder import Folder
from flatout.model.errors import DataUnusable, InvalidOption

KINDS = ("images", "audio", "csv", "json", "arrays", "files")
_BY_SUFFIX = {
    **dict.fromkeys(images.SUFFIXES, "images"),
    **dict.fromkeys(audio.SUFFIXES, "audio"),
    **dict.fromkeys(csv_rows.SUFFIXES, "csv"),
    **dict.fromkeys(json_rows.SUFFIXES, "json"),
    **dict.fromkeys(arrays.SUFFIXES, "arrays"),
}


@dataclass(frozen=True)
class Rows:
    """What rows of text can be asked to be."""

    header: bool = True
    float64: bool = False
    keep_text: bool = False


def opened(place: str, kind: str = "auto", rows: Rows | None = None) -> Source:
    path, rows = Path(place), rows or Rows()
    if not path.exists():
        raise DataUnusable(
            f"There is nothing at {place}. Name a folder of files, a .csv, .jsonl, .npy or .npz file, or a pipeline as "
            "`module:function`."
        )
    if kind == "auto":
        kind = guessed(path)
    if kind not in KINDS:
        raise InvalidOption(
            f"There is no kind {kind!r}. It may be {', '.join(KINDS)}, or a pipeline `module:function`."
        )
    if kind == "csv":
        return csv_rows.Csv.open(_files(path, csv_rows.SUFFIXES), rows.header, rows.float64, rows.keep_text)
    if kind == "json":
        return json_rows.Json.open(_files(path, json_rows.SUFFIXES), rows.float64, rows.keep_text)
    if kind == "arrays" and path.is_file():
        return arrays.ArrayFile.open(path)
    if not path.is_dir():
        raise DataUnusable(f"{place} is a file; the kind {kind!r} is made of a folder. Name the folder.")
    folders = {"images": images.Images, "audio": audio.Audio, "arrays": arrays.Arrays, "files": Folder}
    return folders[kind].open(path)


def guessed(path: Path) -> str:
    if path.is_file():
        kind = _BY_SUFFIX.get(path.suffix.lower())
        if kind is None:
            raise DataUnusable(f"What {path} is, its ending does not tell. Say it with --kind {'|'.join(KINDS)}.")
        return kind
    counts: collections.Counter[str] = collections.Counter()
    for _, folders, files in os.walk(path, followlinks=True):
        folders[:] = sorted(name for name in folders if not name.startswith("."))
        counts.update(_BY_SUFFIX.get(os.path.splitext(name)[1].lower(), "") for name in files if name[0] != ".")
        if sum(counts.values()) > 2000:
            break
    known = [(kind, count) for kind, count in counts.most_common() if kind]
    if not known:
        raise DataUnusable(
            f"{path} holds no pictures, sounds, tables or arrays. Name another folder, or say --kind files to store "
            "its files whatever they are."
        )
    return known[0][0]


def _files(path: Path, suffixes: frozenset[str]) -> list[Path]:
    if path.is_file():
        return [path]
    found = sorted(p for p in path.rglob("*") if p.suffix.lower() in suffixes and p.is_file() and p.name[0] != ".")
    if not found:
        raise DataUnusable(f"{path} holds no {', '.join(sorted(suffixes))} files. Name another folder or --kind.")
    return found
