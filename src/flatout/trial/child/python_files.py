"""Redirects Python's own file functions to the overlay: `open` and the functions of `os` below everything else.

pathlib, shutil, glob, zipfile, numpy, logging and the rest end here. Only the path changes; the call itself, its
errors and its results are Python's.
"""

from __future__ import annotations

import contextlib
import errno
import functools
import io
import os
import shutil
import stat
import sys
from collections.abc import Callable, Iterator
from types import ModuleType
from typing import Any

from flatout.trial.child.overlay import Overlay

_WRITE_FLAGS = os.O_WRONLY | os.O_RDWR | os.O_CREAT | os.O_TRUNC | os.O_APPEND

READS = ("stat", "listdir", "getxattr", "listxattr", "statvfs", "pathconf", "chdir")
CHANGES = ("chmod", "chown", "truncate", "utime", "setxattr", "removexattr")
MAKES = ("mkdir", "mkfifo", "mknod")
_KEPT_PLAIN = ("posix", "_io", "flatout.trial.child.overlay")


def install(overlay: Overlay) -> None:
    wrappers: dict[Any, Any] = {}

    def redirect(name: str, change: Callable[[Any, dict[str, Any]], Any], holder: Any = os) -> None:
        """Wrap a function whose first argument is a path: `change(path, keywords)` is the path to use."""
        original = getattr(holder, name, None)
        if original is None:
            return

        @functools.wraps(original)
        def call(path: Any = ".", *args: Any, **keywords: Any) -> Any:
            if overlay.guard.on or isinstance(path, int):
                return original(path, *args, **keywords)
            if path is None and name == "listdir":
                path = "."
            with overlay.unguarded():
                path = _beside(overlay, path, keywords, "dir_fd")
                path = change(path, keywords)
            return original(path, *args, **keywords)

        wrappers[original] = call

    def follows(keywords: dict[str, Any]) -> bool:
        return bool(keywords.get("follow_symlinks", True))

    for name in READS:
        redirect(name, lambda path, keywords: overlay.read(path, follows(keywords)))
    for name in CHANGES:
        redirect(name, lambda path, keywords: overlay.write(path, follows(keywords), own=True))
        if hasattr(os, name):
            wrappers[getattr(os, name)] = _changing(overlay, getattr(os, name), wrappers[getattr(os, name)])
    for name, by_name in (("fchmod", "chmod"), ("fchown", "chown")):
        wrappers[getattr(os, name)] = _changing(overlay, getattr(os, name), wrappers[getattr(os, by_name)])
    for name in MAKES:
        redirect(name, lambda path, keywords: overlay.write(path, keep=True))
    for name in ("lstat", "readlink"):
        redirect(name, lambda path, keywords: overlay.read(path, follow=False))
    for name in ("lchown", "lchmod"):
        redirect(name, lambda path, keywords: overlay.write(path, follow=False, own=True))
    redirect("open_code", lambda path, keywords: overlay.read(path), io)
    wrappers.update(_opening(overlay))
    wrappers.update(_deleting(overlay))
    wrappers.update(_moving(overlay))
    wrappers.update(_looking_around(overlay))
    replace_everywhere(wrappers)


def replace_everywhere(wrappers: dict[Any, Any]) -> None:
    """Put wrappers in place of what they wrap in every module, as some take functions over by name at import. Classes
    of pathlib and glob do so in some versions of Python, and those of tempfile keep them as defaults of arguments."""
    for able in (os.supports_dir_fd, os.supports_fd, os.supports_follow_symlinks, os.supports_effective_ids):
        able.update([wrapper for original, wrapper in wrappers.items() if original in able])
    by_identity = {id(original): wrapper for original, wrapper in wrappers.items()}
    for name, module in list(sys.modules.items()):
        if name in _KEPT_PLAIN or not isinstance(module, ModuleType):
            continue
        _replace_in_module(module, by_identity)
        if name.partition(".")[0] in ("pathlib", "glob", "tempfile"):
            for value in list(vars(module).values()):
                if isinstance(value, type):
                    _replace_in_class(value, by_identity)


def _replace_in_module(module: ModuleType, wrappers: dict[int, Any]) -> None:
    """Thousands of modules with a hundred names each: little is done for a name."""
    for attribute in [name for name, value in list(vars(module).items()) if id(value) in wrappers]:
        with contextlib.suppress(AttributeError, TypeError):
            setattr(module, attribute, wrappers[id(vars(module)[attribute])])


