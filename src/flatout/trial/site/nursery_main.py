"""Imports TensorFlow once and forks a process for each trial: `python nursery_main.py PACKAGE PROGRAM SOCKET`.

PACKAGE is the directory flatout is imported from, PROGRAM the file to be run, or `-m`, SOCKET the number of a Unix
socket. Each message on it is a JSON object: `{"import": [names]}`, or `{"request": file}` together with the descriptors
of the trial. A trial runs the program as `python PROGRAM ARGS…` would, with `__main__`, environment and
output of its own; what it does not do again is the import. A process that has threads, or in which TensorFlow is at
work already, cannot be forked safely: then this one says so, and trials are started the long way.
"""

import contextlib
import importlib
import importlib.util
import json
import os
import select
import signal
import socket
import sys
import tempfile
import warnings
from collections.abc import Iterable
from types import ModuleType
from typing import Any


def serve(namespace: dict[str, Any], words: list[str]) -> None:
    """Returns in a forked child, once its program has run."""
    package, program, channel = words
    child = _borrowed(package, "flatout.trial.child")
    main = _loaded("flatout_patched_main", os.path.join(os.path.dirname(__file__), "patched_main.py"))
    main.look_beside(program)
    wanted, passed = forked(socket.socket(fileno=int(channel)))
    _be_a_trial(wanted, passed, child, main, namespace)


def forked(channel: socket.socket) -> tuple[dict[str, Any], list[int]]:
    """Answers until the other end closes. Returns in a forked child, with its request and its descriptors."""
    poll = select.poll()
    poll.register(channel, select.POLLIN)
    alive: dict[int, int] = {}
    while True:
        for descriptor, _ in poll.poll():
            if descriptor != channel.fileno():
                poll.unregister(descriptor)
                pid, status = os.waitpid(alive.pop(descriptor), 0)
                os.close(descriptor)
                _say(channel, {"ended": pid, "code": os.waitstatus_to_exitcode(status)})
                continue
            text, descriptors = _received(channel)
            if not text:
                _end_all(alive.values())
                os._exit(0)
            message = json.loads(text)
            if "import" in message:
                _import(channel, message["import"])
                continue
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")  # Python 3.12 warns of any fork in a process that ever had threads
                pid = os.fork()
            if pid == 0:
                for other in alive:
                    os.close(other)
                return _begun(message["request"], descriptors, channel)
            for received in descriptors:
                os.close(received)
            handle = os.pidfd_open(pid)
            alive[handle] = pid
            poll.register(handle, select.POLLIN)


def _received(channel: socket.socket) -> tuple[bytes, list[int]]:
    """A message and its descriptors; nothing where whoever asks is gone, whether or not all was read that was said."""
    try:
        text, descriptors, _, _ = socket.recv_fds(channel, 1 << 16, 8)
    except OSError:
        return b"", []
    return text, descriptors


def _end_all(trials: Iterable[int]) -> None:
    """Whoever asked for them is gone. They may be stopped, and would not see that by themselves."""
    for pid in trials:
        with contextlib.suppress(OSError):
            os.killpg(pid, signal.SIGKILL)


def _begun(request: str, descriptors: list[int], channel: socket.socket) -> tuple[dict[str, Any], list[int]]:
    os.setsid()
    _say(channel, {"started": os.getpid()})
    channel.close()
    hold, *passed = descriptors
    if not os.read(hold, 1):  # whoever asked is gone, and nobody would ever stop this process
        os._exit(1)
    os.close(hold)
    with open(request, encoding="utf-8") as stream:
        wanted: dict[str, Any] = json.load(stream)
    nothing = os.open(os.devnull, os.O_RDONLY)
    output = os.open(wanted["output"], os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o644)
    for source, target in ((nothing, 0), (output, 1), (output, 2)):
        os.dup2(source, target)
    os.close(nothing)
    os.close(output)
    return wanted, passed


_set_by_imports: dict[str, str] = {}
"""Variables that TensorFlow sets when it is imported: a program finds them set afterwards."""


def _import(channel: socket.socket, names: list[str]) -> None:
    """What cannot be imported here will fail in the program as well, or is not imported there at all."""
    before = os.environ.copy()
    for name in names:
        with contextlib.suppress(Exception):
            importlib.import_module(name)
    _set_by_imports.update({name: value for name, value in os.environ.items() if before.get(name) != value})
    _say(channel, {"imported": [name for name in names if name in sys.modules], "hindrance": _hindrance()})


def _hindrance() -> str | None:
    """Why this process must not be forked, if so."""
    threads = len(os.listdir("/proc/self/task"))
    if threads > 1 + _numpy_threads():
        return f"importing TensorFlow has started {threads - 1} threads"
    context = sys.modules.get("tensorflow.python.eager.context")
    if context is not None and getattr(getattr(context, "_context", None), "_context_handle", None) is not None:
        return "importing TensorFlow has set it to work"
    return None


def _numpy_threads() -> int:
    """OpenBLAS, alone of those that start threads when imported, stops them before a fork and starts them after it."""
    with contextlib.suppress(OSError), open("/proc/self/maps", encoding="utf-8", errors="replace") as stream:
        copies = {line.split()[-1] for line in stream if "openblas" in line}
        return len(copies) * (len(os.sched_getaffinity(0)) - 1)
    return 0


def _be_a_trial(
    wanted: dict[str, Any], passed: list[int], child: ModuleType, main: ModuleType, namespace: dict[str, Any]
) -> None:
    os.environ.clear()
    os.environ.update({**wanted["environment"], **_set_by_imports})
    tempfile.tempdir = None
    settings = wanted["settings"]
    settings["trial"]["gate"].update(zip(("read", "write"), passed, strict=True))
    for descriptor in passed:
        os.set_inheritable(descriptor, True)
    try:
        child.start(json.dumps(settings))
    except Exception as error:
        sys.stderr.write(f"flatout: could not start observing ({type(error).__name__}: {error})\n")
        raise SystemExit(1) from None
    main.install(wanted["sources"])
    main.run(wanted["arguments"], namespace)


def _say(channel: socket.socket, message: dict[str, Any]) -> None:
    with contextlib.suppress(OSError):  # nobody listens any more: the next thing that is heard says so
        channel.send(json.dumps(message).encode("ascii"))


def _borrowed(directory: str, name: str) -> ModuleType:
    sys.path.append(directory)
    try:
        return importlib.import_module(name)
    finally:
        sys.path.remove(directory)


def _loaded(name: str, path: str) -> ModuleType:
    specification = importlib.util.spec_from_file_location(name, path)
    if specification is None or specification.loader is None:
        raise SystemExit(f"{path} cannot be loaded")
    module = importlib.util.module_from_spec(specification)
    specification.loader.exec_module(module)
    return module


if __name__ == "__main__":
    # `__main__` is cleared for the program, so this file is loaded a second time, under a name of its own.
    _loaded("flatout_nursery", __file__).serve(globals(), sys.argv[1:])
