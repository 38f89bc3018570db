"""Which record files are read, and how; TensorFlow reads them in tests/integration."""

from __future__ import annotations

import gzip
from pathlib import Path
from types import SimpleNamespace
from typing import Any

from flatout.subject import records


class Dataset(list[tuple[str, Any]]):
    """As TensorFlow's: the files that it would read, each with its compression."""

    def __init__(self, files: list[str], compression_type: str | None) -> None:
        super().__init__((Path(file).name, compression_type) for file in files)

    def concatenate(self, more: Dataset) -> Dataset:
        self.extend(more)
        return self


def test_each_file_tells_whether_it_is_compressed(tmp_path: Path) -> None:
    for number, content in enumerate([b"plain", gzip.compress(b"a"), gzip.compress(b"b"), b"plain", b""]):
        (tmp_path / f"{number}.tfrecord").write_bytes(content)
    files = [str(path) for path in sorted(tmp_path.iterdir())]
    tensorflow = SimpleNamespace(data=SimpleNamespace(TFRecordDataset=Dataset))
    assert records._dataset(tensorflow, files) == [
        ("0.tfrecord", None),
        ("1.tfrecord", "GZIP"),
        ("2.tfrecord", "GZIP"),
        ("3.tfrecord", None),
        ("4.tfrecord", None),
    ]
