"""The tree of a run: spans are exact, samples say which lines, and the parts add up to the wall clock."""

from __future__ import annotations

import json
import threading
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from flatout.model.run_tree import RunPart, RunTree
from flatout.observe import spans as spans_module
from flatout.observe.observer import Observer
from flatout.observe.reading import run_tree, steps
from flatout.observe.reading.recording import Recording
from flatout.observe.reading.run_samples import Sample, phases
from flatout.observe.recorder import Recorder
from flatout.observe.run_sampler import RunSampler
from flatout.observe.settings import ObserveSettings
from flatout.observe.spans import MOST_NODES, Key, Spans


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> list[float]:
    now = [100.0]
    monkeypatch.setattr(spans_module, "perf_counter", lambda: now[0])
    return now


def test_a_span_has_its_own_seconds_and_those_of_its_children(clock: list[float]) -> None:
    spans = Spans()
    spans.begin()
    outer = spans.enter(Key("fit", "fit"))
    clock[0] += 2
    inner = spans.enter(Key("callback", "Gallery.on_epoch_end"))
    clock[0] += 3
    spans.leave(inner)
    spans.leave(outer)
    assert [(row[2], row[6], row[7]) for row in spans.rows(clock[0])] == [
        ("run", 0, 0),
        ("fit", 1, 5),
        ("callback", 1, 3),
    ]
    assert spans.current.key.kind == "run"


def test_a_span_that_nobody_left_ends_with_the_one_around_it(clock: list[float]) -> None:
    spans = Spans()
    spans.begin()
    depth = spans.enter(Key("fit", "fit"))
    spans.enter(Key("steps", "fit"))
    clock[0] += 4
    spans.leave(depth)
    assert [row[7] for row in spans.rows(clock[0])] == [0, 4, 4]
    assert spans.is_in("run")


def test_what_goes_on_is_one_call(clock: list[float]) -> None:
    """A function is traced twice at its first call: what is neither trace counts once."""
    spans = Spans()
    spans.begin()
    for _ in range(2):
        spans.go_on("first-call")
        depth = spans.enter(Key("tracing", "step"))
        clock[0] += 2
        spans.leave(depth)
        spans.enter(Key("first-call", "step"))
        clock[0] += 3
    spans.leave_if("first-call")
    assert [(row[2], row[6], row[7]) for row in spans.rows(clock[0])] == [
        ("run", 0, 0),
        ("tracing", 2, 4),
        ("first-call", 1, 6),
    ]
    assert spans.is_in("run")


def test_spans_under_way_count_as_far_as_they_are(clock: list[float]) -> None:
    spans = Spans()
    spans.begin()
    spans.enter(Key("fit", "fit"))
    clock[0] += 1
    spans.enter(Key("callback", "Slow.on_epoch_end"))
    clock[0] += 6
    assert [row[7] for row in spans.rows(clock[0])] == [0, 7, 6]


def test_spans_take_no_more_memory_with_more_calls() -> None:
    spans = Spans()
    spans.begin()
    for number in range(5 * MOST_NODES):
        spans.leave(spans.enter(Key("checkpoint", f"save {number}")))
    assert len(spans.nodes) <= 2 * MOST_NODES
    assert spans.current is spans.nodes[0]


def test_other_threads_enter_no_span() -> None:
    spans = Spans()
    spans.begin()
    seen: list[bool] = []
    thread = threading.Thread(target=lambda: seen.append(spans.here))
    thread.start()
    thread.join()
    assert seen == [False]
    assert spans.here


def test_a_first_batch_turns_the_start_of_an_epoch_into_steps(clock: list[float]) -> None:
    spans = Spans()
    spans.begin()
    fit = spans.enter(Key("fit", "fit", "train.py", 9))
    spans.enter(Key("epoch-start", "fit", "train.py", 9))
    clock[0] += 1
    spans.first_batch()
    clock[0] += 5
    assert spans.is_in("steps")
    spans.leave(fit)
    assert [(row[2], row[7]) for row in spans.rows(0.0)][2:] == [("epoch-start", 1), ("steps", 5)]