def _replace_in_class(holder: type, wrappers: dict[int, Any]) -> None:
    for attribute, value in list(vars(holder).items()):
        found = value.__func__ if isinstance(value, staticmethod) else value
        defaults = getattr(found, "__defaults__", None)
        if defaults:
            found.__defaults__ = tuple(wrappers.get(id(one), one) for one in defaults)
        wrapper = wrappers.get(id(found))
        if wrapper is not None:
            with contextlib.suppress(AttributeError, TypeError):
                setattr(holder, attribute, staticmethod(wrapper))


def _beside(overlay: Overlay, path: Any, keywords: dict[str, Any], key: str) -> Any:
    """A path relative to an open directory becomes an absolute one."""
    descriptor = keywords.get(key)
    if descriptor is None:
        return path
    del keywords[key]
    base = overlay.shown(os.readlink(f"/proc/self/fd/{descriptor}"))
    return os.path.join(base, os.fsdecode(path))


def _changing(overlay: Overlay, original: Any, by_name: Any) -> Any:
    """A descriptor that is open for reading is one of the real file, and would be enough to change its mode or times:
    its copy is changed instead."""

    @functools.wraps(original)
    def change(path: Any, *args: Any, **keywords: Any) -> Any:
        if original.__name__ in ("fchmod", "fchown") and hasattr(path, "fileno"):
            path = path.fileno()
        if overlay.guard.on or not isinstance(path, int):
            return by_name(path, *args, **keywords)
        with overlay.unguarded():
            name = _name_of(path)
            users = name is not None and overlay.shown(name) == name and not overlay.direct(name)
        return by_name(name, *args, **keywords) if users else original(path, *args, **keywords)

    return change


def _name_of(descriptor: int) -> str | None:
    """Of the file that it is open on; None where that has no name, or no longer."""
    try:
        name = os.readlink(f"/proc/self/fd/{descriptor}")
        return name if os.path.samestat(os.stat(name), os.fstat(descriptor)) else None
    except OSError:
        return None


def _opening(overlay: Overlay) -> dict[Any, Any]:
    plain_open, plain_os_open = io.open, os.open

    @functools.wraps(plain_open)
    def open(file: Any, mode: Any = "r", *args: Any, **keywords: Any) -> Any:
        if overlay.guard.on or isinstance(file, int) or not isinstance(mode, str):
            return plain_open(file, mode, *args, **keywords)
        opener = args[5] if len(args) > 5 else keywords.pop("opener", None)
        if opener is not None:
            keywords["opener"] = _redirected_opener(overlay, opener)
            with overlay.unguarded():
                return plain_open(file, mode, *args[:5], **keywords)
        with overlay.unguarded():
            target = overlay.read(file) if set("wax+").isdisjoint(mode) else overlay.write(file, **how(mode))
        stream = plain_open(target, mode, *args, **keywords)
        if target is not file:
            raw: Any = getattr(stream, "buffer", stream)
            with contextlib.suppress(AttributeError):
                getattr(raw, "raw", raw).name = file  # the program asks for the name that it gave
        return stream

    @functools.wraps(plain_os_open)
    def os_open(path: Any, flags: int, mode: int = 0o777, *, dir_fd: int | None = None) -> int:
        if overlay.guard.on:
            return plain_os_open(path, flags, mode, dir_fd=dir_fd)
        with overlay.unguarded():
            path = _beside(overlay, path, {"dir_fd": dir_fd}, "dir_fd")
            if not flags & _WRITE_FLAGS or flags & getattr(os, "O_TMPFILE", 0) == getattr(os, "O_TMPFILE", -1):
                path = overlay.read(path)
            else:
                exclusive = bool(flags & os.O_EXCL)
                path = overlay.write(path, keep=exclusive, own=not exclusive and not flags & os.O_TRUNC)
        return plain_os_open(path, flags, mode)

    return {plain_open: open, plain_os_open: os_open}


def _redirected_opener(overlay: Overlay, opener: Callable[[Any, int], int]) -> Callable[[Any, int], int]:
    """It says itself which file is meant, by `os.open`: relative to a directory, for example."""

    def opened(path: Any, flags: int) -> int:
        before, overlay.guard.on = overlay.guard.on, False
        try:
            return opener(path, flags)
        finally:
            overlay.guard.on = before

    return opened


def how(mode: str) -> dict[str, bool]:
    """What a mode of `open` needs of the file that is there: nothing, its absence, or its content."""
    if "x" in mode or mode == "w-":
        return {"keep": True}
    return {"own": "w" not in mode}


