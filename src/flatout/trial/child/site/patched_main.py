"""Runs a program with changed sources, without touching its files: `python patched_main.py SOURCES PROGRAM ARGS…`.

SOURCES is a JSON object: the absolute path of a file → a file that holds the text to run in its place. Everything else
is as `python PROGRAM ARGS…` (or `python -m MODULE ARGS…`) would have it: `sys.argv`, `sys.path`, `__main__`,
`__file__`, tracebacks. Nothing compiled is read or written for a changed file. It imports nothing of flatout, which may
live in another environment than the program.
"""

import builtins
import importlib.machinery
import importlib.util
import io
import json
import linecache
import os
import sys
from collections.abc import Iterable, Mapping
from types import CodeType, TracebackType
from typing import Any

_changed: dict[str, str] = {}


def install(sources: Mapping[str, str]) -> None:
    """From now on imports run the changed texts."""
    _changed.update({os.path.realpath(path): text for path, text in sources.items()})
    for path in {*sources, *map(os.path.realpath, sources)}:
        _show(path)
    loader: Any = importlib.machinery.SourceFileLoader
    if getattr(loader.get_code, "of_flatout", False):
        return
    original = loader.get_code

    def get_code(self: Any, fullname: str) -> CodeType | None:
        path = self.get_filename(fullname)
        changed = _text_for(path)
        if changed is None:
            return original(self, fullname)  # type: ignore[no-any-return]
        _show(path)
        return self.source_to_code(changed, path)  # type: ignore[no-any-return]

    get_code.of_flatout = True  # type: ignore[attr-defined]
    loader.get_code = get_code
    _keep_shown()


def _keep_shown() -> None:
    """AutoGraph has the lines of a file read from the disk again each time, which would be those before the change."""
    original = linecache.updatecache

    def updatecache(filename: str, module_globals: dict[str, Any] | None = None) -> list[str]:
        if os.path.realpath(filename) not in _changed:
            return original(filename, module_globals)
        return _show(filename)

    linecache.updatecache = updatecache


def _text_for(path: str) -> bytes | None:
    changed = _changed.get(os.path.realpath(path))
    if changed is None:
        return None
    with open(changed, "rb") as stream:
        return stream.read()


def _show(path: str) -> list[str]:
    """Let whoever asks for the source of a function see the text that runs; AutoGraph does, to trace it."""
    text = importlib.util.decode_source(_text_for(path) or b"")
    # Without a time the entry is never compared with the file on disk.
    lines = io.StringIO(text).readlines()
    linecache.cache[path] = (len(text), None, lines, path)
    return lines


def run(arguments: list[str], namespace: dict[str, Any]) -> None:
    """Run `PROGRAM ARGS…` or `-m MODULE ARGS…` in the namespace of `__main__`."""
    look_beside(arguments[0])
    sys.excepthook = _without_these_frames
    if arguments[0] == "-m":
        sys.argv[:] = ["-m", *arguments[2:]]
        _clear(namespace)
        import runpy

        runpy._run_module_as_main(arguments[1])  # type: ignore[attr-defined]  # as the interpreter itself does for -m
        return
    program = os.path.join(os.getcwd(), arguments[0])  # `./train.py` stays `/here/./train.py`, as Python has it
    sys.argv[:] = arguments
    text = _text_for(program)
    if text is None:
        with open(program, "rb") as stream:
            text = stream.read()
    else:
        _show(program)
    codes = _codes(text, program, namespace)
    _clear(namespace)
    namespace.update(__file__=program, __loader__=importlib.machinery.SourceFileLoader("__main__", program))
    for code in codes:
        exec(code, namespace)


def _codes(text: bytes, program: str, namespace: dict[str, Any]) -> Iterable[CodeType]:
    """One, or several where a trial keeps cells of a notebook: then the module for that was imported before."""
    cells: Any = sys.modules.get("flatout.trial.child.kept.cells")
    if cells is None:
        return [compile(text, program, "exec", dont_inherit=True)]
    return cells.codes(text, program, namespace)  # type: ignore[no-any-return]


def look_beside(program: str) -> None:
    """Import from where the interpreter would have imported for this program (`-m` for a module)."""
    if not getattr(sys.flags, "safe_path", False) and not sys.flags.isolated and sys.path:
        sys.path[0] = os.getcwd() if program == "-m" else os.path.dirname(os.path.realpath(program))


def _clear(namespace: dict[str, Any]) -> None:
    """As the interpreter leaves `__main__` before it runs a program."""
    namespace.clear()
    namespace.update(
        __name__="__main__",
        __doc__=None,
        __package__=None,
        __loader__=None,
        __spec__=None,
        __annotations__={},
        __builtins__=builtins,
        __cached__=None,
    )


def _without_these_frames(kind: type[BaseException], error: BaseException, trace: TracebackType | None) -> None:
    """A traceback begins with the program's own first line."""
    here = os.path.dirname(__file__)
    while trace is not None and trace.tb_next is not None:
        if os.path.dirname(trace.tb_frame.f_code.co_filename) != here:
            break
        trace = trace.tb_next
    sys.__excepthook__(kind, error.with_traceback(trace), trace)


def _start(namespace: dict[str, Any]) -> None:
    """`__main__` is cleared for the program, so this file is loaded a second time, under a name of its own."""
    specification = importlib.util.spec_from_file_location("flatout_patched_main", namespace["__file__"])
    if specification is None or specification.loader is None:
        raise SystemExit(f"{namespace['__file__']} cannot be loaded")
    module = importlib.util.module_from_spec(specification)
    specification.loader.exec_module(module)
    sources, *arguments = sys.argv[1:]
    module.install(json.loads(sources))
    module.run(arguments, namespace)


if __name__ == "__main__":
    _start(globals())
