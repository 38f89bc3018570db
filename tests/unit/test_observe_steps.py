"""Which stream of ticks is the step, and what its steps took: on recordings whose times are given."""

from __future__ import annotations

import dataclasses
import json
import sys
from pathlib import Path
from time import perf_counter
from typing import Any

import numpy as np
import pytest

from flatout.model.case import Program
from flatout.model.evidence.program import CpuUse, KerasCall
from flatout.model.evidence.steps import EagerLine, LineTime
from flatout.observe.eager_lines import EagerLines
from flatout.observe.observer import Observer
from flatout.observe.probes.steps_of_keras import _Asked, _Calls
from flatout.observe.reading import step_summary, steps
from flatout.observe.reading.evidence import host, program
from flatout.observe.reading.evidence.program import undisturbed
from flatout.observe.reading.notes import _on_the_end, on_other_processes
from flatout.observe.reading.recording import Recording, load
from flatout.observe.reading.steps import Measured, Stream
from flatout.observe.recorder import Recorder
from flatout.observe.settings import ObserveSettings

Row = tuple[float, ...]


def ticks(
    stream: int,
    count: int,
    period: float = 0.1,
    first: float = 0.0,
    n: int = 1,
    own: float = 0.05,
    waits: float = 0.0,
) -> list[Row]:
    """Ticks that end every `period` seconds; each lasted `own` and waited `waits` for its input."""
    rows = []
    for number in range(1, count + 1):
        end = first + number * period
        rows.append((stream, n, end - own, end, waits * number, 0.0, own * number, 0.0))
    return rows


def recording(streams: dict[int, str], rows: list[Row], **facts: list[dict[str, Any]]) -> Recording:
    known = [{"id": number, "of": kind, "name": kind, "stack": []} for number, kind in streams.items()]
    given = {name.replace("_", "-"): value for name, value in facts.items()}
    return Recording(Path(), {"stream": known, **given}, np.array(sorted(rows, key=lambda row: row[3])))


def chosen(given: Recording) -> Stream:
    found = steps.choose(steps.streams(given))
    assert found is not None
    return found


def measured(given: Recording) -> Measured:
    return steps.measure(given, chosen(given))


# ── choosing ─────────────────────────────────────────────────────────────────────────────────────────────────


def test_fit_comes_before_the_function_and_the_input_inside_it() -> None:
    rows = [*ticks(0, 50), *ticks(1, 50), *ticks(2, 50)]
    assert chosen(recording({0: "input", 1: "train-function", 2: "fit"}, rows)).kind == "fit"


def test_a_short_phase_is_not_the_step() -> None:
    """Two batches of fit to warm up, then a loop of its own for a hundred steps."""
    rows = [*ticks(0, 2), *ticks(1, 100, first=10)]
    assert chosen(recording({0: "fit", 1: "apply"}, rows)).kind == "apply"


@pytest.mark.parametrize(("facts", "kind"), [({"inside": True}, "fit"), ({}, "evaluate")])
def test_the_validation_of_a_fit_is_not_the_step_however_long_it_takes(facts: dict[str, Any], kind: str) -> None:
    """Ten times as many batches of validation as of training; `evaluate` of its own is a phase like any other."""
    given = recording({0: "fit", 1: "evaluate"}, [*ticks(0, 20), *ticks(1, 200, first=2)])
    given.all("stream")[1].update(facts)
    assert chosen(given).kind == kind


@pytest.mark.parametrize(("steps_of_loop", "kind"), [(100, "fit"), (300, "apply")])
def test_of_two_phases_the_longer_one_is_the_step(steps_of_loop: int, kind: str) -> None:
    rows = [*ticks(0, 200), *ticks(1, steps_of_loop, first=25)]
    assert chosen(recording({0: "fit", 1: "apply"}, rows)).kind == kind


def test_of_two_optimizers_one_is_the_step() -> None:
    """A GAN: both tick once a step. The first made is reported, and the step is counted once."""
    rows = [*ticks(0, 40), *ticks(1, 40, first=0.04)]
    found = measured(recording({0: "apply", 1: "apply"}, rows))
    assert (found.stream.id, found.count) == (0, 40)
    assert np.median(found.sample) == pytest.approx(0.1)


