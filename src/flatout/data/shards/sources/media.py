"""Folders of pictures and of sounds, by class: the files' bytes go into the shards as they are, never re-encoded."""

from __future__ import annotations

import os
from pathlib import Path
from typing import ClassVar

from flatout.data.shards.sources import integrity
from flatout.data.shards.sources.folder import Folder, list_files

IMAGE_SUFFIXES = frozenset(integrity.IMAGES)
AUDIO_SUFFIXES = frozenset(integrity.AUDIO)


class Images(Folder):
    kind: ClassVar[str] = "images"
    content: ClassVar[str] = "image"

    @classmethod
    def open(cls, root: Path) -> Images:
        return cls(list_files(root, IMAGE_SUFFIXES, "pictures"))

    @property
    def encoding(self) -> str:
        suffixes = {os.path.splitext(name)[1].lower() for name in self.listing.names}
        if ".webp" in suffixes:
            return ""  # not every TensorFlow decodes it
        return "jpeg" if suffixes <= {".jpg", ".jpeg", ".jfif"} else "image"

    def fault(self, data: bytes, suffix: str) -> str | None:
        return integrity.image(data, suffix)


class Audio(Folder):
    kind: ClassVar[str] = "audio"
    content: ClassVar[str] = "audio"

    @classmethod
    def open(cls, root: Path) -> Audio:
        return cls(list_files(root, AUDIO_SUFFIXES, "sounds"))

    @property
    def encoding(self) -> str:
        return "wav" if all(name.lower().endswith(".wav") for name in self.listing.names) else ""

    def fault(self, data: bytes, suffix: str) -> str | None:
        return integrity.audio(data, suffix)
