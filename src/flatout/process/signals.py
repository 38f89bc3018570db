"""Waits for the program and passes signals on to it, each of them once.

The program is a member of flatout's process group, as it would be of the shell's job: Ctrl-C, a closed terminal or
`timeout` reach both. Sent to flatout alone (`kill`, a supervisor), a signal has to be passed on. Linux does not tell
the two apart, so a witness does: a third process of the group that does nothing but note which signals it gets.
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

PASSED = frozenset(
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
WAITED = PASSED | {signal.SIGCHLD}
PATIENCE = 0.2
"""Seconds that the witness is given to wake up on a busy machine."""
_WORD = struct.Struct("=id")


@contextlib.contextmanager
def passed_to(process: subprocess.Popen[bytes]) -> Iterator[Callable[[], int]]:
    """Gives a function that waits for the return code (negative for a signal, as `subprocess` has it)."""
    if threading.current_thread() is not threading.main_thread():
        yield process.wait  # signals are not this thread's business
        return
    before = signal.pthread_sigmask(signal.SIG_BLOCK, WAITED)
    try:
        witness: _Witness | None = _Witness()
    except OSError:
        witness = None  # no more processes or descriptors to be had: go by the sender

    def wait() -> int:
        while process.poll() is None:
            told = signal.sigtimedwait(WAITED, 1.0)
            if told is None or told.si_signo not in PASSED:
                continue
            shared = witness.had(told.si_signo) if witness is not None else told.si_code > 0  # above 0: the kernel
            if not shared:
                process.send_signal(told.si_signo)  # does nothing where the program has ended by now
        return int(process.returncode)

    try:
        yield wait
    finally:
        if witness is not None:
            witness.dismiss()
        while signal.sigtimedwait(WAITED, 0) is not None:
            pass  # what ended the program was not meant for the analysis
        signal.pthread_sigmask(signal.SIG_SETMASK, before)


class _Witness:
    def __init__(self) -> None:
        self.heard, says = os.pipe()
        self.when: dict[int, float] = {}
        self.process = os.fork()
        if self.process == 0:
            _watch(says)
        os.close(says)

    def had(self, number: int) -> bool:
        """Whether the whole group has just been sent this signal."""
        until = time.monotonic() + PATIENCE
        while True:
            if abs(self.when.get(number, 0.0) - time.monotonic()) < 2 * PATIENCE:
                return True
            left = until - time.monotonic()
            if left <= 0 or not select.select([self.heard], [], [], left)[0]:
                return False
            word = os.read(self.heard, _WORD.size)
            if len(word) < _WORD.size:
                return False  # it was killed: pass everything on
            told, at = _WORD.unpack(word)
            self.when[told] = at

    def dismiss(self) -> None:
        with contextlib.suppress(OSError):
            os.kill(self.process, signal.SIGKILL)
            os.waitpid(self.process, 0)
        os.close(self.heard)


def _watch(says: int) -> None:
    """The witness's whole life. It holds none of the program's files, so that nobody waits for it to close them."""
    parent = os.getppid()
    try:
        os.closerange(0, says)
        os.closerange(says + 1, says + 64)
        while os.getppid() == parent:
            told = signal.sigtimedwait(PASSED, 2.0)
            if told is not None:
                os.write(says, _WORD.pack(told.si_signo, time.monotonic()))
    finally:
        os._exit(0)
