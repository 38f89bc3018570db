"""Distinguishes the user's code from libraries, and finds the user's line behind a call into TensorFlow."""

from __future__ import annotations

import functools
import os
import site
import sys
import sysconfig
from types import CodeType, FrameType

Location = tuple[str, int, str]
"""(file, line, function name)"""


def _library_roots() -> tuple[str, ...]:
    roots = {sysconfig.get_paths()[name] for name in ("stdlib", "platstdlib", "purelib", "platlib")}
    roots.update(site.getsitepackages() if hasattr(site, "getsitepackages") else ())
    roots.add(site.getusersitepackages())
    roots.add(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
    roots.update(entry for entry in sys.path if _holds_installed_packages(entry))
    return tuple(os.path.realpath(root) + os.sep for root in roots if root)


def _holds_installed_packages(entry: str) -> bool:
    """Such as what `pip install --target DIR` leaves. The directory that the program is started in is never one."""
    try:
        if not entry or os.path.realpath(entry) == os.path.realpath(os.getcwd()):  # which may be gone
            return False
        return any(name.endswith(".dist-info") for name in os.listdir(entry))
    except OSError:
        return False


_LIBRARIES = _library_roots()
_MARKS = (f"{os.sep}site-packages{os.sep}", f"{os.sep}dist-packages{os.sep}")
_TENSORFLOW = (f"{os.sep}tensorflow{os.sep}python{os.sep}", f"keras{os.sep}src{os.sep}")
"""Installed anywhere, these are libraries: TensorFlow, Keras and tf_keras."""
_known: dict[CodeType, bool] = {}
_own_packages: list[str] = []


def treat_as_users(module: str) -> None:
    """A package that is run with `-m` counts as the user's, even in site-packages."""
    _own_packages.extend(f"{mark}{module.split('.')[0]}{end}" for mark in _MARKS for end in (os.sep, ".py"))


def is_users_file(filename: str) -> bool:
    if filename.startswith("<") or "__autograph_generated_file" in filename:
        return False
    try:
        path = _real_path(filename)
    except (OSError, ValueError):  # `compile(text, name)` takes any name, even one that no file can have
        return False
    if any(own in path for own in _own_packages):
        return True
    return not path.startswith(_LIBRARIES) and not any(mark in path for mark in (*_MARKS, *_TENSORFLOW))


def _real_path(filename: str) -> str:
    """As `os.path.realpath`, which asks for each part of a path: a program has imported thousands of files."""
    if not os.path.isabs(filename) or "\0" in filename:
        return os.path.realpath(filename)
    directory, name = os.path.split(filename)
    path = os.path.join(_real_directory(directory), name)
    return os.path.realpath(path) if name in ("", os.curdir, os.pardir) or os.path.islink(path) else path


@functools.lru_cache(maxsize=4096)
def _real_directory(directory: str) -> str:
    return os.path.realpath(directory)


def is_users(code: CodeType) -> bool:
    known = _known.get(code)
    if known is None:
        if len(_known) > 50_000:
            _known.clear()
        known = _known[code] = is_users_file(code.co_filename)
    return known


def innermost(frame: FrameType | None, limit: int = 200) -> FrameType | None:
    """The nearest frame of the user's code at or above `frame`."""
    while frame is not None and limit:
        code = frame.f_code
        known = _known.get(code)
        if known or (known is None and is_users(code)):
            return frame
        frame = frame.f_back
        limit -= 1
    return None


def location(frame: FrameType | None) -> Location | None:
    found = innermost(frame)
    if found is None:
        return None
    return (absolute(found.f_code.co_filename), found.f_lineno, found.f_code.co_name)


def here(depth: int = 1) -> Location | None:
    """The user's line that led to the caller of this function's caller."""
    return location(sys._getframe(depth + 1))


def stack(frame: FrameType | None, limit: int = 12) -> list[list[object]]:
    """The user's frames, innermost first, as [file, line, function, line of the def]."""
    found: list[list[object]] = []
    while frame is not None and len(found) < limit:
        code = frame.f_code
        if is_users(code):
            found.append([absolute(code.co_filename), frame.f_lineno, code.co_name, code.co_firstlineno])
        frame = frame.f_back
    return found


_start_directory = os.getcwd()


def absolute(filename: str) -> str:
    """Relative to the directory in which the program was started, even if it has changed directory since."""
    return os.path.normpath(os.path.join(_start_directory, filename))
