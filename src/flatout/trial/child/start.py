"""Called in the user's Python before any of the user's code: begins to observe the program, as a trial where asked."""

from __future__ import annotations

import atexit
import contextlib
import os
import sys
import time

from flatout.observe import private_names
from flatout.observe.installing import ProbeInstaller, finish, install_in_imported_packages
from flatout.observe.observer import Observer
from flatout.observe.recorder import Recorder
from flatout.process.messages import decode
from flatout.source import users_code
from flatout.trial.settings import ChildSettings, ScoutSettings, WholeSettings


def start(text: str, began: float) -> None:
    """`text`: the settings as `launcher.environment_for` has written them; `began`: when the interpreter was ready.
    Raises where they are invalid: `sitecustomize` prints that and runs the program unobserved, unless it is a trial."""
    observe_this_process(decode(text, ChildSettings), began)


def observe_this_process(settings: ChildSettings, began: float | None = None) -> None:
    began = time.perf_counter() if began is None else began
    if not _claim(settings.directory):
        if settings.trial is not None:
            from flatout.trial.child import setup

            setup.hold_back(settings.directory, settings.trial)
        return
    recorder = Recorder(settings.directory)
    if settings.module:
        users_code.treat_as_users(settings.module)
    observer = Observer(recorder, settings.observe)
    observer.began = began
    if settings.levers:
        from flatout.cures._injections import Injections

        observer.injections = Injections(observer, settings.levers)
    if settings.trial is not None:
        from flatout.trial.child import setup

        setup.make_trial(observer, settings.trial)
    recorder.fact("start", pid=os.getpid(), at=time.perf_counter(), python=sys.version.split()[0], version=sys.version)
    sys.meta_path.insert(0, ProbeInstaller(observer))
    install_in_imported_packages(observer)
    os.register_at_fork(after_in_child=lambda: _forget(observer), after_in_parent=lambda: _count_fork(observer))
    _finish_at_exit(observer)
    if settings.observe.sample and (settings.trial is None or _to_the_end(settings.trial.role)):
        _watch_the_run(observer)
    if settings.flame:
        _permit_sampling()
    observer.spend_since(began)


def _to_the_end(role: object) -> bool:
    """Whether a trial is to come to the end of the program by itself."""
    return isinstance(role, WholeSettings) or (isinstance(role, ScoutSettings) and role.to_end > 0)


def _claim(directory: str) -> bool:
    """Whether this process is the one to observe. A shell script may start several Pythons with our settings. One is
    observed: the first, or, where that one has ended without TensorFlow, the next. Two in one recording would be
    mistaken for one."""
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


def _finish_at_exit(observer: Observer) -> None:
    """At any exit that Python knows of, `os._exit` included."""
    leave = os._exit

    def leave_after_writing(status: int) -> None:
        try:
            if observer.active:
                finish(observer)
        finally:  # Ctrl-C meanwhile is no reason to stay
            leave(status)

    os._exit = leave_after_writing  # type: ignore[assignment]
    atexit.register(finish, observer)


def _watch_the_run(observer: Observer) -> None:
    """Where the wall clock goes, from here to the exit."""
    from flatout.observe.run_sampler import RunSampler

    sampler = RunSampler(observer)
    sampler.end = lambda: _let_go(observer)
    observer.spans.begin()
    observer.hooks.at_end.append(sampler.write)
    sampler.start()


def _let_go(observer: Observer) -> None:
    """Observe no longer: the program goes on as if it had never been observed, but for levers."""
    finish(observer)
    sys.meta_path[:] = [finder for finder in sys.meta_path if not isinstance(finder, ProbeInstaller)]
    if observer.injections is None:
        private_names.restore()


def _permit_sampling() -> None:
    """Let py-spy, which is no parent of this process, look at it where Linux allows that to parents only (Yama)."""
    with contextlib.suppress(Exception):
        import ctypes

        ctypes.CDLL(None).prctl(0x59616D61, ctypes.c_ulong(-1 & (2**64 - 1)), 0, 0, 0)  # PR_SET_PTRACER, any


def _count_fork(observer: Observer) -> None:
    observer.forks += 1


def _forget(observer: Observer) -> None:
    """A forked child is another process: what it does is not part of this recording."""
    observer.active = False
    observer.recorder.after_fork()
    observer.window.wants_ticks = False
    observer.window.make_session = None
    observer.ticks.stop()
    observer.spans.stop()
    observer.trial.at_step = None  # the gate's pipes are those of the program, whose steps are counted