def _deleting(overlay: Overlay) -> dict[Any, Any]:
    wrappers: dict[Any, Any] = {}

    def deletes(original: Any, ready: Callable[[str], None]) -> None:
        @functools.wraps(original)
        def delete(path: Any, *args: Any, **keywords: Any) -> Any:
            if overlay.guard.on or isinstance(path, int):
                return original(path, *args, **keywords)
            with overlay.unguarded():
                path = _beside(overlay, path, keywords, "dir_fd")
                found = overlay.delete(path)
                if found is not None:
                    target, real = found
                    ready(target)
                    path = os.fsencode(target) if isinstance(path, bytes) else target
                # Within: what lies in the copy is links, and links are what is to go.
                result = original(path, *args, **keywords)
                if found is not None and not os.path.lexists(target):
                    overlay.deleted.add(real)
                    overlay.symlinks.discard(target)
                return result

        wrappers[original] = delete

    def file(target: str) -> None:
        if overlay.links_out(target) and os.path.isdir(target) and not os.path.islink(os.readlink(target)):
            raise IsADirectoryError(errno.EISDIR, os.strerror(errno.EISDIR), overlay.shown(target))

    def directory(target: str) -> None:
        if overlay.links_out(target) and os.path.isdir(target):
            overlay.copy(target)

    deletes(os.unlink, file)
    deletes(os.remove, file)
    deletes(os.rmdir, directory)
    deletes(shutil.rmtree, directory)
    return wrappers


def _moving(overlay: Overlay) -> dict[Any, Any]:
    def moves(original: Any) -> Any:
        @functools.wraps(original)
        def move(src: Any, dst: Any, *args: Any, **keywords: Any) -> None:
            if overlay.guard.on:
                original(src, dst, *args, **keywords)
                return
            with overlay.unguarded():
                src = _beside(overlay, src, keywords, "src_dir_fd")
                dst = _beside(overlay, dst, keywords, "dst_dir_fd")
                before, after = source(overlay, src), overlay.write(dst, follow=False, keep=True)
                is_directory = os.path.isdir(before) and not os.path.islink(before)
                if is_directory and after is not dst and overlay.links_out(os.fsdecode(after)):
                    overlay.copy(os.fsdecode(after))
                try:
                    original(before, after, *args, **keywords)
                except OSError as error:
                    if overlay.moves or error.errno != errno.EXDEV:
                        raise
                    move_by_copying(before, after)
                moved(overlay, before, after)

        return move

    plain_symlink, plain_link = os.symlink, os.link

    @functools.wraps(plain_symlink)
    def symlink(src: Any, dst: Any, target_is_directory: bool = False, *, dir_fd: int | None = None) -> None:
        if overlay.guard.on:
            plain_symlink(src, dst, target_is_directory, dir_fd=dir_fd)
            return
        with overlay.unguarded():
            dst = _beside(overlay, dst, {"dir_fd": dir_fd}, "dir_fd")
            target = overlay.write(dst, follow=False, keep=True)
            plain_symlink(overlay.read(src) if os.path.isabs(src) else src, target, target_is_directory)
            if target is not dst:
                overlay.symlinks.add(os.fsdecode(target))

    @functools.wraps(plain_link)
    def link(src: Any, dst: Any, **keywords: Any) -> None:
        if overlay.guard.on:
            plain_link(src, dst, **keywords)
            return
        with overlay.unguarded():
            src = _beside(overlay, src, keywords, "src_dir_fd")
            dst = _beside(overlay, dst, keywords, "dst_dir_fd")
            before, after = overlay.write(src, own=True), overlay.write(dst, follow=False, keep=True)
            try:
                plain_link(before, after, **keywords)
            except OSError as error:
                if overlay.moves or error.errno != errno.EXDEV or os.path.lexists(after):
                    raise
                shutil.copy2(before, after)

    return {os.rename: moves(os.rename), os.replace: moves(os.replace), plain_symlink: symlink, plain_link: link}


def source(overlay: Overlay, path: Any) -> Any:
    """What is to be moved, as a thing of its own in the copy."""
    real = overlay.locate(path, follow=False)
    target = None if real is None else overlay.files + real
    if target in overlay.symlinks:
        return target
    return overlay.write(path, follow=False, own=True)


def move_by_copying(before: Any, after: Any) -> None:
    """Where the kernel lets nothing move from one directory to another (Landlock 1)."""
    if os.path.isdir(before) and not os.path.islink(before):
        if os.path.isdir(after):
            os.rmdir(after)
        shutil.copytree(before, after, symlinks=True)
        shutil.rmtree(before)
        return
    beside = os.fsdecode(after) + ".flatout-moves"
    shutil.copy2(before, beside, follow_symlinks=False)
    os.replace(beside, after)
    os.unlink(before)


