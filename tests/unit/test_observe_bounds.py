"""The recording of a run with millions of steps is bounded, on disk and in memory."""

from __future__ import annotations

import tracemalloc
from pathlib import Path

import pytest

from flatout.observe import following, recorder
from flatout.observe.reading import notes
from flatout.observe.reading.recording import load
from flatout.observe.recorder import Recorder
from flatout.observe.streams import MOST_STREAMS, Streams

CALLS = 100_000
"""benchmarks/faults.py makes ten million."""


def test_a_fit_for_every_batch_is_recorded_in_part_and_counted(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(recorder, "MOST_FACTS", 5000)
    made = Recorder(str(tmp_path))
    for number in range(10_000):
        made.fact("epoch", number=0, at=float(number))
    size = (tmp_path / "facts.jsonl").stat().st_size
    tracemalloc.start()
    for number in range(CALLS - 10_000):
        made.fact("epoch", number=0, at=float(number))
    grown = tracemalloc.get_traced_memory()[0]
    tracemalloc.stop()
    with made.counting():
        pass
    made.fact("end", at=1.0)
    assert grown < 100_000
    assert (tmp_path / "facts.jsonl").stat().st_size < size + 100
    found = load(tmp_path)
    assert len(found.all("epoch")) == 5000
    assert found.all("left-out")[0]["facts"] == {"epoch": CALLS - 5000}
    assert found.ended
    told = [note.text for note in notes._on_left_out(found)]
    assert told == ["The recording is bounded: further facts were counted but not kept (95,000 of epoch)."]


def test_long_facts_are_bounded_by_their_bytes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(recorder, "MOST_BYTES", 1 << 16)
    made = Recorder(str(tmp_path))
    for _ in range(1000):
        made.fact("note", text="x" * 1000)
    assert (tmp_path / "facts.jsonl").stat().st_size < (1 << 16) + 2000


def test_kinds_are_bounded_each_for_itself(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(recorder, "MOST_FACTS", 10)
    made = Recorder(str(tmp_path))
    for number in range(100):
        made.fact("epoch", number=number)
    made.fact("exception", text="the end")
    assert load(tmp_path).all("exception")


def test_an_optimizer_for_every_step_does_not_make_streams_for_ever(tmp_path: Path) -> None:
    streams = Streams(Recorder(str(tmp_path)))
    made = [streams.make("apply", number, "Adam") for number in range(MOST_STREAMS + 500)]
    assert len(streams) == MOST_STREAMS + 1
    assert len({stream.id for stream in made}) == MOST_STREAMS + 1


def test_facts_reach_as_far_as_steps() -> None:
    assert recorder.MOST_FACTS >= following.MOST_ROWS
