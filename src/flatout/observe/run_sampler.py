"""A thread that sees where the main thread is, from the first line of the program to its exit.

Each look is put down under the span that is under way (`spans.py`), the user's lines that led there, the package that
is being imported, and the package whose code runs. What is kept is a sum by these, bounded in number.
"""

from __future__ import annotations

import contextlib
import os
import threading
from collections.abc import Callable
from time import perf_counter, process_time, sleep, thread_time  # a program may put its own into the module
from typing import TYPE_CHECKING, Any

from flatout.observe import own_threads
from flatout.observe.frames import Look, line_of, stack_of
from flatout.observe.strip import Strip
from flatout.source import users_code

if TYPE_CHECKING:
    from flatout.observe.observer import Observer

EARLY_INTERVAL = 0.02
INTERVAL = 0.04
"""Seconds between two looks, before there is a step and after."""
LATE_SECONDS = 30.0
OF_LOOKS = 0.002
LONGEST_INTERVAL = 0.2
"""After the first seconds looks may take this share of the time: a busy machine takes several times as long for one."""
WRITE_SECONDS = 2.0
"""Between two writings of the tree, at least; what is written last stays where the process is killed."""
OF_TIME = 0.002
"""Most of the time that writing it may take: a large tree is written less often."""
MOST_SECONDS = 20.0
DEEPEST = 200
MOST_FRAMES = 8
MOST_STACKS = 3000
MOST_CODES = 100_000
MOST_STAGES = 40
"""Streams of steps are told apart up to here: the samples say how many there were."""
MOST_ROWS = 800

_IMPORT = "<frozen importlib._bootstrap>"
_OWN = os.path.dirname(os.path.dirname(os.path.abspath(__file__))) + os.sep
_RUNNERS = ("<module>", "_run_module_as_main", "_run_module_code")
"""On the stack of the main thread as long as the program itself runs."""


class RunSampler:
    def __init__(self, observer: Observer) -> None:
        self.observer = observer
        self.watched = threading.main_thread().ident or 0
        self.sums: dict[Any, list[float]] = {}
        """(span, stage, importing, working, users' frames) → seconds, looks, and its number."""
        self.newest: tuple[Any, ...] = ()
        """The user's frames at the last look."""
        self.looks = 0
        self.took = 0.0
        """Seconds of this thread for them."""
        self.last = self.began = perf_counter()
        self.strip = Strip(self.last)
        self.writing = threading.RLock()
        """The program's thread writes at the end, when this one may be in the midst of it: both to the same file."""
        self.end: Callable[[], None] = lambda: None
        """Called once the time is over for which the program is to be observed."""

    def start(self) -> None:
        own_threads.start(self.run)

    def run(self) -> None:
        written = self.began
        limit, pause = self.observer.settings.seconds, WRITE_SECONDS
        while self.observer.active:
            try:
                if limit is not None and self.last - self.began > limit:
                    self.end()
                    return
                sleep(self.interval())
                self.look()
                if self.last - written > pause and self.observer.active:
                    began_writing = thread_time()
                    with self.writing:
                        if self.observer.active:  # else the last of it was written meanwhile
                            self.write()
                    written = self.last
                    pause = min(max(WRITE_SECONDS, (thread_time() - began_writing) / OF_TIME), MOST_SECONDS)
            except Exception as error:
                self.observer.note(f"the sampler of the run stopped: {type(error).__name__}: {error}")
                return

    def interval(self) -> float:
        if not self.observer.streams:
            return EARLY_INTERVAL
        if self.last - self.began < LATE_SECONDS:
            return INTERVAL
        return max(INTERVAL, min(self.took / max(self.looks, 1) / OF_LOOKS, LONGEST_INTERVAL))

    def look(self) -> None:
        began, spans = thread_time(), self.observer.spans
        stack = stack_of(self.watched, DEEPEST)
        now = perf_counter()
        seconds, self.last = now - self.last, now
        stage = min(len(self.observer.streams), MOST_STAGES)
        self.looks += 1
        importing, working, users = _seen(stack)
        self.newest = users[:1]
        number = spans.current.number
        if importing == "exit" and number:
            importing = ""
        key: Any = (number, stage, importing, working, users)
        row = self.sums.get(key)
        if row is None:
            if len(self.sums) >= MOST_STACKS:  # keep the outermost line and the span
                key = (*key[:4], key[4][-1:])
                row = self.sums.get(key)
            if row is None:
                row = self.sums[key] = [0.0, 0, len(self.sums)]
        row[0] += seconds
        row[1] += 1
        self.strip.add(now, int(row[2]), seconds)
        self.took += thread_time() - began

    def write(self) -> None:
        """The whole tree so far, in place of the last one."""
        with self.writing:
            self._write()

    def _write(self) -> None:
        now = perf_counter()
        found = sorted(self.sums.items(), key=lambda item: -item[1][0])
        rows = [
            [span, stage, importing, working, round(seconds, 4), int(count), _frames(users)]
            for (span, stage, importing, working, users), (seconds, count, _) in found[:MOST_ROWS]
        ]
        self.observer.recorder.state(
            "run",
            at=now,
            cpu=process_time(),
            looks=self.looks,
            spans=self.observer.spans.rows(now),
            rows=rows,
            strip=self.strip.written(_places(found)),
            newest=_frames(self.newest),
            in_call=self.observer.ticks.call_since > 0,
            rest=round(sum(values[0] for _, values in found[MOST_ROWS:]), 4),
        )


