"""The fork server's own side: imports packages, then forks a child for each request.

It takes its orders over a Unix socket, in the messages defined here. A process that has threads, or in which
TensorFlow has been initialised, cannot be forked safely: then `Imported.hindrance` names the reason, and the parent
starts children as programs of their own. `fork_server.py` is the parent's side.
"""

from __future__ import annotations

import contextlib
import gc
import importlib
import os
import select
import signal
import socket
import sys
import warnings
from collections.abc import Iterable
from dataclasses import dataclass

from flatout.process.fence import main as fence
from flatout.process.messages import decode, encode

LONGEST_MESSAGE = 1 << 16
MOST_DESCRIPTORS = 8

# ── messages to the server ───────────────────────────────────────────────────────────────────────────────────────────


@dataclass(frozen=True)
class Import:
    packages: tuple[str, ...]


@dataclass(frozen=True)
class Fork:
    """Fork a child. With the message come descriptors: a pipe that releases the child, then those it is to keep."""

    request: str
    """A file that says what the child has to do; what is in it is between the parent and the child."""
    output: str
    """The file that the child's output is appended to."""
    mark: int = 0
    """By which the child's processes are known."""


# ── messages from the server ─────────────────────────────────────────────────────────────────────────────────────────


@dataclass(frozen=True)
class Imported:
    packages: tuple[str, ...]
    hindrance: str | None
    """Why this process must not be forked, if so."""


@dataclass(frozen=True)
class Started:
    pid: int


@dataclass(frozen=True)
class Exited:
    pid: int
    code: int
    """As `subprocess` has it: negative for a signal."""


# ── the server ───────────────────────────────────────────────────────────────────────────────────────────────────────

set_by_imports: dict[str, str] = {}
"""Variables that the imports have set, as TensorFlow does: a program that imports it finds them set."""


def serve(channel: socket.socket) -> tuple[str, list[int]]:
    """Answer until the other end closes. Returns in each forked child, with the text of its request and its
    descriptors."""
    poll = select.poll()
    poll.register(channel, select.POLLIN)
    children: dict[int, int] = {}
    while True:
        for descriptor, _ in poll.poll():
            if descriptor != channel.fileno():
                poll.unregister(descriptor)
                _report_exit(channel, descriptor, children.pop(descriptor))
                continue
            text, descriptors = _receive(channel)
            if not text:
                _kill_all(children.values())
                os._exit(0)
            message = decode(text, Import, Fork)
            if isinstance(message, Import):
                _import(channel, message.packages)
                continue
            pid = _fork()
            if pid == 0:
                for other in children:
                    os.close(other)
                return _begin_child(message, descriptors, channel)
            for received in descriptors:
                os.close(received)
            handle = os.pidfd_open(pid)
            children[handle] = pid
            poll.register(handle, select.POLLIN)


def _fork() -> int:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # Python 3.12 warns of any fork in a process that ever had threads
        return os.fork()


def _begin_child(message: Fork, descriptors: list[int], channel: socket.socket) -> tuple[str, list[int]]:
    os.setsid()
    if message.mark:
        fence.carry(message.mark)
    _send(channel, Started(os.getpid()))
    channel.close()
    release, *kept = descriptors
    if not os.read(release, 1):  # the parent is gone, and nobody would ever end this process
        os._exit(1)
    os.close(release)
    with open(message.request, encoding="utf-8") as stream:
        request = stream.read()
    nothing = os.open(os.devnull, os.O_RDONLY)
    output = os.open(message.output, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o644)
    for source, target in ((nothing, 0), (output, 1), (output, 2)):
        os.dup2(source, target)
    os.close(nothing)
    os.close(output)
    return request, kept


def _import(channel: socket.socket, names: Iterable[str]) -> None:
    """A package that is not there is left out: the child meets the same error, or does not need it. One that fails
    in another way may have left half of itself behind, which no child should begin with."""
    before = os.environ.copy()
    failure = None
    collects = gc.isenabled()
    gc.disable()  # nearly nothing that an import makes is garbage; looking for it takes a seventh of TensorFlow's
    for name in names:
        try:
            importlib.import_module(name)
        except ImportError:
            continue
        except Exception as error:
            failure = f"importing {name} has failed: {type(error).__name__}: {error}"
    if collects:
        gc.collect()  # what was imported goes to the oldest generation here, and not in each child
        gc.enable()
    set_by_imports.update({name: value for name, value in os.environ.items() if before.get(name) != value})
    _send(channel, Imported(tuple(name for name in names if name in sys.modules), failure or _hindrance()))


def _hindrance() -> str | None:
    threads = len(os.listdir("/proc/self/task"))
    if threads > 1 + _openblas_threads():
        return f"importing TensorFlow has started {threads - 1} threads"
    context = sys.modules.get("tensorflow.python.eager.context")
    if context is not None and getattr(getattr(context, "_context", None), "_context_handle", None) is not None:
        return "importing TensorFlow has initialised it"
    return None


def _openblas_threads() -> int:
    """OpenBLAS starts threads when it is imported. It alone stops them before a fork and starts them again after it."""
    with contextlib.suppress(OSError), open("/proc/self/maps", encoding="utf-8", errors="replace") as stream:
        copies = {line.split()[-1] for line in stream if "openblas" in line}
        return len(copies) * (len(os.sched_getaffinity(0)) - 1)
    return 0


def _receive(channel: socket.socket) -> tuple[bytes, list[int]]:
    """A message and its descriptors. Nothing where the parent is gone: a socket that is closed with unread messages
    in it resets the connection."""
    try:
        text, descriptors, _, _ = socket.recv_fds(channel, LONGEST_MESSAGE, MOST_DESCRIPTORS)
    except OSError:
        return b"", []
    return text, descriptors


def _report_exit(channel: socket.socket, handle: int, child: int) -> None:
    pid, status = os.waitpid(child, 0)
    os.close(handle)
    _send(channel, Exited(pid, os.waitstatus_to_exitcode(status)))


def _kill_all(children: Iterable[int]) -> None:
    """The parent is gone. The children may be stopped and would not notice it themselves. What has left their groups
    is the watchdog's."""
    for pid in children:
        with contextlib.suppress(OSError):
            os.killpg(pid, signal.SIGKILL)


def _send(channel: socket.socket, message: object) -> None:
    with contextlib.suppress(OSError):  # the parent is gone: the next read shows it
        channel.send(encode(message).encode("ascii"))