def test_the_sampler_writes_a_state_that_replaces_the_last(tmp_path: Path) -> None:
    observer = Observer(Recorder(str(tmp_path)), ObserveSettings(trace=False))
    observer.spans.begin()
    sampler = RunSampler(observer)
    for _ in range(3):
        sampler.look()
        sampler.write()
    lines = (tmp_path / "state-run.jsonl").read_text().splitlines()
    assert len(lines) == 1
    fact = json.loads(lines[0])
    assert fact["looks"] == 3
    assert sum(row[5] for row in fact["rows"]) == 3


@pytest.mark.parametrize(
    ("since", "steps", "microseconds", "interval"),
    [(0, False, 100, 0.02), (0, True, 900, 0.04), (60, True, 60, 0.04), (60, True, 100, 0.05), (60, True, 9000, 0.2)],
)
def test_looks_take_a_small_share_of_a_run(
    since: float, steps: bool, microseconds: float, interval: float, tmp_path: Path
) -> None:
    observer = Observer(Recorder(str(tmp_path)), ObserveSettings(trace=False))
    if steps:
        observer.streams.make("fit", "steps", "fit")
    sampler = RunSampler(observer)
    sampler.last, sampler.looks, sampler.took = sampler.began + since, 1000, microseconds / 1000
    assert sampler.interval() == pytest.approx(interval)


PROGRAM = """\
rows = parse()
for epoch in range(3):
    for batch in dataset:
        step(batch)
    for batch in validation:
        check(batch)
    score()
"""


def recording_of(directory: Path, spans: list[list[Any]], rows: list[list[Any]], **more: Any) -> Recording:
    run = {"at": 19.0, "spans": [[0, -1, "run", "", "", 0, 0, 0.0], *spans], "rows": rows, "looks": 9}
    facts: dict[str, list[dict[str, Any]]] = {
        "start": [{"at": 10.5}],
        "launch": [{"began": 10.0, "ended": 20.0}],
        "run": [run],
        "end": [{"began": 19.0, "at": 19.2}],
        **more,
    }
    return Recording(directory, {name: found for name, found in facts.items() if found})


def seconds_by_kind(tree: RunTree) -> dict[str, float]:
    return {part.kind: round(tree.seconds_of(part.kind), 6) for part in tree.parts}


def test_the_tree_adds_up_to_the_wall_clock(tmp_path: Path) -> None:
    spans = [
        [1, 0, "fit", "fit", "/x/train.py", 9, 1, 6.0],
        [2, 1, "prepare", "fit", "/x/train.py", 9, 1, 0.5],
        [3, 1, "steps", "fit", "/x/train.py", 9, 2, 2.0],
        [4, 1, "callback", "Gallery.on_epoch_end", "/x/train.py", 3, 2, 3.0],
        [5, 4, "checkpoint", "Model.save", "/x/train.py", 4, 2, 1.0],
    ]
    line = ["/x/train.py", 2, "<module>", 1]
    rows = [[0, 0, "tensorflow", "tensorflow", 1.5, 60, [line]], [0, 0, "", "", 0.5, 20, [line]]]
    tree = run_tree.read(recording_of(tmp_path, spans, rows), None, [], None)
    assert tree is not None
    assert sum(part.seconds for part in tree.parts) == pytest.approx(tree.seconds) == pytest.approx(10.0)
    found = seconds_by_kind(tree)
    assert found["steps"] == 2.0
    assert found["callback"] == 2.0, "the checkpoint is its own part"
    assert found["checkpoint"] == 1.0
    assert found["interpreter"] == 0.5
    assert found["import"] == pytest.approx(1.5 * 2.5 / 2)
    assert found["exit"] == pytest.approx(0.8)
    assert found["observer"] == pytest.approx(0.2)


def test_a_run_that_was_killed_has_the_tree_of_what_was_seen(tmp_path: Path) -> None:
    tree = run_tree.read(
        recording_of(tmp_path, [], [[0, 0, "", "", 2.0, 9, [["/x/a.py", 1, "f", 1]]]], end=[]), None, [], None
    )
    assert tree is not None
    assert not tree.complete
    assert seconds_by_kind(tree)["unattributed"] == pytest.approx(1.0)
    assert sum(part.seconds for part in tree.parts) == pytest.approx(10.0)