def moved(overlay: Overlay, before: Any, after: Any) -> None:
    before, after = os.fsdecode(before), os.fsdecode(after)
    if overlay.shown(before) != before:
        overlay.deleted.add(overlay.shown(before))
    overlay.symlinks.discard(after)
    for link in [one for one in overlay.symlinks if one == before or one.startswith(f"{before}/")]:
        overlay.symlinks.discard(link)
        overlay.symlinks.add(after + link[len(before) :])
    overlay.parents.clear()


def _looking_around(overlay: Overlay) -> dict[Any, Any]:
    plain_scandir, plain_getcwd, plain_getcwdb, plain_access = os.scandir, os.getcwd, os.getcwdb, os.access

    @functools.wraps(plain_access)
    def access(path: Any, mode: int, **keywords: Any) -> bool:
        """A trial may write, to its copy, what the user may write; the file systems it sees may be read-only."""
        if overlay.guard.on or isinstance(path, int):
            return plain_access(path, mode, **keywords)
        with overlay.unguarded():
            path = _beside(overlay, path, keywords, "dir_fd")
            target = overlay.read(path, bool(keywords.get("follow_symlinks", True)))
            if not plain_access(target, mode & ~os.W_OK, **keywords):
                return False
            return not mode & os.W_OK or plain_access(target, mode, **keywords) or _permits_writing(target)

    @functools.wraps(plain_scandir)
    def scandir(path: Any = ".") -> Any:
        if overlay.guard.on or isinstance(path, int):
            return plain_scandir(path)
        path = "." if path is None else path
        with overlay.unguarded():
            target = overlay.read(path)
        if target is path or not os.fsdecode(target).startswith(overlay.files):
            return plain_scandir(target)
        return _Entries(overlay, path, plain_scandir(os.fsdecode(target)))

    def getcwd() -> str:
        return plain_getcwd() if overlay.guard.on else overlay.shown(plain_getcwd())

    def getcwdb() -> bytes:
        return plain_getcwdb() if overlay.guard.on else os.fsencode(overlay.shown(plain_getcwd()))

    return {plain_scandir: scandir, plain_getcwd: getcwd, plain_getcwdb: getcwdb, plain_access: access}


def _permits_writing(path: Any) -> bool:
    found = os.stat(path)
    if os.geteuid() in (0, found.st_uid):
        return os.geteuid() == 0 or bool(found.st_mode & stat.S_IWUSR)
    ours = found.st_gid in (os.getegid(), *os.getgroups())
    return bool(found.st_mode & (stat.S_IWGRP if ours else stat.S_IWOTH))


class _Entries:
    """What `scandir` returns, for a directory of the copy: links that stand for real entries are shown as those."""

    def __init__(self, overlay: Overlay, path: Any, entries: Any) -> None:
        self._overlay = overlay
        self._path = os.fspath(path)
        self._entries = entries

    def __iter__(self) -> Iterator[Any]:
        return self

    def __next__(self) -> Any:
        entry = next(self._entries)
        return _Entry(entry, self._path, self._overlay)

    def close(self) -> None:
        self._entries.close()

    def __enter__(self) -> _Entries:
        return self

    def __exit__(self, *exception: object) -> None:
        self.close()


class _Entry(os.PathLike[Any]):
    def __init__(self, entry: os.DirEntry[str], directory: Any, overlay: Overlay) -> None:
        as_bytes = isinstance(directory, bytes)
        self.name: Any = os.fsencode(entry.name) if as_bytes else entry.name
        self.path: Any = os.path.join(directory, self.name)
        self._entry = entry
        self._stands_for = entry.is_symlink() and entry.path not in overlay.symlinks
        self._overlay = overlay

    def __fspath__(self) -> Any:
        return self.path

    def __repr__(self) -> str:
        return f"<DirEntry {self.name!r}>"

    def inode(self) -> int:
        return self._entry.inode()

    def is_junction(self) -> bool:
        return False

    def is_symlink(self) -> bool:
        if self._stands_for:
            with self._overlay.unguarded():
                return os.path.islink(os.readlink(self._entry.path))
        return self._entry.is_symlink()

    def is_dir(self, *, follow_symlinks: bool = True) -> bool:
        if not follow_symlinks and self._stands_for:
            return self._entry.is_dir() and not self.is_symlink()
        return self._entry.is_dir(follow_symlinks=follow_symlinks)

    def is_file(self, *, follow_symlinks: bool = True) -> bool:
        if not follow_symlinks and self._stands_for:
            return self._entry.is_file() and not self.is_symlink()
        return self._entry.is_file(follow_symlinks=follow_symlinks)

    def stat(self, *, follow_symlinks: bool = True) -> os.stat_result:
        if not follow_symlinks and self._stands_for:
            with self._overlay.unguarded():
                return os.lstat(os.readlink(self._entry.path))
        return self._entry.stat(follow_symlinks=follow_symlinks)
