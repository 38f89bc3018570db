"""The time that the trace window takes for itself is none of the program's."""

from __future__ import annotations

import time
from pathlib import Path
from typing import Any

import pytest

from flatout.observe.observer import Observer
from flatout.observe.recorder import Recorder
from flatout.observe.settings import ObserveSettings


class SlowSession:
    def start(self, directory: str, options: dict[str, Any]) -> None:
        """The profiler is loaded."""

    def export_to_tb(self) -> None:
        time.sleep(0.01)


@pytest.fixture
def observer(tmp_path: Path) -> Observer:
    made = Observer(Recorder(str(tmp_path)), ObserveSettings())
    made.window.make_session = SlowSession
    return made


def test_the_clock_of_the_program_stands_while_the_trace_is_written(observer: Observer) -> None:
    plain, began = time.perf_counter(), observer.clock()
    observer.window.open(None)
    observer.window.close("seen")
    passed = observer.clock() - began
    assert observer.spans.taken() > 0
    assert passed <= time.perf_counter() - plain - observer.spans.taken()