@pytest.mark.parametrize("kind", ["run", "launch", "start"])
def test_without_its_facts_there_is_no_tree(tmp_path: Path, kind: str) -> None:
    assert run_tree.read(recording_of(tmp_path, [], [], **{kind: []}), None, [], None) is None


def test_a_line_is_the_deepest_one_that_has_most_of_the_time(tmp_path: Path) -> None:
    main, load, cell = ["/x/a.py", 9, "<module>", 1], ["/x/a.py", 5, "load", 4], ["/x/a.py", 2, "cell", 1]
    rows = [[0, 0, "", "", 4.0, 40, [cell, load, main]], [0, 0, "", "", 1.0, 10, [load, main]]]
    tree = run_tree.read(recording_of(tmp_path, [], rows), None, [], None)
    assert tree is not None
    (part,) = tree.of("program")
    (line,) = part.lines()
    assert line.where is not None
    assert (line.where.line, line.seconds) == (2, pytest.approx(part.seconds))
    assert [place.line for place in line.via] == [9, 5]


def test_own_seconds_are_those_of_no_part() -> None:
    part = RunPart("callback", "A.on_epoch_end", 5.0, parts=(RunPart("prediction", "predict", 2.0),))
    assert part.own_seconds == 3.0
    assert part.under("prediction") == 2.0


def test_what_flatout_does_inside_of_a_callback_is_taken_out_of_all_around_it(tmp_path: Path) -> None:
    spans = [
        [1, 0, "fit", "fit", "/x/train.py", 9, 1, 6.0],
        [2, 1, "callback", "Score.on_epoch_end", "/x/train.py", 3, 2, 4.0],
        [3, 2, "prediction", "predict", "/x/train.py", 4, 2, 3.0],
        [4, 3, "observer", "flatout", "", 0, 1, 1.0],
    ]
    tree = run_tree.read(recording_of(tmp_path, spans, []), None, [], None)
    assert tree is not None
    assert sum(part.seconds for part in tree.parts) == pytest.approx(10.0)
    (part,) = tree.of("callback")
    assert (part.seconds, part.parts[0].seconds) == (3.0, 2.0)


@pytest.mark.parametrize("steps_per_call", [1, 8])
def test_the_first_batch_of_an_epoch_counts_as_all_of_its_steps(tmp_path: Path, steps_per_call: int) -> None:
    """Five epochs of four calls, 0.1 s each; nothing but the first call lies at the beginning of an epoch."""
    ends = [11.0 + 0.1 * number for number in range(1, 21)]
    rows = [[0.0, steps_per_call, end - 0.1, end, 0.0, 0.0, 0.0, 0.0] for end in ends]
    epochs = [{"number": number, "at": 11.0 + 0.4 * number - 0.001} for number in range(5)]
    spans = [
        [1, 0, "fit", "fit", "/x/train.py", 9, 1, 2.0],
        [2, 1, "epoch-start", "fit", "/x/train.py", 9, 5, 0.5],
        [3, 1, "steps", "fit", "/x/train.py", 9, 5, 1.5],
    ]
    recording = recording_of(tmp_path, spans, [], epoch=epochs)
    stream = steps.Stream(0, "fit", "fit", [], {}, np.array(rows), 20 * steps_per_call)
    tree = run_tree.read(recording, stream, [stream], steps.measure(recording, stream))
    assert tree is not None
    assert tree.seconds_of("steps") == pytest.approx(2.0)
    assert tree.seconds_of("epoch-start") == pytest.approx(0.0, abs=1e-6)


def test_the_tree_adds_up_where_two_functions_are_called_first_at_the_start_of_an_epoch(tmp_path: Path) -> None:
    """Ten epochs begin with 0.2 s of the iterator each; two of them trace, 0.1 and 0.9 s, and have it inside."""
    spans = [
        [1, 0, "fit", "fit", "/x/train.py", 9, 1, 4.0],
        [2, 1, "epoch-start", "fit", "/x/train.py", 9, 10, 2.6],
        [3, 2, "first-call", "small", "", 0, 1, 0.1],
        [4, 2, "first-call", "large", "", 0, 1, 0.9],
    ]
    tree = run_tree.read(recording_of(tmp_path, spans, []), None, [], None)
    assert tree is not None
    assert sum(part.seconds for part in tree.parts) == pytest.approx(tree.seconds)
    assert tree.seconds_of("tracing") == pytest.approx(0.7)
    assert tree.seconds_of("epoch-start") == pytest.approx(1.6 + 1.4 + 0.3)


