"""Sources to convert, made for the tests: real files, no TensorFlow."""

from __future__ import annotations

import hashlib
import random
from pathlib import Path

from flatout.data.shards import convert
from flatout.data.shards.source import Source
from flatout.data.shards.sources import detection


def pictures(root: Path, count: int = 60, classes: tuple[str, ...] = ("bird", "cat", "dog")) -> Path:
    """Small JPEGs by class, every other one progressive, and a PNG among them."""
    from PIL import Image

    chance = random.Random(1)
    for number in range(count):
        folder = root / classes[number % len(classes)]
        folder.mkdir(parents=True, exist_ok=True)
        picture = Image.frombytes("RGB", (8, 8), chance.randbytes(192))
        picture.save(folder / f"{number:04d}.jpg", progressive=bool(number % 2))
    Image.new("L", (3, 5), 7).save(root / classes[0] / "grey.png")
    return root


def blobs(root: Path, count: int = 40, size: int = 500) -> Path:
    """Any files, of varying length, one of them empty."""
    chance = random.Random(2)
    root.mkdir(parents=True, exist_ok=True)
    for number in range(count):
        (root / f"{number:04d}.bin").write_bytes(chance.randbytes(chance.randrange(size) if number else 0))
    return root


def tree(root: Path) -> dict[str, str]:
    """Every file below, hidden ones as well, with a digest of its bytes."""
    return {
        str(path.relative_to(root)): hashlib.sha256(path.read_bytes()).hexdigest()
        for path in sorted(root.rglob("*"))
        if path.is_file()
    }


def converted(source: Source | Path, destination: Path, **wishes: object) -> convert.Outcome:
    """A path of blobs is taken as any files, other paths for what they are."""
    if isinstance(source, Path):
        kind = "files" if any(source.glob("*.bin")) else "auto"
        return converted(detection.open_source(str(source), kind), destination, **{"name": source.name, **wishes})
    chosen = convert.ConvertRequest(quiet=True, **wishes)  # type: ignore[arg-type]
    return convert.convert(source, "given", destination, chosen)
