"""The time that the trace window takes for itself is none of the program's, and what is counted in it is."""

from __future__ import annotations

import time
import weakref
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from flatout.observe.observer import Observer
from flatout.observe.probes.pipelines import Pipelines
from flatout.observe.reading import pipelines
from flatout.observe.reading.recording import Recording
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


class Iterator:
    """As one over a dataset, whose model TensorFlow keeps."""

    def __init__(self) -> None:
        self.given = 0


def _model_of(iterator: Iterator) -> Any:
    names = {1: "Root", 2: "Map", 3: "TensorSlice"}
    rows = {
        number: SimpleNamespace(
            id=number,
            name=name,
            inputs=[number + 1] if number < 3 else [],
            num_elements=iterator.given,
            processing_time=1e6,
            bytes_produced=0,
            buffered_bytes=0,
            buffered_elements=0,
            parameters=[],
            autotune=False,
        )
        for number, name in names.items()
    }
    return SimpleNamespace(nodes=rows, output=1)


def test_what_a_pipeline_gives_in_the_window_is_counted() -> None:
    """The iterator of a validation lives on through the next epoch and gives nothing there."""
    facts: dict[str, list[dict[str, Any]]] = {"pipeline": [], "pipeline-model": []}
    recorder = SimpleNamespace(fact=lambda kind, **fact: facts[kind].append(fact))
    tensorflow = SimpleNamespace(data=SimpleNamespace(experimental=SimpleNamespace(get_model_proto=_model_of)))
    probe = Pipelines(SimpleNamespace(recorder=recorder), tensorflow)  # type: ignore[arg-type]
    training, validation = Iterator(), Iterator()
    for number, iterator in enumerate((training, validation)):
        probe.newest.append((number, weakref.ref(iterator)))
        stages = [{"name": "TensorSlice"}, {"name": "Map"}]
        facts["pipeline"].append({"number": number, "stages": stages})
    training.given, validation.given = 100, 40
    probe.count_elements()
    training.given = 120
    probe.ask_model()
    found = pipelines.read(Recording(Path(), facts), None, None)
    assert [one.elements for one in found] == [120, 40]
    assert [one.options.drawn for one in found] == [20, 0]