def test_a_loop_beside_that_of_the_steps_is_validation(tmp_path: Path) -> None:
    program = tmp_path / "train.py"
    program.write_text(PROGRAM)
    file = str(program)
    stream = steps.Stream(0, "train-function", "step", [[file, 4, "<module>", 1]], {}, np.zeros((0, 8)), 30)
    spans = [[1, 0, "iterator", "dataset", file, 3, 3, 0.3], [2, 0, "iterator", "dataset", file, 5, 3, 0.2]]
    rows = [
        *(
            [0, 0, "", "", 1.0, 9, [[file, 1, "<module>", 1]]],
            [0, 1, "", "tensorflow", 2.0, 9, [[file, 4, "<module>", 1]]],
        ),
        *(
            [0, 1, "", "tensorflow", 3.0, 9, [[file, 6, "<module>", 1]]],
            [0, 1, "", "", 2.0, 9, [[file, 7, "<module>", 1]]],
        ),
    ]
    tree = run_tree.read(recording_of(tmp_path, spans, rows), stream, [stream], None)
    assert tree is not None
    found = seconds_by_kind(tree)
    assert found["before"] == 1.0
    assert found["steps"] == 2.0
    assert found["validation"] == pytest.approx(3.2)
    assert found["epoch-start"] == pytest.approx(0.3)
    assert found["program"] == 2.0
    assert {part.where.line for part in tree.of("validation") if part.where is not None} == {5}


def test_steps_are_in_the_loop_that_calls_them_also_where_the_first_call_was_made_before_it(tmp_path: Path) -> None:
    program = tmp_path / "train.py"
    program.write_text("step(first)\nfor batch in data:\n    step(batch)\nfor row in rows:\n    use(row)\n")
    file = str(program)
    stream = steps.Stream(0, "train-function", "step", [[file, 1, "<module>", 1]], {}, np.zeros((0, 8)), 30)
    found = phases(stream, [stream], [])
    kinds = [found.kind_of(Sample(0, 1, "", "", 1.0, ((file, line, "<module>", 1),))) for line in (2, 3, 5)]
    assert kinds == ["steps", "steps", "program"]


def test_what_was_trained_before_is_no_start_of_the_steps(tmp_path: Path) -> None:
    """Two loops, each with an optimizer of its own, as notebooks have them."""
    program = tmp_path / "train.py"
    program.write_text("for a in data:\n    one.apply(a)\nbuilt = make()\nfor b in data:\n    two.apply(b)\n")
    file = str(program)
    first, second = (
        steps.Stream(rank, "apply", "Adam", [[file, line, "<module>", 1]], {}, np.zeros((0, 8)), 30)
        for rank, line in ((0, 2), (1, 5))
    )
    found = phases(second, [first, second], [])
    kinds = [found.kind_of(Sample(0, 1, "", "", 1.0, ((file, line, "<module>", 1),))) for line in (2, 3, 5)]
    assert kinds == ["program", "before", "before"]
    assert found.kind_of(Sample(0, 2, "", "", 1.0, ((file, 5, "<module>", 1),))) == "steps"


def test_two_optimizers_of_one_loop_start_together(tmp_path: Path) -> None:
    program = tmp_path / "train.py"
    program.write_text("for a in data:\n    one.apply(a)\n    two.apply(a)\n")
    file = str(program)
    first, second = (
        steps.Stream(rank, "apply", "Adam", [[file, line, "<module>", 1]], {}, np.zeros((0, 8)), 30)
        for rank, line in ((0, 2), (1, 3))
    )
    found = phases(second, [first, second], [])
    assert found.kind_of(Sample(0, 1, "", "", 1.0, ((file, 2, "<module>", 1),))) == "before"
