"""The user's files as a trial sees them: writes go to copies, and the real files are never touched.

The first write into a real directory gives it a copy under `<directory>/files`: a directory of links to the real
entries. From then on everything under it is looked up there, by Python and by TensorFlow's C++ alike: one prefix
instead of a merged view. A new file is a file there, a deleted one a missing link, a changed one a copy in place of its
link. Real files that appear later are still visible to Python, unless the trial had deleted them.
"""

from __future__ import annotations

import contextlib
import fcntl
import json
import os
import shutil
import stat
import sys
import threading
from collections.abc import Callable, Iterator, Sequence
from typing import Any

MOST_LINKS = 40
"""That are followed in one path, as in Linux."""


class Guard(threading.local):
    """Set while the overlay itself works with files: its calls are not to be redirected."""

    on = False


class Unguarded:
    """Inside, calls reach the real files. A class of its own, as each file that the program opens passes through it."""

    __slots__ = ("_before", "_guard")

    def __init__(self, guard: Guard) -> None:
        self._guard = guard

    def __enter__(self) -> None:
        self._before, self._guard.on = self._guard.on, True

    def __exit__(self, *error: object) -> None:
        self._guard.on = self._before


class Log:
    """A file with the changes of sets of paths. Each process of the trial begins with what it says, and those that
    the program forks follow each other by it."""

    def __init__(self, path: str) -> None:
        self.path = path
        self.sets: dict[str, Kept] = {}
        self.changed: Callable[[], None] = lambda: None
        """Called after each change of a set."""
        self._read_to = 0

    def write(self, name: str, sign: str, path: object) -> None:
        with contextlib.suppress(OSError), open(self.path, "a", encoding="ascii") as stream:
            stream.write(json.dumps([name, sign, path]) + "\n")

    def catch_up(self) -> bool:
        """Take over what was written since the last time, by this process too. Whether there was anything."""
        with contextlib.suppress(OSError):
            if os.stat(self.path).st_size == self._read_to:
                return False
            with open(self.path, "rb") as stream:
                stream.seek(self._read_to)
                text = stream.read()
            text = text[: text.rfind(b"\n") + 1]  # another process may be in the middle of a line
            self._read_to += len(text)
            last = {(name, path): sign for name, sign, path in map(json.loads, text.splitlines())}
            for (name, path), sign in last.items():
                self.sets[name].take(sign, path)
            return True
        return False


class Kept(set[str]):
    """A set of paths whose changes are written down."""

    def __init__(self, name: str, log: Log) -> None:
        super().__init__()
        self._name, self._log = name, log
        log.sets[name] = self

    def add(self, path: str) -> None:
        if path not in self:
            super().add(path)
            self._log.changed()
            self._log.write(self._name, "+", path)

    def discard(self, path: object) -> None:
        if path in self:
            super().discard(path)
            self._log.changed()
            self._log.write(self._name, "-", path)

    def take(self, sign: str, path: str) -> None:
        """A change that is written down already."""
        if sign == "+":
            super().add(path)
        else:
            super().discard(path)
        self._log.changed()