def test_of_an_inner_and_an_outer_loop_the_outer_one_is_the_step() -> None:
    """Five updates of the critic for each of the generator."""
    rows = [*ticks(0, 200, period=0.02), *ticks(1, 40, period=0.1)]
    assert chosen(recording({0: "apply", 1: "apply"}, rows)).id == 1


def test_a_long_pause_covers_nothing() -> None:
    rows = [*ticks(0, 10), *ticks(0, 10, first=1000)]
    (stream,) = steps.streams(recording({0: "apply"}, rows))
    assert stream.covered == pytest.approx(0.05 + 18 * 0.1)


def test_nothing_ticked() -> None:
    assert steps.choose([]) is None
    empty = Recording(Path(), {"stream": [{"id": 0, "of": "fit"}]})
    assert steps.choose(steps.streams(empty)) is None


# ── measuring ────────────────────────────────────────────────────────────────────────────────────────────────


def test_a_step_lasts_from_end_to_end() -> None:
    """The input and Python between two ticks are in it."""
    found = measured(recording({0: "apply"}, ticks(0, 20, period=0.1, own=0.03, waits=0.06)))
    assert found.time[1:] == pytest.approx([0.1] * 19)
    assert found.input[1:] == pytest.approx([0.06] * 19)
    assert found.call[1:] == pytest.approx([0.03] * 19)
    assert (found.count, found.warmup) == (20, 1)


def test_the_first_batch_of_an_epoch_begins_with_itself() -> None:
    """Ten batches, two seconds of validation, ten batches: the validation is no step."""
    rows = [*ticks(0, 10), *ticks(0, 10, first=3.0)]
    epochs = [{"number": 0, "at": -0.01}, {"number": 1, "at": 3.01}]
    with_epochs = measured(recording({0: "fit"}, rows, epoch=epochs))
    assert with_epochs.time[10] == pytest.approx(0.05)
    assert measured(recording({0: "fit"}, rows)).time[10] == pytest.approx(2.1)


def test_a_call_of_many_steps_counts_as_many() -> None:
    found = measured(recording({0: "fit"}, ticks(0, 12, period=0.8, n=8, own=0.7)))
    assert found.count == 96
    assert found.time[1:] == pytest.approx([0.1] * 11)
    assert len(found.sample) == 11 * 8
    assert found.warmup == 8


def test_the_late_first_call_of_an_epoch_is_late_by_all_of_its_steps() -> None:
    """Calls of eight steps take 0.8 s, the first of each epoch 2.4 s: 1.6 s more, of which half is allowed."""
    rows, epochs, end = [], [], 0.0
    for number in range(10):
        epochs.append({"number": number, "at": end + 0.001})
        for call in range(4):
            took = 2.4 if call == 0 else 0.8
            rows.append((0, 8, end, end + took, 0.0, 0.0, 0.0, 0.0))
            end += took
    given = recording({0: "fit"}, rows, epoch=epochs)
    (start,) = host.epoch_starts(given, measured(given))
    assert start.ms * start.steps == pytest.approx(start.epochs * 800)


def test_more_steps_may_have_been_counted_than_kept() -> None:
    given = recording({0: "fit"}, ticks(0, 20), stream_count=[{"id": 0, "count": 10}, {"id": 0, "count": 5000}])
    assert measured(given).count == 5000


def test_opening_and_closing_the_window_touch_their_steps_only() -> None:
    """The window opens in step 5 (counted from 0) and closes after step 9; what closing took lies in step 10."""
    window = [{"opened": 0.55, "at": 1.01, "done": 1.09}]
    found = measured(recording({0: "apply"}, ticks(0, 20), window_close=window))
    assert np.flatnonzero(found.in_window).tolist() == [5, 6, 7, 8, 9]
    assert np.flatnonzero(found.steady & ~found.clean).tolist() == [5, 10]
    assert len(found.sample) == 20 - 1 - 2


def test_a_window_that_takes_long_to_close_touches_all_steps_until_then() -> None:
    window = [{"opened": 0.55, "at": 1.01, "done": 1.25}]
    found = measured(recording({0: "apply"}, ticks(0, 20), window_close=window))
    assert np.flatnonzero(found.steady & ~found.clean).tolist() == [5, 10, 11, 12]


