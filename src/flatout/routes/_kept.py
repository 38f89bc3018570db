"""Conversions kept for the next call: a bounded directory of the user's cache, one entry for each key.

An entry is a directory `<key>/` with the converted files in `files/`, and `entry.json`: what the key was made of, how
long the conversion took, the size and digest of each file. An entry appears under its name when it is whole, and is
checked file by file while it is copied out: what is damaged, incomplete or for another key is removed and made again.
The directory belongs to its user alone, because what is in it is loaded and run.
"""

from __future__ import annotations

import contextlib
import fcntl
import hashlib
import json
import os
import shutil
import time
import uuid
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from flatout.model import json_text
from flatout.store import permissions

VARIABLE = "FLATOUT_CONVERSIONS"
ENTRY, FILES, LOCK, PART = "entry.json", "files", "lock", ".part-"
LARGEST = 4 << 30
"""Bytes of all entries together; those that were not used for longest go first."""
LARGEST_SHARE = 0.5
"""Of these, a single entry may take this share."""
KEPT_FREE = 2 << 30
"""So much of the disk stays free."""
ABANDONED_SECONDS = 3600.0
"""What is still not whole after so long belongs to a process that was killed."""


def home() -> Path:
    if named := os.environ.get(VARIABLE):
        return Path(named).expanduser()
    return Path(os.environ.get("XDG_CACHE_HOME") or "~/.cache").expanduser() / "flatout" / "conversions"


@dataclass
class Kept:
    directory: Path
    largest: int = LARGEST
    seconds: float = 0.0
    """What the conversions took, when they were made, that were found here instead."""
    found: int = 0
    _usable: bool | None = field(default=None, repr=False)

    def take(self, key: Mapping[str, Any], target: Path) -> bool:
        """Copy the files of this conversion into a directory. False, and nothing there, where there are none."""
        entry = self.directory / name_of(key)
        if not self.usable() or not entry.is_dir():
            return False
        try:
            facts = json_text.read_object(entry / ENTRY, largest=64 << 20)
            if facts["key"] != _plain(key):
                raise ValueError("another key")
            copied = [_copy(entry / FILES, target, name, *facts["files"][name]) for name in sorted(facts["files"])]
            seconds = float(facts["seconds"])
        except (OSError, ValueError, KeyError, TypeError, AttributeError):
            _empty(target)
            shutil.rmtree(entry, ignore_errors=True)
            return False
        with contextlib.suppress(OSError):
            os.utime(entry / ENTRY)
        self.seconds, self.found = self.seconds + seconds, self.found + 1
        return bool(copied)

    def put(self, key: Mapping[str, Any], source: Path, seconds: float) -> None:
        """Keep the files of a directory. Where that is not possible, nothing is kept."""
        if not self.usable():
            return
        part = self.directory / f"{PART}{os.getpid()}-{uuid.uuid4().hex[:8]}"
        entry = self.directory / name_of(key)
        try:
            paths = sorted(path for path in source.rglob("*") if path.is_file() and not path.is_symlink())
            size = sum(path.stat().st_size for path in paths)
            if not paths or size > LARGEST_SHARE * self.largest or not self._has_room(size):
                return
            files = {}
            for path in paths:
                name = path.relative_to(source).as_posix()
                files[name] = _written(path, part / FILES / name)
            content = json.dumps({"key": _plain(key), "seconds": seconds, "files": files}, indent=1)
            (part / ENTRY).write_text(content, encoding="utf-8")
            permissions.close(part)
            with self._locked():
                shutil.rmtree(entry, ignore_errors=True)
                part.rename(entry)
                self._evict()
        except OSError:
            pass
        finally:
            shutil.rmtree(part, ignore_errors=True)

    def usable(self) -> bool:
        """Whether the directory is there, or can be made, and is its user's alone."""
        if self._usable is None:
            try:
                permissions.make_private(self.directory)
                facts = self.directory.lstat()
                self._usable = facts.st_uid == os.geteuid() and not permissions.is_open(self.directory)
            except OSError:
                self._usable = False
        return self._usable

    def _has_room(self, size: int) -> bool:
        return shutil.disk_usage(self.directory).free - size > KEPT_FREE

    def _evict(self) -> None:
        entries, now = [], time.time()
        for path in self.directory.iterdir():
            if path.name.startswith(PART):
                if now - path.stat().st_mtime > ABANDONED_SECONDS:
                    shutil.rmtree(path, ignore_errors=True)
            elif path.is_dir():
                size = sum(one.stat().st_size for one in path.rglob("*") if one.is_file())
                used = (path / ENTRY).stat().st_mtime if (path / ENTRY).exists() else 0.0
                entries.append((used, size, path))
        total = sum(size for _, size, _ in entries)
        for _, size, path in sorted(entries):
            if total <= self.largest:
                break
            shutil.rmtree(path, ignore_errors=True)
            total -= size

    @contextlib.contextmanager
    def _locked(self) -> Iterator[None]:
        with open(self.directory / LOCK, "w", opener=permissions.private) as lock:
            fcntl.flock(lock, fcntl.LOCK_EX)
            yield


def name_of(key: Mapping[str, Any]) -> str:
    return hashlib.sha256(json.dumps(_plain(key), sort_keys=True).encode()).hexdigest()


def _plain(key: Mapping[str, Any]) -> Any:
    """As it is read back from JSON."""
    return json.loads(json.dumps(key))


def _copy(source: Path, target: Path, name: str, size: int, digest: str) -> Path:
    """Copy one file, and raise ValueError if it is not the one that was kept."""
    if Path(name).is_absolute() or ".." in Path(name).parts:
        raise ValueError(f"{name} is outside")
    if _written(source / name, target / name) != [size, digest]:
        raise ValueError(f"{name} was changed")
    return target / name


def _written(source: Path, target: Path) -> list[Any]:
    """Copy a file. Returns its size and digest, of the bytes that were written."""
    target.parent.mkdir(parents=True, exist_ok=True)
    made, size = hashlib.sha256(), 0
    descriptor = os.open(source, os.O_RDONLY | os.O_NOFOLLOW)
    with open(descriptor, "rb") as reading, open(target, "wb") as writing:
        while chunk := reading.read(1 << 20):
            writing.write(chunk)
            made.update(chunk)
            size += len(chunk)
    return [size, made.hexdigest()]


def _empty(directory: Path) -> None:
    for path in directory.iterdir():
        if path.is_dir():
            shutil.rmtree(path, ignore_errors=True)
        else:
            path.unlink()
