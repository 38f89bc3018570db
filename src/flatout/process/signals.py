"""Waits for a program and forwards signals to it, each of them once.

The program is a member of flatout's process group, as it would be of the shell's job: Ctrl-C, a closed terminal or
`timeout` reach both. A signal to flatout alone (`kill`, a supervisor) has to be forwarded. Linux does not tell the
two apart, so a witness does: a third process of the group that does nothing but report which signals it gets.
"""

from __future__ import annotations

import contextlib
import os
import select
import signal
import struct
import subprocess
import threading
import time
from collections.abc import Callable, Iterator

FORWARDED = frozenset(
    {
        signal.SIGINT,
        signal.SIGTERM,
        signal.SIGHUP,
        signal.SIGQUIT,
        signal.SIGUSR1,
        signal.SIGUSR2,
        signal.SIGCONT,
    }
)
AWAITED = FORWARDED | {signal.SIGCHLD}
WITNESS_SECONDS = 0.2
"""Seconds that the witness is given to wake up on a busy machine."""
_REPORT = struct.Struct("=id")


@contextlib.contextmanager
def forwarded_to(process: subprocess.Popen[bytes]) -> Iterator[Callable[[], int]]:
    """Yields a function that waits for the return code (negative for a signal, as `subprocess` has it)."""
    if threading.current_thread() is not threading.main_thread():
        yield process.wait  # Python handles signals in the main thread only
        return
    before = signal.pthread_sigmask(signal.SIG_BLOCK, AWAITED)
    try:
        witness: _Witness | None = _Witness()
    except OSError:
        witness = None  # no process or descriptor is left: decide by the sender

    def wait() -> int:
        while process.poll() is None:
            received = signal.sigtimedwait(AWAITED, 1.0)
            if received is None or received.si_signo not in FORWARDED:
                continue
            number = received.si_signo
            # Above 0: sent by the kernel, and so to the whole group.
            shared = witness.had(number) if witness is not None else received.si_code > 0
            if not shared:
                process.send_signal(number)  # does nothing where the program has ended by now
        return int(process.returncode)

    try:
        yield wait
    finally:
        if witness is not None:
            witness.end()
        while signal.sigtimedwait(AWAITED, 0) is not None:
            pass  # signals meant for the program must not end the analysis
        signal.pthread_sigmask(signal.SIG_SETMASK, before)


class _Witness:
    def __init__(self) -> None:
        self.reports, writing = os.pipe()
        self.when: dict[int, float] = {}
        self.process = os.fork()
        if self.process == 0:
            _watch(writing)
        os.close(writing)

    def had(self, number: int) -> bool:
        """Whether the whole group has just been sent this signal."""
        until = time.monotonic() + WITNESS_SECONDS
        while True:
            if abs(self.when.get(number, 0.0) - time.monotonic()) < 2 * WITNESS_SECONDS:
                return True
            left = until - time.monotonic()
            if left <= 0 or not select.select([self.reports], [], [], left)[0]:
                return False
            report = os.read(self.reports, _REPORT.size)
            if len(report) < _REPORT.size:
                return False  # it was killed: forward everything
            number_seen, at = _REPORT.unpack(report)
            self.when[number_seen] = at

    def end(self) -> None:
        with contextlib.suppress(OSError):
            os.kill(self.process, signal.SIGKILL)
            os.waitpid(self.process, 0)
        os.close(self.reports)


def _watch(writing: int) -> None:
    """The witness process. It keeps none of the program's files open, so that nobody waits for it to close them."""
    parent = os.getppid()
    try:
        os.closerange(0, writing)
        os.closerange(writing + 1, writing + 64)
        while os.getppid() == parent:
            received = signal.sigtimedwait(FORWARDED, 2.0)
            if received is not None:
                os.write(writing, _REPORT.pack(received.si_signo, time.monotonic()))
    finally:
        os._exit(0)