def test_warm_up_ends_after_the_last_early_trace() -> None:
    totals = [0.0, 0.5, 0.5, *[0.58] * 37]  # of tracing: the second step was traced, and the fourth again
    rows = [(*row[:5], total, *row[6:]) for row, total in zip(ticks(0, 40), totals, strict=True)]
    found = measured(recording({0: "train-function"}, rows))
    assert found.warmup == 4
    assert found.steady.tolist() == [False] * 4 + [True] * 36
    assert found.trace.sum() == pytest.approx(0.58)


def test_slow_steps_at_the_beginning_are_warm_up_later_ones_are_not() -> None:
    ends = np.cumsum([0.5, 0.4, 0.1, 0.1, 0.1, 0.1, 0.1, 0.1, 0.1, 0.9, *[0.1] * 10])
    rows = [(0, 1, end - 0.05, end, 0, 0, 0, 0) for end in ends]
    found = measured(recording({0: "apply"}, rows))
    assert found.warmup == 2
    assert found.sample.max() == pytest.approx(0.9)


def test_a_single_step_is_measured_by_itself() -> None:
    found = measured(recording({0: "apply"}, ticks(0, 1)))
    assert found.sample == pytest.approx([0.05])
    assert found.warmup == 0


# ── recordings that were cut short ───────────────────────────────────────────────────────────────────────────


def written(directory: Path) -> list[Row]:
    rows = ticks(0, 5)
    facts = [{"kind": "start", "at": 1.0}, {"kind": "import", "package": "tensorflow"}, {"kind": "end"}]
    (directory / "facts.jsonl").write_text("".join(json.dumps(fact) + "\n" for fact in facts))
    (directory / "counters.jsonl").write_text('{"kind": "pulls", "n": 1}\n{"kind": "pulls", "n": 7}\n')
    (directory / "ticks.bin").write_bytes(np.array(rows).tobytes())
    return rows


def test_a_whole_recording(tmp_path: Path) -> None:
    rows = written(tmp_path)
    found = load(tmp_path)
    assert (found.started, found.ended, found.damaged) == (True, True, 0)
    assert found.imported("tensorflow") == {"package": "tensorflow"}
    assert found.imported("keras") is None
    assert found.last("pulls") == {"n": 7}
    assert [fact["n"] for fact in found.all("pulls")] == [1, 7]
    assert found.last("nothing") == {}
    assert found.ticks.tolist() == [list(row) for row in rows]


