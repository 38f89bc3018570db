"""Many small JPEGs to shards and back, and how much faster the shards are read than the folder.

    FILES=100000 python benchmarks/shards.py

It makes the pictures (all different), converts them with `--verify`, gives them back with `--extract` and compares both
trees byte for byte. Then both are read by TensorFlow in turns, in shuffled order: the folder as an expert would read it
(paths known, parallel reads, as many as tf.data likes), the shards by their generated reader. The ratio has its
sign-test interval. `warm` is with all files in the page cache, `cold` with them thrown out before each pass; `decoded`
decodes the pictures on both sides, which hides what reading costs.
"""

from __future__ import annotations

import filecmp
import io
import json
import os
import random
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

FILES = int(os.environ.get("FILES", "100000"))
ROUNDS = int(os.environ.get("ROUNDS", "8"))
CLASSES = 10
BATCH = 64
EXPECTED = 1.0
"""The folder must not be the faster one, whatever the cache."""


def main() -> None:
    if sys.argv[1:2] == ["read"]:
        read(Path(sys.argv[2]), Path(sys.argv[3]))
        return
    with tempfile.TemporaryDirectory(dir=os.environ.get("TMPDIR")) as directory:
        root = Path(directory)
        make(root / "photos")
        convert(root, "photos", "shards", "--verify", "--shuffle", "1")
        convert(root, "shards", "back", "--extract")
        same = compare(root / "photos", root / "back")
        print(f"back again: {same:,} files with the same names and bytes", flush=True)
        command = [sys.executable, __file__, "read", str(root / "photos"), str(root / "shards")]
        sys.exit(subprocess.run(command, env={**os.environ, "TF_CPP_MIN_LOG_LEVEL": "3"}).returncode)


def make(root: Path) -> None:
    """One picture, and its number written into a comment of the file: different bytes, as fast as files can be made."""
    from PIL import Image

    stream = io.BytesIO()
    Image.frombytes("RGB", (32, 32), random.Random(1).randbytes(3072)).save(stream, "JPEG", quality=90)
    head, tail = stream.getvalue()[:2], stream.getvalue()[2:]
    began = time.perf_counter()
    for number in range(FILES):
        folder = root / f"class-{number % CLASSES}"
        if number < CLASSES:
            folder.mkdir(parents=True)
        comment = random.Random(number).randbytes(random.Random(-number).randrange(2, 2000))
        marked = b"\xff\xfe" + (len(comment) + 2).to_bytes(2, "big") + comment
        (folder / f"{number:06d}.jpg").write_bytes(head + marked + tail)
    print(f"made {FILES:,} pictures, {time.perf_counter() - began:.1f} s", flush=True)


def convert(root: Path, *words: str) -> None:
    began = time.perf_counter()
    command = [sys.executable, "-m", "flatout", "data", "convert", *words]
    done = subprocess.run(command, cwd=root, capture_output=True, text=True)
    print(done.stdout + (done.stderr if done.returncode else ""), end="")
    print(f"    flatout data convert {' '.join(words)}: {time.perf_counter() - began:.1f} s in all", flush=True)
    if done.returncode:
        sys.exit(done.returncode)


def compare(one: Path, other: Path) -> int:
    names = sorted(str(path.relative_to(one)) for path in one.rglob("*.jpg"))
    there = sorted(str(path.relative_to(other)) for path in other.rglob("*") if path.is_file())
    if names != there:
        sys.exit(f"Not the same names: {len(names)} and {len(there)}")
    _, different, failed = filecmp.cmpfiles(one, other, names, shallow=False)
    if different or failed:
        sys.exit(f"{len(different)} files differ, {len(failed)} cannot be read")
    return len(names)


# ── reading, in a process with TensorFlow ────────────────────────────────────────────────────────────────────────────


def read(folder: Path, shards: Path) -> None:
    import tensorflow as tf

    from flatout.measure.interval import paired_ratio

    sys.path.insert(0, str(shards))
    import photos_reader

    paths = sorted(str(path) for path in folder.rglob("*.jpg"))
    stored = sorted(str(path) for path in shards.glob("*.tfrecord"))

    def from_folder(decoded: bool) -> tf.data.Dataset:
        dataset = tf.data.Dataset.from_tensor_slices(paths).map(tf.io.read_file, tf.data.AUTOTUNE, deterministic=False)
        if decoded:
            dataset = dataset.map(tf.io.decode_jpeg, tf.data.AUTOTUNE)
        return dataset.prefetch(tf.data.AUTOTUNE)

    worst = float("inf")
    for name, decoded, evicted in (("warm", False, False), ("cold", False, True), ("warm, decoded", True, False)):
        sides = {"folder": from_folder(decoded), "shards": photos_reader.load(decoded=decoded)}
        seconds: dict[str, list[float]] = {"folder": [], "shards": []}
        for one in sides:
            passed(sides[one], paths)
        for _ in range(ROUNDS):
            order = list(sides)
            random.shuffle(order)
            for one in order:
                if evicted:
                    evict([*paths, *stored])
                seconds[one].append(passed(sides[one], paths))
        ratio = paired_ratio(seconds["folder"], seconds["shards"])
        rates = {one: len(paths) / sorted(times)[len(times) // 2] for one, times in seconds.items()}
        print(
            f"{name:14s} shards {ratio.ratio:5.2f}× as fast [{ratio.low:.2f}, {ratio.high:.2f}]   "
            f"folder {rates['folder']:,.0f}/s, shards {rates['shards']:,.0f}/s"
        )
        print(json.dumps({"case": name, "seconds": seconds}), file=sys.stderr, flush=True)
        worst = min(worst, ratio.ratio) if not decoded else worst
    sys.exit(worst < EXPECTED)


def passed(dataset: Any, paths: list[str]) -> float:
    """One epoch in batches, as training takes it."""
    import numpy as np
    import tensorflow as tf

    began = time.perf_counter()
    batches = dataset.batch(BATCH)
    count = int(batches.reduce(np.int64(0), lambda count, batch: count + len_of(tf, batch)))
    seconds = time.perf_counter() - began
    if count != len(paths):
        sys.exit(f"{count} elements where {len(paths)} were expected")
    return seconds


def len_of(tf: Any, batch: Any) -> Any:
    return tf.shape(tf.nest.flatten(batch)[0], tf.int64)[0]


def evict(paths: list[str]) -> None:
    """Ask the system to forget the files' pages; it does for those that are on the disk."""
    for path in paths:
        descriptor = os.open(path, os.O_RDONLY)
        os.posix_fadvise(descriptor, 0, 0, os.POSIX_FADV_DONTNEED)
        os.close(descriptor)


if __name__ == "__main__":
    main()
