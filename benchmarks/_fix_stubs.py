"""Runs one public program with stubs: small data, no windows, and stand-ins for packages that are not installed."""

from __future__ import annotations

import builtins
import contextlib
import importlib.abc
import importlib.machinery
import io
import json
import os
import random
import signal
import sys
import types
from collections.abc import Sequence
from pathlib import Path
from typing import Any
from unittest import mock


class _Missing(importlib.abc.MetaPathFinder, importlib.abc.Loader):
    """Stands in for packages that are not installed."""

    def find_spec(self, name: str, path: Sequence[str] | None, target: Any = None) -> importlib.machinery.ModuleSpec:
        return importlib.machinery.ModuleSpec(name, self, is_package=True)

    def create_module(self, spec: importlib.machinery.ModuleSpec) -> types.ModuleType:
        module: Any = mock.MagicMock(name=spec.name)
        module.__spec__, module.__path__, module.__name__, module.__all__ = spec, [], spec.name, []
        return module  # type: ignore[no-any-return]

    def exec_module(self, module: types.ModuleType) -> None:
        pass


class _TooLong(BaseException):
    pass


def run_program(text: str, path: str, folder: str, result: str, seconds: int, edited: frozenset[int]) -> None:
    outcome: dict[str, Any] = {"reached": False, "error": "", "lines": []}
    out = io.StringIO()
    name = os.path.abspath(path)
    code = compile(text, name, "exec", dont_inherit=True)
    _prepare(name, folder)
    signal.signal(signal.SIGALRM, _stop)
    signal.alarm(seconds)

    def trace(frame: types.FrameType, event: str, given: Any) -> Any:
        if frame.f_code.co_filename != name:
            return None
        if frame.f_lineno in edited:
            outcome["reached"] = True
        return trace

    main = types.ModuleType("__main__")
    main.__file__ = name
    sys.modules["__main__"] = main
    with contextlib.redirect_stdout(out), contextlib.redirect_stderr(io.StringIO()):
        if edited:
            sys.settrace(trace)
        try:
            exec(code, main.__dict__)
        except _TooLong:
            outcome["error"] = "timeout"
        except SystemExit:
            outcome["error"] = "exit"
        except BaseException as error:  # whatever a public program raises
            outcome["error"] = f"{type(error).__name__}: {str(error).splitlines()[0] if str(error) else ''}"[:200]
        finally:
            sys.settrace(None)
            signal.alarm(0)
    from check_fixes import normalized

    outcome["error"] = " ".join(normalized(outcome["error"]))
    outcome["lines"] = normalized(out.getvalue())[:400]
    Path(result).write_text(json.dumps(outcome))
    os._exit(0)


def _stop(number: int, frame: types.FrameType | None) -> None:
    raise _TooLong


def _prepare(name: str, folder: str) -> None:
    import numpy as np
    import tensorflow as tf

    os.chdir(folder)
    os.environ["MPLBACKEND"] = "Agg"
    sys.argv = [name]
    sys.path[:0] = [os.path.dirname(name), *_roots(name)]
    sys.meta_path.append(_Missing())
    random.seed(0)
    np.random.seed(0)
    tf.random.set_seed(0)
    builtins.input = lambda prompt="": ""
    datasets = tf.keras.datasets
    for module, shape, classes in (
        (datasets.mnist, (28, 28), 10),
        (datasets.fashion_mnist, (28, 28), 10),
        (datasets.cifar10, (32, 32, 3), 10),
        (datasets.cifar100, (32, 32, 3), 100),
    ):
        module.load_data = lambda *_, shape=shape, classes=classes, **__: _images(shape, classes)
    datasets.imdb.load_data = lambda *_, **__: _words()
    datasets.boston_housing = mock.MagicMock(load_data=lambda *_, **__: _numbers())


def _roots(name: str) -> list[str]:
    """The folders above a program, for what it imports of its own project."""
    parents = [str(parent) for parent in Path(name).parents]
    return parents[1:4]


def _images(shape: tuple[int, ...], classes: int) -> Any:
    import numpy as np

    draw = np.random.default_rng(0)
    labels = (1,) if len(shape) == 3 else ()
    return tuple(
        (
            draw.integers(0, 255, (count, *shape), dtype=np.uint8),
            draw.integers(0, classes, (count, *labels), dtype=np.uint8),
        )
        for count in (512, 128)
    )


def _words() -> Any:
    import numpy as np

    draw = np.random.default_rng(0)
    rows = [np.array([list(draw.integers(1, 200, 20)) for _ in range(count)], dtype=object) for count in (256, 64)]
    return tuple((row, draw.integers(0, 2, len(row))) for row in rows)


def _numbers() -> Any:
    import numpy as np

    draw = np.random.default_rng(0)
    return tuple((draw.normal(size=(count, 13)), draw.normal(size=count)) for count in (256, 64))
