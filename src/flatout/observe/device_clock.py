"""Tells when the devices have finished what the program has queued for them.

On a GPU an op is queued and its Python returns at once: a traced step of 21 ms returns after 5 ms. Whoever takes the
time at the end of some steps waits for the devices first. Waiting at each step would change the steps, as the host
could no longer prepare the next one meanwhile.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Callable
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from flatout.observe.recorder import Recorder


class DeviceClock:
    def __init__(self, note: Callable[[str], None]) -> None:
        self._note = note
        self._wait: Callable[[], None] | None = None
        self._looked = False

    @property
    def queues(self) -> bool:
        """Whether this program's ops are queued. Known once TensorFlow has its devices, so after the first step."""
        if not self._looked:
            self._looked = True
            try:
                self._wait = _wait_for_devices()
            except Exception as error:
                self._fail(error)
        return self._wait is not None

    def finished(self) -> float:
        """Waits until nothing is queued any longer. The time then, by `perf_counter`."""
        if self.queues and self._wait is not None:
            try:
                self._wait()
            except Exception as error:  # that of an op of the program, which the program will get to see itself
                self._fail(error)
        return time.perf_counter()

    def record_wait(self, recorder: Recorder) -> float:
        """Waits, and writes down from when to when (`reading/queued_steps.py`). The time then."""
        began = time.perf_counter()
        if not self.queues:
            return began
        done = self.finished()
        recorder.fact("device-wait", at=began, done=done)
        return done

    def _fail(self, error: Exception) -> None:
        self._wait = None
        self._note(f"Times were taken without waiting for the devices: {error}"[:300])


def _wait_for_devices() -> Callable[[], None] | None:
    """None where every op has finished when its call returns."""
    tf = sys.modules.get("tensorflow")
    if tf is None or not tf.executing_eagerly():  # `session.run` returns when all is done
        return None
    if tf.config.list_logical_devices("GPU") or not tf.config.experimental.get_synchronous_execution():
        wait: Callable[[], None] = tf.test.experimental.sync_devices
        return wait
    return None
