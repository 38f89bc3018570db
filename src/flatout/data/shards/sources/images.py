"""A folder of pictures, by class: their bytes go into the shards as they are, never decoded and encoded again."""

from __future__ import annotations

import os
from pathlib import Path
from typing import ClassVar

from flatout.data.shards.sources import intact
from flatout.data.shards.sources.folder import Folder, listed

SUFFIXES = frozenset(intact.IMAGES)


class Images(Folder):
    kind: ClassVar[str] = "images"
    content: ClassVar[str] = "image"

    @classmethod
    def open(cls, root: Path) -> Images:
        return cls(listed(root, SUFFIXES, "pictures"))

    @property
    def encoding(self) -> str:
        suffixes = {os.path.splitext(name)[1].lower() for name in self.listed.names}
        if ".webp" in suffixes:
            return ""  # not every TensorFlow decodes it
        return "jpeg" if suffixes <= {".jpg", ".jpeg", ".jfif"} else "image"

    def fault(self, data: bytes, suffix: str) -> str | None:
        return intact.image(data, suffix)
