"""The gate at which a trial waits, with real pipes."""

from __future__ import annotations

import atexit
import json
import os
import select
import sys
import threading
import time
from types import SimpleNamespace

from flatout.tune.child import gate as gates
from flatout.tune.child.gate import Gate


class Numbers:
    """Notes whether its file is written while the answer has not been given."""

    wanted = False

    def __init__(self, answers: int) -> None:
        self.answers = answers
        self.came_first: list[bool] = []

    def write(self) -> None:
        time.sleep(0.02)
        self.came_first.append(not select.select([self.answers], [], [], 0)[0])


def test_the_numbers_are_written_before_the_answer_is_given(monkeypatch):
    """Whoever has the answer may end the process at once: what it computed must be on disk by then."""
    monkeypatch.setattr(gates, "_leave", sys.exit)  # a thread ends by it, the tests do not
    read, commands = os.pipe()
    answers, write = os.pipe()
    numbers = Numbers(answers)
    observer = SimpleNamespace(trace=0.0, injections=None, optimizers={}, epochs=0)
    gate = Gate(observer, {"read": read, "write": write}, numbers)
    atexit.unregister(gate._tell_end)  # its pipe is closed long before these tests end
    stream = SimpleNamespace(priority=100)

    def program() -> None:
        try:
            for step in range(60):
                time.sleep(0.02)
                observer.epochs += step % 3 == 0
                gate.tick(stream, time.perf_counter(), 1)
        except SystemExit:
            pass
        finally:
            os.close(write)  # whatever went wrong, nobody waits for an answer any longer

    running = threading.Thread(target=program, daemon=True)
    running.start()
    heard = []
    with os.fdopen(answers) as reading:
        for word in ("go", "go", "end"):
            heard.append(json.loads(reading.readline()))
            os.write(commands, json.dumps({"do": word, "steps": 4}).encode() + b"\n")
        running.join(10)
    os.close(commands)
    assert not running.is_alive()
    assert [answer["say"] for answer in heard] == ["warm", "block", "block"]
    assert numbers.came_first[:3] == [True, True, True]
    for block in heard[1:]:
        assert block["counts"] == [1] * len(block["times"])
        assert block["epoch"]["steps"] == 3
        assert block["epoch"]["starts"]