class Overlay:
    def __init__(self, directory: str, also: Sequence[str] = (), moves: bool = True) -> None:
        """`also` names more directories that are written directly. `moves`: whether the kernel lets a file move from
        one directory to another."""
        self.guard = Guard()
        self.lock = threading.RLock()
        self.directory = os.path.realpath(directory)
        self.files = os.path.join(self.directory, "files")
        self.moves = moves
        self.log = log = Log(os.path.join(self.directory, "overlay.jsonl"))
        self.roots: Kept = Kept("root", log)
        """Topmost real directories, with a slash at the end, whose copy is looked up in their place."""
        self.deleted: Kept = Kept("deleted", log)
        self.symlinks: Kept = Kept("symlink", log)
        """Links that the program itself made; all others in the copy stand for real entries."""
        self.parents: dict[str, str] = {}
        """Directories without their links, as long as no link has changed."""
        log.changed = self.parents.clear
        self.untouched: set[str] = set()
        """Directories whose entries are all real, until the next write: reading from them is to cost little."""
        self.rules = _rules(self.directory, also)
        self.shared = False
        """Whether the program has forked: its processes write to the same copy."""
        self._alone = 0
        log.catch_up()
        os.register_at_fork(after_in_parent=self._share, after_in_child=self._forked)

    def _share(self) -> None:
        self.shared = True

    def _forked(self) -> None:
        """In a forked child: wait for no lock that a thread of the parent held."""
        self.lock = threading.RLock()
        self.shared = True
        self._alone = 0

    @contextlib.contextmanager
    def alone(self) -> Iterator[None]:
        """Inside, no other thread changes the copy, and no other process of the program."""
        with self.lock:
            if not self.shared or self._alone:
                yield
                return
            handle = os.open(self.log.path + ".lock", os.O_WRONLY | os.O_CREAT | os.O_CLOEXEC, 0o600)
            try:
                with contextlib.suppress(OSError):  # a file system without locks
                    fcntl.lockf(handle, fcntl.LOCK_EX)  # it is the process's own: no child inherits it
                self._alone += 1
                self._catch_up()
                yield
            finally:
                self._alone = 0
                os.close(handle)

    def _catch_up(self) -> None:
        """Know what the other processes have written."""
        with self.lock:
            if self.log.catch_up():
                self.untouched.clear()

    def unguarded(self) -> Unguarded:
        return Unguarded(self.guard)

    # paths

    def locate(self, path: Any, follow: bool = True) -> str | None:
        """The absolute real path, free of links; None for what is no local path."""
        text = path_text(path)
        if text is None:
            return None
        if not text.startswith("/"):
            text = os.path.join(os.getcwd(), text)
        text = self.shown(text)
        text = text.rstrip("/") or "/"
        directory, name = os.path.split(text)
        if name in ("", ".", ".."):
            return self._real(text)
        parent = self.parents.get(directory)
        if parent is None:
            if len(self.parents) > 10_000:
                self.parents.clear()
            parent = self.parents[directory] = self._real(directory)
        found = os.path.join(parent, name)
        return self._real(found) if follow and self._link_at(found) is not None else found

    def _real(self, path: str) -> str:
        """Free of links, as the program has left them: its own ones count, and those that it has deleted do not."""
        if not self.roots:
            return os.path.realpath(path)
        found, waiting, followed = "", path.split("/")[::-1], 0
        while waiting:
            name = waiting.pop()
            if name == "..":
                found = os.path.dirname(found).rstrip("/")
            if name in ("", ".", ".."):
                continue
            step = f"{found}/{name}"
            link = self._link_at(step) if followed < MOST_LINKS else None
            if link is None:
                found = step
                continue
            followed += 1
            waiting += self.shown(link).split("/")[::-1]
            found = "" if link.startswith("/") else found
        return found or "/"

    def _link_at(self, path: str) -> str | None:
        """Where the link leads that the program sees under this name; None where it sees none."""
        target = self.files + path
        with contextlib.suppress(OSError):
            if target in self.symlinks:
                return os.readlink(target)
            if self.roots and self.covered(path):
                own = os.path.lexists(target) and not self.links_out(target)
                if own or self.hidden(path):
                    return None
            return os.readlink(path)
        return None

    def _as_given(self, path: Any, real: str, follow: bool) -> Any:
        """What the program calls `path` where that leads to `real` by itself, and not by links of the program alone."""
        if not self.symlinks:
            return path
        text = os.path.join(os.getcwd(), self.shown(os.fsdecode(path_text(path) or path))).rstrip("/") or "/"
        directory, name = os.path.split(text)
        plain = os.path.realpath(text) if follow else os.path.join(os.path.realpath(directory), name)
        return path if plain == real else _alike(path, real)

    def direct(self, real: str) -> bool:
        """Whether a trial writes there as it is; the longest rule decides."""
        for prefix, decision in self.rules:
            if real.startswith(prefix) or real == prefix[:-1]:
                return decision
        return False

    def shown(self, path: str) -> str:
        """The name by which the program knows a file of the copy."""
        if path.startswith(self.files) and path[len(self.files) : len(self.files) + 1] in ("", "/"):
            return path[len(self.files) :] or "/"
        return path

    def covered(self, real: str) -> bool:
        roots = tuple(self.roots)  # another thread may add one meanwhile
        return any(real.startswith(root) or real == root[:-1] for root in roots)

    def links_out(self, target: str) -> bool:
        """Whether an entry of the copy only stands for a real one."""
        return os.path.islink(target) and target not in self.symlinks

    # reading

    def read(self, path: Any, follow: bool = True) -> Any:
        """Where to read what the program calls `path`."""
        if self.shared and not self._alone:
            self._catch_up()
        if not self.roots:
            return path
        real = self.locate(path, follow)
        if real is None:
            return path
        parent = real.rpartition("/")[0] or "/"
        if parent in self.untouched or self.direct(real) or not self.covered(real):
            return self._as_given(path, real, follow)
        with self.lock:
            if real + "/" not in self.roots and os.path.realpath(self.files + parent) == parent:
                self.untouched.add(parent)
                return self._as_given(path, real, follow)
        target = self.files + real
        if os.path.lexists(target):
            return _alike(path, real if self.links_out(target) and os.readlink(target) == real else target)
        if not self.hidden(real) and os.path.lexists(real):
            return _alike(path, real)
        return _alike(path, target)

    def hidden(self, real: str) -> bool:
        """Whether the program has deleted it, or a directory above it."""
        while self.deleted and real != "/":
            if real in self.deleted:
                return True
            real = os.path.dirname(real)
        return False

    def written(self) -> frozenset[tuple[object, ...]]:
        """What the trial has written, made and deleted so far, temporary files among it. What only stands for a real
        file or directory is nothing written."""
        found: set[tuple[object, ...]] = {("deleted", path) for path in self.deleted}
        with self.unguarded():
            for top in filter(None, (self.files, os.environ.get("TMPDIR"))):
                for folder, folders, files in os.walk(top):
                    for path in (os.path.join(folder, name) for name in (*folders, *files)):
                        stands_for = path.startswith(self.files) and os.path.isdir(self.shown(path))
                        if self.links_out(path) or (stands_for and os.path.isdir(path)):
                            continue
                        with contextlib.suppress(OSError):
                            seen = os.lstat(path)
                            found.add(
                                (path, seen.st_mode, 0 if os.path.isdir(path) else seen.st_mtime_ns, seen.st_size)
                            )
        return frozenset(found)

    # writing

    def write(self, path: Any, follow: bool = True, keep: bool = False, own: bool = False, tree: bool = False) -> Any:
        """Where to write what the program calls `path`.

        Its link to a real file is taken away, for a new file to stand there, or left with `keep`, for a call that fails
        where something exists. With `own` the content is copied there first. With `tree` directories above it may be
        missing.
        """
        real = self.locate(path, follow)
        if real is None:
            return path
        if self.direct(real):
            return self._as_given(path, real, follow)
        with self.alone():
            self.untouched.clear()
            parent = os.path.dirname(real)
            while tree and parent != "/" and not os.path.isdir(self.read(parent)):
                parent = os.path.dirname(parent)
            self.enter(parent)
            target = self.files + real
            if target in self.symlinks and follow:
                return self.write(os.path.join(parent, os.readlink(target)), follow, keep, own)
            if own and not os.path.lexists(target) and not self.hidden(real) and os.path.lexists(real):
                os.symlink(real, target)
            if self.links_out(target):
                if own:
                    self.copy(target)
                elif not keep and not os.path.isdir(target):
                    os.unlink(target)
            return _alike(path, target)

    def enter(self, directory: str) -> None:
        """Make the copy of a directory, so that something can be created or deleted in it."""
        if not self.covered(directory):
            if os.path.isdir(directory):
                self.add_root(directory)
            return
        if f"{directory}/" not in self.roots:
            self.enter(os.path.dirname(directory))
        target = self.files + directory
        if target in self.symlinks:
            self.enter(self.shown(os.path.realpath(target)))
        elif self.links_out(target):
            self.copy(target)
        elif not os.path.lexists(target) and not self.hidden(directory) and os.path.isdir(directory):
            self.farm(directory, target)

    def add_root(self, directory: str) -> None:
        prefix = directory.rstrip("/") + "/"
        self.farm(directory, self.files + directory)
        for root in [root for root in self.roots if root.startswith(prefix)]:
            between = os.path.dirname(root[:-1])
            while between.startswith(prefix):
                self.farm(between, self.files + between)
                between = os.path.dirname(between)
            self.roots.discard(root)
        self.roots.add(prefix)

    def farm(self, directory: str, target: str) -> None:
        """A directory of links to the real entries, but for those that are there already."""
        os.makedirs(target, exist_ok=True)
        for name in os.listdir(directory):
            entry = os.path.join(target, name)
            if not os.path.lexists(entry) and os.path.join(directory, name) not in self.deleted:
                os.symlink(os.path.join(directory, name), entry)

    def copy(self, target: str) -> None:
        """In place of its link, the thing itself."""
        source = os.readlink(target)
        os.unlink(target)
        if os.path.islink(source):
            os.symlink(os.readlink(source), target)
            self.symlinks.add(target)
        elif os.path.isdir(source):
            self.farm(source, target)
        elif os.path.exists(source):
            shutil.copy2(source, target)
            os.chmod(target, os.stat(target).st_mode | stat.S_IRUSR | stat.S_IWUSR)

    def delete(self, path: Any) -> tuple[str, str] | None:
        """Ready an entry for its deletion: (where it lies in the copy, its real path); None where it lies elsewhere."""
        target = self.write(path, follow=False, keep=True)
        if target is path:
            return None
        target = os.fsdecode(target)
        real = self.shown(target)
        if not os.path.lexists(target) and not self.hidden(real) and os.path.lexists(real):
            os.symlink(real, target)
        return target, real


def _alike(path: Any, found: str) -> Any:
    """As text or as bytes, as the program asked: what a call returns may depend on it."""
    return os.fsencode(found) if isinstance(path, bytes) else found


def path_text(path: Any) -> str | None:
    if isinstance(path, int) or path is None:
        return None
    try:
        text = os.fsdecode(path)
    except TypeError:
        return None
    if text.startswith("file://"):
        return text[len("file://") :]
    return None if not text or "://" in text or "\0" in text else text


def _rules(directory: str, also: Sequence[str]) -> list[tuple[str, bool]]:
    """(prefix, written directly?), the longest first. Where the program lies in a temporary directory, it is still
    the user's."""
    direct = [directory, *also, "/dev", "/proc", os.environ.get("TMPDIR") or "/tmp"]
    programs = [os.path.dirname(os.path.abspath(word)) for word in sys.orig_argv[1:] if os.path.isfile(word)]
    rules = {os.path.realpath(path): False for path in [os.getcwd(), *programs]}
    rules.pop("/tmp", None)
    rules.update((os.path.realpath(path), True) for path in direct)
    return sorted(((path.rstrip("/") + "/", decision) for path, decision in rules.items()), key=lambda r: -len(r[0]))
