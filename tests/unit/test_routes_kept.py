"""Conversions that are kept: found again by their key alone, whole or not at all, and within their bounds."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

import pytest

from flatout.routes import _kept
from flatout.routes._kept import ENTRY, FILES, Kept, name_of

KEY = {"what": "litert-fp32", "model": {"saved_model": "abc"}, "batches": (1, 8)}


@pytest.fixture
def made(tmp_path: Path) -> Path:
    source = tmp_path / "made"
    (source / "inner").mkdir(parents=True)
    (source / "model.tflite").write_bytes(b"weights" * 1000)
    (source / "inner" / "shapes.json").write_text("{}")
    return source


def test_what_is_kept_is_found_by_the_same_key_alone(tmp_path: Path, made: Path) -> None:
    store = Kept(tmp_path / "cache")
    store.put(KEY, made, 3.5)
    target = _directory(tmp_path / "target")
    assert not store.take({**KEY, "batches": (1,)}, target)
    assert store.take(KEY, target)
    assert _contents(target) == _contents(made)
    assert (store.seconds, store.found) == (3.5, 1)


def test_only_its_user_can_read_it(tmp_path: Path, made: Path) -> None:
    store = Kept(tmp_path / "cache")
    store.put(KEY, made, 1.0)
    paths = [store.directory, *store.directory.rglob("*")]
    assert len(paths) > 4
    assert not [path for path in paths if path.stat().st_mode & 0o077]


def test_a_directory_of_somebody_else_is_not_used(tmp_path: Path, made: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    Kept(tmp_path / "cache").put(KEY, made, 1.0)
    monkeypatch.setattr(os, "geteuid", lambda: os.getuid() + 1)
    store = Kept(tmp_path / "cache")
    assert not store.take(KEY, _directory(tmp_path / "target"))


def _change(entry: Path) -> None:
    path = entry / FILES / "model.tflite"
    path.write_bytes(path.read_bytes()[:-1] + b"S")


def _shorten(entry: Path) -> None:
    path = entry / FILES / "model.tflite"
    path.write_bytes(path.read_bytes()[:100])


def _leave_out(entry: Path) -> None:
    (entry / FILES / "inner" / "shapes.json").unlink()


def _without_facts(entry: Path) -> None:
    (entry / ENTRY).unlink()


def _break_facts(entry: Path) -> None:
    (entry / ENTRY).write_text('{"key": ')


def _point_outside(entry: Path) -> None:
    facts = json.loads((entry / ENTRY).read_text())
    facts["files"] = {"../../outside": [4, "0"]}
    (entry / ENTRY).write_text(json.dumps(facts))


def _other_key(entry: Path) -> None:
    facts = json.loads((entry / ENTRY).read_text())
    facts["key"]["model"] = {"saved_model": "another"}
    (entry / ENTRY).write_text(json.dumps(facts))


def _link_elsewhere(entry: Path) -> None:
    path = entry / FILES / "model.tflite"
    path.rename(entry / "elsewhere")
    path.symlink_to(entry / "elsewhere")


@pytest.mark.parametrize(
    "damage",
    [_change, _shorten, _leave_out, _without_facts, _break_facts, _point_outside, _other_key, _link_elsewhere],
)
def test_a_damaged_entry_is_ignored_and_replaced(tmp_path: Path, made: Path, damage: Any) -> None:
    store = Kept(tmp_path / "cache")
    store.put(KEY, made, 1.0)
    damage(store.directory / name_of(KEY))
    target = _directory(tmp_path / "target")
    assert not store.take(KEY, target)
    assert not list(target.iterdir())
    assert store.found == 0
    store.put(KEY, made, 2.0)
    assert store.take(KEY, target)
    assert _contents(target) == _contents(made)


def test_what_was_not_used_for_longest_goes_first(tmp_path: Path, made: Path) -> None:
    size = sum(path.stat().st_size for path in made.rglob("*") if path.is_file())
    store = Kept(tmp_path / "cache", largest=4 * size)
    keys = [{**KEY, "what": str(number)} for number in range(4)]
    for age, key in enumerate(keys[:3]):
        store.put(key, made, 1.0)
        os.utime(store.directory / name_of(key) / ENTRY, (age, age))
    assert store.take(keys[0], _directory(tmp_path / "used"))
    store.put(keys[3], made, 1.0)
    left = [store.take(key, _directory(tmp_path / key["what"])) for key in keys]
    assert left == [True, False, True, True]


def test_what_is_too_large_is_not_kept(tmp_path: Path, made: Path) -> None:
    store = Kept(tmp_path / "cache", largest=100)
    store.put(KEY, made, 1.0)
    assert not store.take(KEY, _directory(tmp_path / "target"))
    assert not [path for path in store.directory.iterdir() if path.is_dir()]


def test_a_full_disk_keeps_nothing(tmp_path: Path, made: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(_kept, "KEPT_FREE", 1 << 60)
    store = Kept(tmp_path / "cache")
    store.put(KEY, made, 1.0)
    assert not store.take(KEY, _directory(tmp_path / "target"))


def test_a_place_that_cannot_be_written_keeps_nothing(tmp_path: Path, made: Path) -> None:
    (tmp_path / "file").write_text("in the way")
    store = Kept(tmp_path / "file" / "cache")
    store.put(KEY, made, 1.0)
    assert not store.take(KEY, _directory(tmp_path / "target"))


def _directory(path: Path) -> Path:
    path.mkdir()
    return path


def _contents(directory: Path) -> dict[str, bytes]:
    return {str(path.relative_to(directory)): path.read_bytes() for path in directory.rglob("*") if path.is_file()}
