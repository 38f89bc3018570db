"""What runs after a program's end is not a step of it."""

from __future__ import annotations

from pathlib import Path

from flatout.observe.observer import Observer
from flatout.observe.recorder import Recorder
from flatout.observe.settings import ObserveSettings


def test_what_runs_after_the_end_is_not_counted(tmp_path: Path) -> None:
    observer = Observer(Recorder(str(tmp_path)), ObserveSettings(trace=False))
    stream = observer.streams.make("input", "data", "the pipeline")
    observer.ticks.tick(stream, 0.0, 1.0)
    observer.hooks.at_end.append(lambda: observer.ticks.tick(stream, 1.0, 2.0))
    observer.finish()
    observer.ticks.tick(stream, 2.0, 3.0)
    observer.look()
    assert (stream.count, stream.last) == (1, 1.0)