def _places(found: list[tuple[Any, list[float]]]) -> dict[int, int]:
    """By the number of a stack, the place of its row; for one that is not written, that of one of the same phase."""
    places: dict[int, int] = {}
    alike: dict[Any, int] = {}
    for place, (key, values) in enumerate(found):
        like = alike.setdefault(key[:3], place) if place < MOST_ROWS else alike.get(key[:3])
        if like is not None:
            places[int(values[2])] = place if place < MOST_ROWS else like
    return places


def _seen(stack: list[Look]) -> tuple[str, str, tuple[Any, ...]]:
    """(package being imported or `exit`, package whose code runs, the user's lines from the innermost)."""
    users: list[Any] = []
    innermost: Look | None = None
    """Of a library, with no code of the user's inside: what it calls there is working for it."""
    module: Look | None = None
    """The outermost that runs the body of a module: what the user's line asked for."""
    imports = False
    leaving = bool(stack)
    known = _codes.get
    for look in stack:
        code = look[0]
        _, kind, runs = known(id(code)) or _remember(code)
        if runs:
            leaving = False
        if kind == _USERS:
            users.append((id(code), line_of(code, look[1])))
        elif kind == _IMPORTING:
            imports = imports or not users
        else:
            if kind == _MODULE:
                module = look
            if innermost is None and not users:
                innermost = look
    importing = _package(module) if module is not None else "?" if imports else ""
    if leaving and len(stack) < DEEPEST:
        importing = "exit"
    return importing, _package(innermost) if innermost is not None else "", tuple(users[:MOST_FRAMES])


_OTHER, _USERS, _IMPORTING, _MODULE = range(4)
_codes: dict[int, tuple[Any, int, bool]] = {}
"""Code by its identity: what it is, and whether the program itself runs as long as it is on the stack. To hash code
itself, or to look at its names each time, takes as long as all else. What stands here is kept alive, so that no other
gets its identity."""


def _remember(code: Any) -> tuple[Any, int, bool]:
    runs = code.co_name in _RUNNERS or code.co_filename == _IMPORT
    kind = _IMPORTING if code.co_filename == _IMPORT else _MODULE if code.co_name == "<module>" else _OTHER
    if kind == _MODULE and code.co_filename.startswith(_OWN):
        kind = _OTHER  # what runs the program, where that is a patched one
    if len(_codes) > MOST_CODES:
        return code, kind, runs
    known = _codes[id(code)] = (code, _USERS if users_code.is_users(code) else kind, runs)
    return known


def _package(look: Look) -> str:
    with contextlib.suppress(Exception):
        return str(look[2].get("__name__", "")).partition(".")[0]
    return ""


def _frames(users: tuple[Any, ...]) -> list[list[Any]]:
    found = [(_codes[number][0], line) for number, line in users]
    return [[users_code.absolute(c.co_filename), line, c.co_name, c.co_firstlineno] for c, line in found]
