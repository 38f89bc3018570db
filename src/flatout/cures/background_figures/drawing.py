"""What `background-figures` puts into a program: injected as it is, written into the source from the mark on.

Only code that runs in the program imports this module: it imports matplotlib.
"""

# mypy: disable-error-code="no-untyped-def, no-untyped-call, arg-type, union-attr, var-annotated"

import atexit
import collections
import concurrent.futures
import importlib
import os
import pickle
import subprocess
import sys
from typing import Any

matplotlib: Any = importlib.import_module("matplotlib")

# ── from here on ─────────────────────────────────────────────────────────────────────────────────────────────────────


class BackgroundFigures:
    """Draws figures into files in a process of its own: as they are at the call, one after the other. What cannot be
    sent there is drawn as ever."""

    WAITING = 5
    DRAW = """
import os, pickle, signal, sys, traceback
signal.signal(signal.SIGINT, signal.SIG_IGN)
answers = os.fdopen(os.dup(1), "wb")
os.dup2(2, 1)
sys.path[:] = pickle.load(sys.stdin.buffer)
import matplotlib
matplotlib.use("Agg")
import matplotlib.pyplot as plt
while True:
    try:
        job = pickle.load(sys.stdin.buffer)
    except EOFError:
        break
    failure = ""
    try:
        directory, settings, figure, given, named = pickle.loads(job)
        os.chdir(directory)
        with plt.rc_context(settings):
            figure.savefig(*given, **named)
    except BaseException:
        failure = traceback.format_exc()
    plt.close("all")
    pickle.dump(failure, answers)
    answers.flush()
"""

    def __init__(self):
        self._sender = concurrent.futures.ThreadPoolExecutor(max_workers=1)
        self._drawer = None
        self._sent = collections.deque()
        self._process = os.getpid()
        atexit.register(self.wait)

    def save(self, figure, *given, **named):
        job = self._packed(figure, given, named)
        if job is None:
            self.wait()
            return self._as_ever(figure, given, named)
        while len(self._sent) >= self.WAITING or (self._sent and self._sent[0].done()):
            self._sent.popleft().result()
        self._sent.append(self._sender.submit(self._draw, job))
        return None

    def wait(self):
        """Until all files are complete. Raises what drawing them has raised."""
        while self._sent and self._process == os.getpid():
            self._sent.popleft().result()

    def _as_ever(self, figure, given, named):
        return figure.savefig(*given, **named)

    def _packed(self, figure, given, named):
        """What the other process needs; None where it cannot be sent, or the other process is not ours to ask."""
        target = given[0] if given else named.get("fname")
        if not isinstance(target, (str, os.PathLike)) or self._process != os.getpid():
            return None
        usual, now = matplotlib.rcParamsDefault, matplotlib.rcParams
        settings = {name: now[name] for name in now if "backend" not in name and now[name] != usual.get(name)}
        try:
            job = pickle.dumps((os.getcwd(), settings, figure, given, named))
        except Exception:
            return None
        return None if b"__main__" in job else job

    def _draw(self, job):
        if self._drawer is None:
            command = [sys.executable, "-c", self.DRAW]
            self._drawer = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE)
            pickle.dump(sys.path, self._drawer.stdin)
        pickle.dump(job, self._drawer.stdin)
        self._drawer.stdin.flush()
        failure = pickle.load(self._drawer.stdout)
        if failure:
            raise RuntimeError(f"A figure could not be drawn:\n{failure}")
