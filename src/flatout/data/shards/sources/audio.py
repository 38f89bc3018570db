"""A folder of sounds, by class: their bytes go into the shards as they are."""

from __future__ import annotations

from pathlib import Path
from typing import ClassVar

from flatout.data.shards.sources import intact
from flatout.data.shards.sources.folder import Folder, listed

SUFFIXES = frozenset(intact.AUDIO)


class Audio(Folder):
    kind: ClassVar[str] = "audio"
    content: ClassVar[str] = "audio"

    @classmethod
    def open(cls, root: Path) -> Audio:
        return cls(listed(root, SUFFIXES, "sounds"))

    @property
    def encoding(self) -> str:
        return "wav" if all(name.lower().endswith(".wav") for name in self.listed.names) else ""

    def fault(self, data: bytes, suffix: str) -> str | None:
        return intact.audio(data, suffix)
