"""The conversion by Apache Beam's local runner: the same shards as without it, to the byte."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parents[1] / "unit"))
from shards_made import blobs, converted, pictures, tree

pytest.importorskip("apache_beam", reason="the extra `beam` is not installed")
pytestmark = pytest.mark.slow


def convert(work: Path, *words: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "flatout", "data", "convert", *words, "--runner", "DirectRunner"]
    return subprocess.run(command, cwd=work, capture_output=True, text=True)


def test_the_same_shards_as_without_a_runner(tmp_path: Path) -> None:
    pictures(tmp_path / "photos")
    converted(tmp_path / "photos", tmp_path / "whole", shuffle=1, shard_size=9_000)
    done = convert(tmp_path, "photos", "out", "--shuffle", "1", "--shard-size", "9kB", "--verify")
    assert done.returncode == 0, done.stderr
    assert "each of the 61 elements is there once" in done.stdout
    assert tree(tmp_path / "out") == tree(tmp_path / "whole")


def test_several_processes_of_the_runner(tmp_path: Path) -> None:
    blobs(tmp_path / "b", 200)
    converted(tmp_path / "b", tmp_path / "whole", shard_size=9_000)
    options = ("--runner-option", "direct_num_workers=2", "--runner-option", "direct_running_mode=multi_processing")
    done = convert(tmp_path, "b", "out", "--kind", "files", "--shard-size", "9kB", *options)
    assert done.returncode == 0, done.stderr
    assert tree(tmp_path / "out") == tree(tmp_path / "whole")


def test_what_is_corrupt_is_told_as_without_a_runner(tmp_path: Path) -> None:
    photos = pictures(tmp_path / "photos")
    (photos / "cat" / "half.jpg").write_bytes((photos / "cat" / "0001.jpg").read_bytes()[:100])
    done = convert(tmp_path, "photos", "out", "--shard-size", "9kB")
    assert done.returncode == 1
    assert "'cat/half.jpg' is corrupt: the JPEG is truncated" in done.stderr
    assert "Traceback" not in done.stderr
    done = convert(tmp_path, "photos", "out", "--shard-size", "9kB", "--on-error", "skip")
    assert done.returncode == 0, done.stderr
    assert "resumed" in done.stdout
    assert "cat/half.jpg" in done.stdout
