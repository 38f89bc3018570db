from __future__ import annotations

import zipfile
from pathlib import Path

import numpy as np
import pytest

from flatout.model.errors import DataUnusable
from flatout.process import array_files
from flatout.subject.data import read_samples


def test_arrays_come_back(tmp_path: Path) -> None:
    np.savez_compressed(tmp_path / "a.npz", x=np.arange(3), y=np.ones(2))
    np.save(tmp_path / "a.npy", np.arange(4))
    assert array_files.read(tmp_path / "a.npz")["x"].tolist() == [0, 1, 2]
    assert array_files.read(tmp_path / "a.npy")[""].tolist() == [0, 1, 2, 3]


def test_an_archive_that_does_not_fit_into_memory_is_not_unpacked(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    np.savez_compressed(tmp_path / "zeros.npz", x=np.zeros(1 << 20))
    monkeypatch.setattr(array_files, "memory_left", lambda: 1 << 20)
    with pytest.raises(DataUnusable, match="GB unpacked"):
        read_samples(str(tmp_path / "zeros.npz"), None, None, 10)


def test_an_array_that_claims_any_shape_is_an_error(tmp_path: Path) -> None:
    np.save(tmp_path / "a.npy", np.zeros(1000))
    content = (tmp_path / "a.npy").read_bytes().replace(b"(1000,)", b"(1 << 60,)")
    huge = (tmp_path / "a.npy").read_bytes().replace(b"(1000,), }          ", b"(1000000000000000,),}")
    for number, damaged in enumerate((content, huge, content[:50])):
        path = tmp_path / f"{number}.npy"
        path.write_bytes(damaged)
        with pytest.raises(DataUnusable, match="cannot be read"):
            read_samples(str(path), None, None, 10)


def test_a_damaged_archive_is_an_error(tmp_path: Path) -> None:
    with zipfile.ZipFile(tmp_path / "a.npz", "w") as archive:
        archive.writestr("x.npy", b"\x93NUMPY\x01\x00\xff\xff{")
    with pytest.raises(DataUnusable, match="cannot be read"):
        read_samples(str(tmp_path / "a.npz"), None, None, 10)
