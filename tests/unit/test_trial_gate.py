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
from flatout.tune.child.gate import Gate, Scout


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


def test_a_scout_looks_longer_at_what_comes_after_a_short_training(monkeypatch):
    """Six steps of `fit`, then predictions for the rest of the program: these have to be seen as well."""
    ended = []
    monkeypatch.setattr(gates, "_leave", ended.append)
    monkeypatch.setattr("flatout.observe.child.finish", lambda observer: None)
    window = SimpleNamespace(opened_times=1, is_open=False, opened_for=None, best=0)
    recorder = SimpleNamespace(fact=lambda *args, **facts: None)
    fit, predict = SimpleNamespace(priority=100), SimpleNamespace(priority=50)

    def seconds_until_it_ends(later: SimpleNamespace) -> float:
        scout = Scout(SimpleNamespace(window=window, recorder=recorder))
        scout.tick(fit, 1.0, 1)
        ended.clear()
        return next(second for second in range(1, 60) if scout.tick(later, 1.0 + second, 1) or ended)

    assert seconds_until_it_ends(fit) == Scout.ENOUGH_SECONDS + 1
    assert seconds_until_it_ends(predict) == Scout.MOST_SECONDS + 1
