"""Puts the probes into the program right after it has imported TensorFlow or Keras, and ends the recording."""

from __future__ import annotations

import contextlib
import functools
import importlib.util
import os
import sys
import time
from collections.abc import Callable, Iterator
from types import ModuleType
from typing import Any

from flatout.observe.imports import ImportWatch
from flatout.observe.observer import PACKAGES, Observer, Package, Probe
from flatout.observe.private_names import keras_2_is_in
from flatout.source import users_code

READ_BY_TENSORFLOW = (
    *("TF_", "TF2_", "XLA_", "KERAS_", "AUTOGRAPH_", "GRPC_", "PROTOCOL_BUFFERS_"),
    *("OMP_", "KMP_", "MKL_", "OPENBLAS_", "ONEDNN_", "DNNL_", "CUDA_", "NVIDIA_"),
)
"""Prefixes of the variables that matter while TensorFlow is imported."""


class ProbeInstaller(ImportWatch):
    """A finder for `sys.meta_path` that installs the probes once a package was imported."""

    def __init__(self, observer: Observer) -> None:
        super().__init__(PACKAGES)
        self.observer = observer
        self.variables = _variables()

    def execute(self, fullname: str, module: ModuleType, run: Callable[[ModuleType], None]) -> None:
        began = time.perf_counter()
        now = _variables()
        if fullname == "tensorflow" and now != self.variables:
            names = {*now, *self.variables}
            changed = {name: now.get(name) for name in names if now.get(name) != self.variables.get(name)}
            self.observer.recorder.fact("variables", changed=changed)
        try:
            run(module)
        except BaseException as error:
            self.observer.recorder.fact("import-failed", package=fullname, **_describe(error))
            raise
        if self.observer.active:
            package = next(package for package in PACKAGES if package == fullname)
            self.install(package, module)
            seconds = time.perf_counter() - began
            self.observer.recorder.fact("import", package=fullname, seconds=seconds, version=version_of(module))

    def install(self, package: Package, module: ModuleType) -> None:
        try:
            install(self.observer, package, module)
        except Exception as error:  # a program may take modules out of `sys.modules`, ours among them
            if self.observer.more_probes:
                raise  # a trial: nothing would hold it back
            self.observer.recorder.fact("lost", probe=package, text=f"{type(error).__name__}: {error}")


def install_in_imported_packages(observer: Observer) -> None:
    """For packages that were imported before there was an observer."""
    for package in PACKAGES:
        module = sys.modules.get(package)
        if module is not None:
            install(observer, package, module)
            observer.recorder.fact("import", package=package, seconds=0.0, version=version_of(module))


def install(observer: Observer, package: Package, module: ModuleType) -> None:
    """Install every probe of this package. One that fails is recorded as lost and left out."""
    if "tensorflow" not in sys.modules:
        return  # Keras on another backend: there is nothing of TensorFlow to observe
    began = time.perf_counter()
    if package == "keras" and (version_of(module) or "").startswith("2."):
        package = _keras_2()
    elif package == "tf_keras":
        keras_2_is_in("tf_keras.src")
    if observer.injections is not None:
        observer.injections.install(package, module)  # first: the probes must see the changed program
    for probe in _probes(observer):
        make = probe.install_for(package)
        if make is not None:
            _guarded(observer, probe.name, functools.partial(make, observer, module))
            began = observer.spend_since(began)


def _keras_2() -> Package:
    """Beside TensorFlow 2.15 and older the package `keras` is Keras 2, the same that is called tf_keras later on."""
    keras_2_is_in("keras.src" if importlib.util.find_spec("keras.src") is not None else "keras")
    return "tf_keras"


def _probes(observer: Observer) -> Iterator[Probe]:
    from flatout.observe import probes

    for name in probes.names():
        try:
            yield probes.load(name)
        except Exception as error:
            observer.recorder.fact("lost", probe=name, text=f"{type(error).__name__}: {error}")
    yield from observer.more_probes


def _guarded(observer: Observer, name: str, make: Callable[[], None]) -> None:
    from flatout.observe.private_names import Missing

    try:
        make()
    except Missing as missing:
        observer.recorder.fact("lost", probe=name, text=str(missing))
    except Exception as error:
        observer.recorder.fact("lost", probe=name, text=f"{type(error).__name__}: {error}")


def finish(observer: Observer) -> None:
    """Write the end of the recording. Never raises: it runs at the end of the user's program."""
    if not observer.active:
        return
    began = time.perf_counter()
    try:
        error = getattr(sys, "last_value", None)
        if error is not None:
            observer.recorder.fact("exception", **_describe(error))
        if observer.forks:
            observer.note(f"the program forked {observer.forks} times; what its children did is not part of this case")
        observer.finish()
        observer.recorder.fact("end", at=time.perf_counter(), cpu=time.process_time(), began=began)
        if observer.recorder.broken:
            _print(f"the recording stopped early: {observer.recorder.broken}")
        observer.spend_since(began)
    except Exception as failure:
        _print(f"the end could not be recorded ({type(failure).__name__}: {failure})")


def version_of(module: ModuleType) -> str | None:
    """A package may be the program's own, by the same name."""
    found = _version(module)
    return found if isinstance(found, str) else None


def _version(module: ModuleType) -> object:
    return getattr(module, "__version__", None) or getattr(getattr(module, "version", None), "VERSION", None)


def _variables() -> dict[str, str]:
    return {name: value for name, value in os.environ.items() if name.startswith(READ_BY_TENSORFLOW)}


def _print(text: str) -> None:
    """To descriptor 2 itself: `sys.stderr` may be an object of the program by now, or closed."""
    with contextlib.suppress(OSError):
        os.write(2, f"flatout: {text}\n".encode("utf-8", "backslashreplace"))


def _describe(error: BaseException) -> dict[str, Any]:
    found: dict[str, Any] = {"type": type(error).__name__, "text": "", "where": None}
    with contextlib.suppress(Exception):  # the text is made by the program's own class
        found["text"] = str(error)[:2000]
    with contextlib.suppress(Exception):
        found["where"] = _where(error)
    return found


def _where(error: BaseException) -> list[Any] | None:
    """The innermost line of the user's."""
    if isinstance(error, SyntaxError) and error.filename:
        return [users_code.absolute(error.filename), error.lineno, "<module>"]
    where = None
    traceback = error.__traceback__
    while traceback is not None:
        code = traceback.tb_frame.f_code
        if users_code.is_users(code):
            where = [users_code.absolute(code.co_filename), traceback.tb_lineno, code.co_name]
        traceback = traceback.tb_next
    return where
