"""The gate at which a trial waits, with real pipes."""

from __future__ import annotations

import json
import os
import select
import threading
import time
from types import SimpleNamespace

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


def test_the_numbers_are_written_before_the_answer_is_given():
    """Whoever has the answer may end the process at once: what it computed must be on disk by then."""
    read, commands = os.pipe()
    answers, write = os.pipe()
    numbers = Numbers(answers)
    observer = SimpleNamespace(trace=0.0, injections=None, optimizers={})
    gate = Gate(observer, {"read": read, "write": write}, numbers)
    stream = SimpleNamespace(priority=100)

    def program() -> None:
        for _ in range(60):
            time.sleep(0.02)
            gate.tick(stream, time.perf_counter(), 1)

    threading.Thread(target=program, daemon=True).start()
    heard = []
    with os.fdopen(answers) as reading:
        for _ in range(3):
            heard.append(json.loads(reading.readline())["say"])
            os.write(commands, b'{"do": "go", "steps": 4}\n')
    assert heard == ["warm", "block", "block"]
    assert numbers.came_first[:3] == [True, True, True]
