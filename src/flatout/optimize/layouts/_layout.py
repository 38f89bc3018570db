"""What a layout is: which routes the server runs as they were raced, and how it wants their files."""

from __future__ import annotations

import os
import re
import shutil
from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import ClassVar

from flatout.routes._route import End, Route, Setting
from flatout.routes._split import Split
from flatout.subject import Subject

VERSION = "1"
"""The first version of the model; servers take the largest number."""


@dataclass(frozen=True)
class Served:
    """An artefact that is to be written for a server."""

    route: Route
    setting: Setting
    files: Path
    """The model files, as the route wrote them."""
    inputs: Sequence[End]
    outputs: Sequence[End]
    """By the names in these files, in the model's order."""
    subject: Subject
    rows: bool
    """Whether each input and output has a row for each sample, of any number."""

    @property
    def name(self) -> str:
        return model_name(self.subject.source)


class Layout(ABC):
    name: ClassVar[str]
    """As users type it."""
    server: ClassVar[str]

    def refuses(self, route: Route) -> str:
        """Why this server does not run what the route makes as it was raced; empty if it does."""
        if isinstance(route, Split):
            return f"{self.server} runs the model's file alone, not the stage of preprocessing in front of it"
        return self.unsuited(route)

    @abstractmethod
    def unsuited(self, route: Route) -> str:
        """The same, of a route whose artefact is the whole model."""

    @abstractmethod
    def write(self, one: Served, target: Path) -> Path:
        """Write into this directory. Returns the directory with the model's version, which `trial.py` opens."""

    @abstractmethod
    def command(self, one: Served, target: Path) -> str:
        """How the server is started with it."""


def model_name(source: str) -> str:
    """For directories and requests: `nets/Bird song.keras` → `Bird_song`, `nets:make` → `make`."""
    last = source.rpartition(":")[2] if ":" in source and os.sep not in source else Path(source).name
    stem = Path(last).stem if Path(last).suffix in (".keras", ".h5", ".pb") else last
    return re.sub(r"[^A-Za-z0-9_.-]+", "_", stem).strip("._-") or "model"


def place(source: Path, target: Path) -> None:
    """The same file at a second place; a copy where the file system has no links."""
    target.parent.mkdir(parents=True, exist_ok=True)
    try:
        os.link(source, target)
    except OSError:
        shutil.copyfile(source, target)


def place_all(source: Path, target: Path) -> None:
    for path in sorted(source.rglob("*")):
        if path.is_file():
            place(path, target / path.relative_to(source))
        elif path.is_dir():
            (target / path.relative_to(source)).mkdir(parents=True, exist_ok=True)
