"""Inside the user's Python: wait for TensorFlow, install the probes, and write the end down."""

from __future__ import annotations

import atexit
import contextlib
import importlib
import json
import os
import sys
import time
from collections.abc import Callable
from types import ModuleType
from typing import Any

from flatout.observe.imports import ImportWatch
from flatout.observe.observer import Observer
from flatout.observe.recorder import Recorder
from flatout.source import users_code

PACKAGES = ("tensorflow", "keras", "tf_keras")
READ_BY_TENSORFLOW = (
    *("TF_", "TF2_", "XLA_", "KERAS_", "AUTOGRAPH_", "GRPC_", "PROTOCOL_BUFFERS_"),
    *("OMP_", "KMP_", "MKL_", "OPENBLAS_", "ONEDNN_", "DNNL_", "CUDA_", "NVIDIA_"),
)
"""How the names of variables begin that matter while TensorFlow is imported."""


def start(settings_text: str) -> None:
    """Called by sitecustomize in the observed process, before any of the user's code."""
    settings: dict[str, Any] = json.loads(settings_text)
    if not _claim(settings["directory"]):
        return
    recorder = Recorder(settings["directory"])
    if settings.get("module"):
        users_code.treat_as_users(settings["module"])
    observer = Observer(recorder, settings)
    if settings.get("levers"):
        from flatout.cures._injections import Injections

        observer.injections = Injections(observer, settings["levers"])
    if settings.get("trial"):
        from flatout.trial import trial

        trial.start(observer, settings["trial"])
    recorder.fact("start", pid=os.getpid(), at=time.perf_counter(), python=sys.version.split()[0], version=sys.version)
    sys.meta_path.insert(0, _Finder(observer))
    install_in_what_is_imported(observer)
    os.register_at_fork(after_in_child=lambda: _forget(observer), after_in_parent=lambda: _count_fork(observer))
    leave = os._exit

    def leave_after_writing(status: int) -> None:
        if observer.active:
            finish(observer)
        leave(status)

    os._exit = leave_after_writing  # type: ignore[assignment]
    atexit.register(finish, observer)
    if settings.get("flame"):
        _permit_sampling()


def _claim(directory: str) -> bool:
    """A shell script may start several Pythons with our settings. One is observed: the first, or, where that one has
    ended without TensorFlow, the next. Two in one recording would be mistaken for one."""
    facts = os.path.join(directory, "facts.jsonl")
    try:
        os.close(os.open(facts, os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o644))
    except FileExistsError:
        with open(facts, encoding="ascii") as stream:
            known = stream.read()
        if '"package":"tensorflow"' not in known and '"kind":"end"}' in known:
            os.unlink(facts)
            return _claim(directory)
        with open(facts, "a", encoding="ascii") as stream:
            stream.write('{"text":"more than one Python ran; only one of them was observed","kind":"note"}\n')
        return False
    return True


def _permit_sampling() -> None:
    """Let py-spy, which is no parent of this process, look at it where Linux allows that to parents only (Yama)."""
    with contextlib.suppress(Exception):
        import ctypes

        ctypes.CDLL(None).prctl(0x59616D61, ctypes.c_ulong(-1 & (2**64 - 1)), 0, 0, 0)  # PR_SET_PTRACER, any


def _count_fork(observer: Observer) -> None:
    observer.forks += 1


def _forget(observer: Observer) -> None:
    """A forked child is another process: what it does is not this recording's business."""
    observer.active = False
    observer.recorder.after_fork()
    observer.window.wants_ticks = False
    observer.window.make_session = None


def finish(observer: Observer) -> None:
    if not observer.active:
        return
    try:
        error = getattr(sys, "last_value", None)
        if error is not None:
            observer.recorder.fact("exception", **_describe(error))
        if observer.forks:
            observer.note(f"the program forked {observer.forks} times; what its children did is not part of this case")
        observer.finish()
        observer.recorder.fact("end", at=time.perf_counter(), cpu=time.process_time())
        if observer.recorder.broken:
            _say(f"the recording stopped early: {observer.recorder.broken}")
    except Exception as failure:  # never let our end spoil the program's
        _say(f"the end could not be recorded ({type(failure).__name__}: {failure})")


def _say(text: str) -> None:
    """To descriptor 2 itself: `sys.stderr` may be the program's own by now, or closed."""
    with contextlib.suppress(OSError):
        os.write(2, f"flatout: {text}\n".encode("utf-8", "backslashreplace"))


def _describe(error: BaseException) -> dict[str, Any]:
    where = None
    traceback = error.__traceback__
    while traceback is not None:
        if users_code.is_users(traceback.tb_frame.f_code):
            where = [
                users_code.absolute(traceback.tb_frame.f_code.co_filename),
                traceback.tb_lineno,
                traceback.tb_frame.f_code.co_name,
            ]
        traceback = traceback.tb_next
    if isinstance(error, SyntaxError) and error.filename:
        where = [users_code.absolute(error.filename), error.lineno, "<module>"]
    return {"type": type(error).__name__, "text": str(error)[:2000], "where": where}


class _Finder(ImportWatch):
    """Installs the probes right after TensorFlow or Keras was imported."""

    def __init__(self, observer: Observer) -> None:
        super().__init__(PACKAGES)
        self.observer = observer
        self.variables = _variables()

    def execute(self, fullname: str, module: ModuleType, run: Callable[[ModuleType], None]) -> None:
        began = time.perf_counter()
        now = _variables()
        if fullname == "tensorflow" and now != self.variables:
            changed = {
                name: now.get(name) for name in {*now, *self.variables} if now.get(name) != self.variables.get(name)
            }
            self.observer.recorder.fact("variables", changed=changed)
        try:
            run(module)
        except BaseException as error:
            self.observer.recorder.fact("import-failed", package=fullname, **_describe(error))
            raise
        if self.observer.active:
            install(self.observer, fullname, module)
            self.observer.recorder.fact(
                "import",
                package=fullname,
                seconds=time.perf_counter() - began,
                version=version_of(module),
            )


def _variables() -> dict[str, str]:
    """Those that TensorFlow and what it brings read while they are imported; others are the user's own affair."""
    return {name: value for name, value in os.environ.items() if name.startswith(READ_BY_TENSORFLOW)}


def install_in_what_is_imported(observer: Observer) -> None:
    """For packages that were there before the observer."""
    for package in PACKAGES:
        module = sys.modules.get(package)
        if module is not None:
            install(observer, package, module)
            observer.recorder.fact("import", package=package, seconds=0.0, version=version_of(module))


def version_of(module: ModuleType) -> str | None:
    return getattr(module, "__version__", None) or getattr(getattr(module, "version", None), "VERSION", None)


def install(observer: Observer, package: str, module: ModuleType) -> None:
    """Install every probe of this package; one that fails is told and left out."""
    if "tensorflow" not in sys.modules:
        return  # Keras on another backend: there is nothing of TensorFlow to observe
    if observer.injections is not None:
        observer.injections.install(package, module)  # first: probes are to see the changed program
    from flatout.observe import probes
    from flatout.observe.private_names import Missing

    installed = [(name, importlib.import_module(f"flatout.observe.probes.{name}")) for name in probes.names()]
    installed += [(companion.__name__, companion) for companion in observer.companions]
    for name, probe in installed:
        make: Callable[[Observer, ModuleType], None] | None = getattr(probe, f"on_{package}", None)
        if make is None:
            continue
        try:
            make(observer, module)
        except Missing as missing:
            observer.recorder.fact("lost", probe=name, text=str(missing))
        except Exception as error:
            observer.recorder.fact("lost", probe=name, text=f"{type(error).__name__}: {error}")