@pytest.mark.parametrize("lost", [1, 7, 8, 63, 64, 65, 5 * 64])
def test_half_a_tick_is_dropped(lost: int, tmp_path: Path) -> None:
    rows = written(tmp_path)
    whole = (tmp_path / "ticks.bin").read_bytes()
    (tmp_path / "ticks.bin").write_bytes(whole[: len(whole) - lost])
    found = load(tmp_path)
    assert found.ticks.shape == ((len(whole) - lost) // 64, 8)
    assert found.ticks.tolist() == [list(row) for row in rows[: len(found.ticks)]]


def test_every_cut_of_the_facts_can_be_read(tmp_path: Path) -> None:
    written(tmp_path)
    whole = (tmp_path / "facts.jsonl").read_bytes()
    for length in range(len(whole) + 1):
        (tmp_path / "facts.jsonl").write_bytes(whole[:length])
        found = load(tmp_path)
        assert found.damaged <= 1
        assert sum(len(facts) for facts in found.facts.values()) >= whole[:length].count(b"\n") + 2


def test_lines_that_are_no_facts_are_counted(tmp_path: Path) -> None:
    written(tmp_path)
    with open(tmp_path / "facts.jsonl", "ab") as stream:
        stream.write(b'[1, 2]\n{"no": "kind"}\n\xff\xfe\n"text"\n7\nnull\n{"kind": "late"}\n')
    found = load(tmp_path)
    assert found.damaged == 6
    assert found.last("late") == {}
    assert "late" in found.facts


def test_no_recording_at_all(tmp_path: Path) -> None:
    found = load(tmp_path)
    assert (found.started, found.facts, found.ticks.shape) == (False, {}, (0, 8))


def eager_line(at: list[float], count: int = 0) -> EagerLine:
    """A line with eight calls between these times, in a program whose twenty steps take from 0.05 to 2.0."""
    row = ["train.py", 3, "play", 1, 8, 0.8, *at]
    given = recording(
        {0: "fit"}, ticks(0, 20), stream_count=[{"id": 0, "count": count}], eager_lines=[{"of": "model", "rows": [row]}]
    )
    (found,) = host.eager_lines(given, measured(given))
    return found


def test_eager_calls_before_and_after_the_steps_are_told_apart() -> None:
    assert [eager_line(at).outside for at in ([-9.0, 0.04], [2.0, 9.0], [-1.0, 1.0], [1.0, 9.0])] == [
        *(True, True),
        *(False, False),
    ]
    assert not eager_line([]).outside, "older recordings do not have the times"
    assert not eager_line([2.0, 9.0], count=500).outside, "the later steps have no rows"


def test_ticks_of_several_threads_are_put_in_order() -> None:
    """Two threads predict: what one of them has put down late has ended before what the other put down."""
    rows = ticks(0, 20)
    rows[18], rows[19] = rows[19], rows[18]
    given = dataclasses.replace(recording({0: "predict"}, rows), ticks=np.array(rows))
    found = measured(given)
    assert found.time.min() > 0
    samples = [[30, [["train.py", 9, "f", 1]], [], False, [1.95, 1.99]]]
    given.facts["samples"] = [{"rows": samples}]
    assert host.samples(given, found)


def test_steps_that_took_no_time_have_no_trend() -> None:
    found = measured(recording({0: "session"}, ticks(0, 40, period=0.0, own=0.0)))
    assert step_summary.summarize(Recording(Path()), found, None, {}).trend == 0.0


def test_lines_of_eager_calls_have_their_first_and_last_moment(tmp_path: Path) -> None:
    lines = EagerLines(Observer(Recorder(str(tmp_path)), ObserveSettings(trace=False)), "model")
    began = perf_counter()
    for _ in range(3):
        lines.add(sys._getframe(), 0.0)
    ((calls, _, first, last),) = lines.rows.values()
    assert calls == 3
    assert began <= first < last <= perf_counter()


@pytest.mark.parametrize(("began", "outside"), [(0.5, False), (2.5, True)])
def test_calls_of_keras_after_the_last_step_are_outside(began: float, outside: bool) -> None:
    row = ["train.py", 40, "<module>", 30, 1.0, 30, 30, 0.1, 0, 30, 0, 0, began, 4.0]
    given = recording({0: "tape"}, ticks(0, 20), **{"keras-calls": [{"method": "predict", "rows": [row]}]})
    (call,) = program.keras(given, measured(given))
    assert isinstance(call, KerasCall)
    assert (call.epochs, call.outside) == (30, outside)
    older = recording({0: "tape"}, ticks(0, 20), **{"keras-calls": [{"method": "predict", "rows": [row[:12]]}]})
    assert [item.outside for item in program.keras(older, measured(older)) if isinstance(item, KerasCall)] == [False]


def test_calls_of_keras_have_their_first_and_last_moment(tmp_path: Path) -> None:
    calls = _Calls(Observer(Recorder(str(tmp_path)), ObserveSettings(trace=False)), "predict")
    began = perf_counter()
    for _ in range(3):
        calls.add(calls.rows, ("train.py", 40, "f"), 0.0, 0, _Asked)
    ((*_, first, last),) = calls.rows.values()
    assert began <= first < last <= perf_counter()


def test_a_fit_for_each_batch_is_a_step_from_end_to_end() -> None:
    """Each batch is the first of its epoch: what lies between is paid at every step, and belongs to it."""
    rows = ticks(0, 40, period=0.1, own=0.01)
    begins = [{"at": end - 0.02} for _, _, _, end, *_ in rows]
    assert np.median(measured(recording({0: "fit"}, rows, epoch=begins)).sample) == pytest.approx(0.1)


def test_steps_during_which_others_had_the_processors_are_left_out_of_the_mean(monkeypatch) -> None:
    """Of 100 steps of 0.1 s, one is held up for three seconds, in which the machine is neither idle nor ours."""
    monkeypatch.setattr("os.cpu_count", lambda: 2)
    rows = [*ticks(0, 50), *ticks(0, 50, first=8)]
    seconds = np.arange(0, 13.5, 0.5)
    idle = np.interp(seconds, [0, 5, 8, 13], [0, 5, 5, 10])  # one of two processors
    used = np.interp(seconds, [0, 5, 8, 13], [0, 5, 5, 10])
    looked = [[at, 0, own, free] for at, own, free in zip(seconds, used, idle, strict=True)]
    given = recording({0: "apply"}, rows, resources=[{"rows": looked}])
    (found,) = undisturbed(given, measured(given))
    assert found.value == pytest.approx(100)
    assert measured(given).sample.mean() == pytest.approx(0.13, rel=0.03)
    quiet = recording({0: "apply"}, ticks(0, 50), resources=[{"rows": looked[:10]}])
    assert undisturbed(quiet, measured(quiet)) == []


def test_a_run_that_had_little_of_the_processors_says_so() -> None:
    (note,) = on_other_processes([CpuUse(0.5, cores=2, idle=0.5)])
    assert "Other programs used 50 % of the processors" in note.text
    assert on_other_processes([CpuUse(1.2, cores=2, idle=0.6)]) == []


# ── which lines the steps' time goes to ──────────────────────────────────────────────────────────────────────


def line_shares(given: Recording) -> dict[int, float]:
    found = (item for item in host.samples(given, measured(given)) if isinstance(item, LineTime))
    return {item.where.line or 0: item.share for item in found if item.where is not None}


def looks(line: int, *moments: list[float]) -> list[Any]:
    at = [moment for some in moments for moment in some]
    return [len(at), [["/no/train.py", line, "train", 1]], None, False, at]


def test_time_of_lines_is_that_of_steady_steps() -> None:
    """Half of all looks saw the first step being made and the trace window being written: no step is like that."""
    window = {"opened": 10.9, "at": 11.0, "done": 14.0, "path": None}
    rows = [*ticks(0, 10, first=9.9), *ticks(0, 50, first=14.0)]
    making = [9.9 + number / 100 for number in range(5)]
    writing = [11.1 + number / 10 for number in range(25)]
    steady = [14.25 + 0.1 * number for number in range(40)]
    busy = [look + 0.03 for look in steady[:10]]
    rows_seen = [looks(7, making, writing, busy), looks(8, steady)]
    given = recording({0: "train-function"}, rows, window_close=[window], samples=[{"rows": rows_seen}])
    assert line_shares(given) == {7: pytest.approx(0.2), 8: pytest.approx(0.8)}


def test_few_looks_in_steady_steps_are_not_judged_by_alone() -> None:
    rows_seen = [looks(7, [0.01 * number for number in range(1, 9)]), looks(8, [1.01, 1.11])]
    given = recording({0: "train-function"}, ticks(0, 20), samples=[{"rows": rows_seen}])
    assert line_shares(given) == {7: pytest.approx(0.8), 8: pytest.approx(0.2)}


def test_looks_of_older_recordings_have_no_moments() -> None:
    given = recording({0: "train-function"}, ticks(0, 20), samples=[{"rows": [looks(7, [1.0, 1.1])[:4]]}])
    assert line_shares(given) == {7: 1.0}


# ── how the recording ends ───────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize(
    ("program", "told"),
    [
        (Program(("train.py",), ".", exit_code=0), ["The recording breaks off before the program's end"]),
        (Program(("train.py",), ".", signal="SIGSEGV"), ["The program ended abruptly"]),
        (Program(("train.py",), "."), []),  # flatout itself has stopped it
    ],
)
def test_a_recording_without_an_end_is_noted_unless_flatout_has_stopped_the_program(program, told) -> None:
    given = recording({0: "fit"}, ticks(0, 50), start=[{}])
    assert [note.text.partition(":")[0].partition(";")[0] for note in _on_the_end(given, program)] == told
