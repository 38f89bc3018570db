"""Opens a path as a source. Its kind is detected by its suffix, that of a folder by most of its files."""

from __future__ import annotations

import collections
import os
from dataclasses import dataclass
from pathlib import Path

from flatout.data.shards.source import Source
from flatout.data.shards.sources import arrays, csv_rows, json_rows, media
from flatout.data.shards.sources.folder import Folder
from flatout.model.errors import DataUnusable, InvalidOption

KINDS = ("images", "audio", "csv", "json", "arrays", "files")
_BY_SUFFIX = {
    **dict.fromkeys(media.IMAGE_SUFFIXES, "images"),
    **dict.fromkeys(media.AUDIO_SUFFIXES, "audio"),
    **dict.fromkeys(csv_rows.SUFFIXES, "csv"),
    **dict.fromkeys(json_rows.SUFFIXES, "json"),
    **dict.fromkeys(arrays.SUFFIXES, "arrays"),
}


@dataclass(frozen=True)
class RowOptions:
    """Options of CSV and JSON sources."""

    header: bool = True
    float64: bool = False
    keep_text: bool = False


def open_source(name: str, kind: str = "auto", rows: RowOptions | None = None) -> Source:
    path, rows = Path(name), rows or RowOptions()
    if not path.exists():
        raise DataUnusable(
            f"There is nothing at {name}. Name a folder of files, a .csv, .jsonl, .npy or .npz file, or a pipeline as "
            "`module:function`."
        )
    if kind == "auto":
        kind = detect_kind(path)
    if kind not in KINDS:
        raise InvalidOption(
            f"There is no kind {kind!r}. The kinds are {', '.join(KINDS)}; a pipeline is given as `module:function`."
        )
    if kind == "csv":
        return csv_rows.Csv.open(_files(path, csv_rows.SUFFIXES), rows.header, rows.float64, rows.keep_text)
    if kind == "json":
        return json_rows.Json.open(_files(path, json_rows.SUFFIXES), rows.float64, rows.keep_text)
    if kind == "arrays" and path.is_file():
        return arrays.ArrayFile.open(path)
    if not path.is_dir():
        raise DataUnusable(f"{name} is a file; the kind {kind!r} needs a folder. Name the folder.")
    folders = {"images": media.Images, "audio": media.Audio, "arrays": arrays.Arrays, "files": Folder}
    return folders[kind].open(path)


def detect_kind(path: Path) -> str:
    if path.is_file():
        kind = _BY_SUFFIX.get(path.suffix.lower())
        if kind is None:
            raise DataUnusable(f"The kind of {path} cannot be seen from its suffix. Give --kind {'|'.join(KINDS)}.")
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
            f"{path} contains no pictures, sounds, tables or arrays. Name another folder, or give --kind files to "
            "store its files whatever they are."
        )
    return known[0][0]


def _files(path: Path, suffixes: frozenset[str]) -> list[Path]:
    if path.is_file():
        return [path]
    found = sorted(p for p in path.rglob("*") if p.suffix.lower() in suffixes and p.is_file() and p.name[0] != ".")
    if not found:
        raise DataUnusable(
            f"{path} contains no {', '.join(sorted(suffixes))} files. Name another folder, or give another --kind."
        )
    return found
