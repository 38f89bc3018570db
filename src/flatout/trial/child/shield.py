"""A trial writes none of the user's files and still runs as usual: it can read back what it has written.

Every write outside the trial's own directory and the temporary ones is redirected to a copy below `<directory>/files`
(`overlay`), whichever way the program takes: Python's own functions (`python_files`), TensorFlow's C++
(`tensorflow_files`), HDF5, SQLite. Any other write is refused: by the kernel (`process/fence`), which was told so
before this process began and holds every process that the program starts. With `--unfenced` Python refuses it, which
sees its own calls only: other C++ libraries and processes that the program starts are then not held back.
"""

from __future__ import annotations

import errno
import functools
import importlib.abc
import importlib.machinery
import os
import sys
from collections.abc import Callable, Sequence
from types import ModuleType
from typing import TYPE_CHECKING, Any

from flatout.observe.after_import import after_import
from flatout.observe.observer import Probe
from flatout.trial.child import python_files
from flatout.trial.child.overlay import Overlay

if TYPE_CHECKING:
    from flatout.observe.observer import Observer

_overlay: Overlay | None = None


def install(directory: str, also: Sequence[str] = (), held: bool = False, moves: bool = True) -> None:
    """From now on, nothing outside `directory`, `also` and the temporary directories is written. `held`: the kernel
    sees to that already. `moves`: it lets files move from one directory to another."""
    global _overlay
    overlay = _overlay = Overlay(directory, also, moves)
    os.makedirs(overlay.files, exist_ok=True)
    sys.dont_write_bytecode = True  # the interpreter writes __pycache__ without `open`
    python_files.install(overlay)
    sys.meta_path.append(_Written(overlay))
    after_import("h5py", lambda module: _redirect_h5py(overlay, module))
    after_import("sqlite3", lambda module: _redirect_sqlite(overlay, module))
    if not held:
        sys.addaudithook(functools.partial(_refuse, overlay))


def install_unobserved(directory: str, also: Sequence[str], held: bool, moves: bool) -> None:
    """In a Python of the trial that is not the one observed: a shell script may start several."""
    install(directory, also, held, moves)
    after_import("tensorflow", lambda module: _redirect_tensorflow(lambda text: None))


def written() -> frozenset[tuple[object, ...]]:
    """What this trial has written so far."""
    return _overlay.written() if _overlay is not None else frozenset()


def on_tensorflow(observer: Observer, module: ModuleType) -> None:
    _redirect_tensorflow(observer.note)


def _redirect_tensorflow(note: Callable[[str], None]) -> None:
    from flatout.trial.child import tensorflow_files

    if _overlay is not None:
        tensorflow_files.install(_overlay, note)


class _Written(importlib.abc.MetaPathFinder):
    """Finds modules that the program itself has written: the import system does not look for files with `open`."""

    def __init__(self, overlay: Overlay) -> None:
        self.overlay = overlay

    def find_spec(
        self, fullname: str, path: Sequence[str] | None = None, target: ModuleType | None = None
    ) -> importlib.machinery.ModuleSpec | None:
        overlay = self.overlay
        if not overlay.roots:
            return None
        with overlay.unguarded():
            entries = [overlay.locate(entry or ".") for entry in (sys.path if path is None else path)]
            copies = [overlay.files + entry for entry in entries if entry is not None and overlay.covered(entry)]
            return importlib.machinery.PathFinder.find_spec(fullname, copies, target) if copies else None


def _redirect_h5py(overlay: Overlay, module: ModuleType) -> None:
    original = module.File.__init__

    @functools.wraps(original)
    def __init__(self: Any, name: Any, mode: Any = "r", *args: Any, **keywords: Any) -> None:
        if isinstance(name, (str, bytes, os.PathLike)) and isinstance(mode, str):
            with overlay.unguarded():
                name = overlay.read(name) if mode == "r" else overlay.write(name, **python_files.how(mode))
        original(self, name, mode, *args, **keywords)

    module.File.__init__ = __init__


def _redirect_sqlite(overlay: Overlay, module: Any) -> None:
    original = module.connect

    @functools.wraps(original)
    def connect(database: Any, *args: Any, **keywords: Any) -> Any:
        if database not in (":memory:", b":memory:", ""):
            if keywords.get("uri") and str(database).startswith("file:"):
                raise _refusal(str(database))
            with overlay.unguarded():
                database = _own_database(overlay, database)
        return original(database, *args, **keywords)

    module.connect = module.dbapi2.connect = connect


def _own_database(overlay: Overlay, database: Any) -> Any:
    """Where its copy is. What was written last may still be in the files beside it."""
    target = overlay.write(database, own=True)
    if target is not database:
        for ending in ("-wal", "-shm", "-journal"):
            beside = os.fsdecode(database) + ending
            if os.path.exists(overlay.read(beside)):
                overlay.write(beside, own=True)
    return target


_CHANGES = {f"os.{name}" for name in ("mkdir", "remove", "rename", "rmdir", "truncate", "link", "symlink", "chmod")}
_CHANGES |= {f"os.{name}" for name in ("chown", "utime", "setxattr", "removexattr")} | {"sqlite3.connect"}


def _refuse(overlay: Overlay, event: str, arguments: tuple[Any, ...]) -> None:
    """An audit hook: Python calls it before it opens or changes a file. Refuses writes that were not redirected."""
    follow = False
    if event == "open":
        paths, flags = arguments[:1], arguments[2]
        if not isinstance(flags, int) or not flags & (os.O_WRONLY | os.O_RDWR | os.O_CREAT | os.O_TRUNC):
            return
        follow = not flags & os.O_EXCL
    elif event in _CHANGES:
        paths = _changed_paths(event, arguments)
    else:
        return
    if overlay.guard.on:
        return
    with overlay.unguarded():
        for path in paths:
            real = None if isinstance(path, int) or path == ":memory:" else overlay.locate(path, follow)
            if real is not None and not _is_redirected(overlay, path, follow) and not overlay.direct(real):
                raise _refusal(real)


def _changed_paths(event: str, arguments: tuple[Any, ...]) -> tuple[Any, ...]:
    """Of a move both: what lies at its target is lost. Of a hard link both: whoever writes to it writes to the file."""
    if event in ("os.rename", "os.link"):
        return arguments[:2]
    return arguments[1:2] if event == "os.symlink" else arguments[:1]


def _is_redirected(overlay: Overlay, path: Any, follow: bool) -> bool:
    """Whether the call goes into the copy, and through none of its links to a real file."""
    text = os.fsdecode(path)
    place = os.path.realpath(text if follow else os.path.dirname(text))
    return text.startswith(overlay.files) and place.startswith(overlay.directory)


def _refusal(path: str) -> OSError:
    return PermissionError(errno.EACCES, "flatout lets a trial write none of the user's files, and refused this", path)


PROBE = Probe("shield", tensorflow=on_tensorflow)
