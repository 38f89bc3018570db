"""ArrayRecord files by their own package: written, read again, verified, given back."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parents[1] / "unit"))
from shards_made import blobs, converted, tree

from flatout.data.shards import extract, verify
from flatout.data.shards.sources.folder import Folder
from flatout.model.errors import ShardsDiffer

pytest.importorskip("array_record", reason="the extra `arrayrecord` is not installed")
pytestmark = pytest.mark.slow


@pytest.mark.parametrize("compression", ["", "zstd"])
def test_files_come_back(tmp_path: Path, compression: str) -> None:
    source = blobs(tmp_path / "b", 300)
    wishes = {"format": "arrayrecord", "compression": compression, "shuffle": 3, "shard_size": 20_000}
    done = converted(source, tmp_path / "out", **wishes)
    assert done.schema.shards[0].file == f"b-00000-of-{len(done.schema.shards):05d}.arrayrecord"
    assert len(done.schema.shards) > 2
    said = verify.verify(done.schema, tmp_path / "out", Folder.open(source), 2, quiet=True)
    assert said.startswith("each of the 300")
    extract.extract(done.schema, tmp_path / "out", tmp_path / "back", 2, quiet=True)
    assert tree(tmp_path / "back") == tree(source)
    converted(source, tmp_path / "again", **wishes)
    assert tree(tmp_path / "again") == tree(tmp_path / "out")
    # Its own reader finds any element by its number.
    from array_record.python.array_record_data_source import ArrayRecordDataSource

    with ArrayRecordDataSource([str(tmp_path / "out" / one.file) for one in done.schema.shards]) as records:
        assert len(records) == 300


def test_damage_is_noticed(tmp_path: Path) -> None:
    source = blobs(tmp_path / "b", 30)
    done = converted(source, tmp_path / "out", format="arrayrecord")
    path = tmp_path / "out" / done.schema.shards[0].file
    path.write_bytes(path.read_bytes()[:-50])
    with pytest.raises(ShardsDiffer):
        verify.verify(done.schema, tmp_path / "out", Folder.open(source), 1, quiet=True)
