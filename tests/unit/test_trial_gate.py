"""The gate at which a trial waits, with real pipes."""

from __future__ import annotations

import atexit
import dataclasses
import json
import os
import select
import sys
import threading
import time
from types import SimpleNamespace

import pytest

from flatout.model.case import Case, Finding
from flatout.model.evidence.program import KerasCall
from flatout.model.evidence.steps import StepStack, Stream
from flatout.observe.device_clock import DeviceClock
from flatout.observe.observer import Observer, TrialState
from flatout.observe.recorder import Recorder
from flatout.observe.settings import ObserveSettings
from flatout.observe.spans import Spans
from flatout.observe.streams import RANK
from flatout.observe.ticks import Ticks
from flatout.process.messages import decode, encode
from flatout.trial.child import gate as gates
from flatout.trial.child import scouting
from flatout.trial.child.gate import Gate
from flatout.trial.child.iterators import MOST, Keeper
from flatout.trial.child_process import Launch
from flatout.trial.messages import BlockDone, Go, Warm
from flatout.trial.settings import GateSettings, ScoutSettings
from flatout.tune.contestant import Block
from flatout.tune.scout import ranked


class Numbers:
    """Notes whether its file is written while the answer has not been given."""

    wanted = False

    def __init__(self, answers: int) -> None:
        self.answers = answers
        self.came_first: list[bool] = []

    def finish(self) -> None: ...

    def begin_epoch(self) -> None: ...

    def write(self) -> None:
        time.sleep(0.02)  # a slow disk: an answer that does not wait for it would be there by then
        self.came_first.append(not select.select([self.answers], [], [], 0)[0])


def test_the_numbers_are_written_before_the_answer_is_given(monkeypatch):
    """Whoever has the answer may end the process at once: what it computed must be on disk by then."""
    monkeypatch.setattr(gates, "_leave", sys.exit)  # a thread ends by it, the tests do not
    read, commands = os.pipe()
    answers, write = os.pipe()
    numbers = Numbers(answers)
    observer = SimpleNamespace(ticks=Ticks(), trial=TrialState(), injections=None, devices=DeviceClock(print))
    gate = Gate(observer, GateSettings(read, write, os.getpid()), numbers)
    atexit.unregister(gate._report_end)  # its pipe is closed long before these tests end
    stream = SimpleNamespace(rank=100)

    def program() -> None:
        try:
            for step in range(60):
                time.sleep(0.02)  # what a step takes
                observer.trial.epochs += step % 3 == 0
                gate.tick(stream, time.perf_counter(), 1)
        except SystemExit:
            pass
        finally:
            os.close(write)  # whatever went wrong, nobody waits for an answer any longer

    running = threading.Thread(target=program, daemon=True)
    running.start()
    heard = []
    with os.fdopen(answers) as reading:
        for _ in range(2):
            heard.append(decode(reading.readline(), Warm, BlockDone))
            os.write(commands, encode(Go(4)).encode() + b"\n")
        heard.append(decode(reading.readline(), Warm, BlockDone))
        os.close(commands)  # the parent is gone
        running.join(10)
    assert not running.is_alive()
    assert [type(answer) for answer in heard] == [Warm, BlockDone, BlockDone]
    assert numbers.came_first[:3] == [True, True, True]
    for block in heard[1:]:
        assert block.counts == (1,) * len(block.times)
        assert block.epoch_steps == 3
        assert block.epoch_starts


class Queue:
    """A device that takes 20 ms for each step and works while the program goes on."""

    queues = True

    def __init__(self) -> None:
        self.done_at = 0.0

    def add(self) -> None:
        self.done_at = max(self.done_at, time.perf_counter()) + 0.020

    def finished(self) -> float:
        time.sleep(max(self.done_at - time.perf_counter(), 0.0))
        return time.perf_counter()


class Read:
    """Values that are read after each of the first steps: that waits for the device."""

    def __init__(self, queue: Queue, steps: int) -> None:
        self.queue = queue
        self.steps = steps

    @property
    def wanted(self) -> bool:
        return self.steps > 0

    def tick(self, count: int, counted_by: object, seen_at: str = "") -> None:
        self.steps -= 1
        self.queue.finished()

    def write(self) -> None: ...


@pytest.mark.parametrize(("read_steps", "seconds"), [(0, 15.0), (60, 15.0), (1_000, 0.1)])
def test_a_block_ends_when_the_device_has_finished(monkeypatch, read_steps, seconds):
    """Also where values are read meanwhile: what the device does while they are is no part of the reading."""
    monkeypatch.setattr(gates, "_leave", sys.exit)
    monkeypatch.setattr(gates, "READING_SECONDS", seconds)
    read, commands = os.pipe()
    answers, write = os.pipe()
    observer = SimpleNamespace(ticks=Ticks(), trial=TrialState(), injections=None, devices=DeviceClock(print))
    queue = Queue()
    values = Read(queue, read_steps)
    gate = Gate(observer, GateSettings(read, write, os.getpid()), values)
    atexit.unregister(gate._report_end)
    gate._devices = queue

    def program() -> None:
        try:
            for _ in range(200):
                queue.add()  # its Python returns at once
                gate.tick(SimpleNamespace(rank=100, kind="fit"), time.perf_counter(), 1)
        except SystemExit:
            os.close(write)

    running = threading.Thread(target=program, daemon=True)
    running.start()
    with os.fdopen(answers) as reading:
        decode(reading.readline(), Warm)
        assert queue.done_at <= time.perf_counter(), "it is held with nothing queued"
        assert values.wanted == (read_steps == 1_000), "it is not held before the values are read, if that takes long"
        os.write(commands, encode(Go(10)).encode() + b"\n")
        block = decode(reading.readline(), BlockDone)
        os.close(commands)
        running.join(10)
    assert block.queued
    assert sum(block.times[1:]) >= 0.9 * 0.020 * 9, "the work of each step but the first, which is dropped"
    measured = Block(block.times, block.steps, block.cpu, counts=block.counts, queued=True)
    assert measured.per_step(1) >= 0.9 * 0.020


def test_what_fills_a_cache_is_measured_from_the_second_epoch_on():
    read, commands = os.pipe()
    answers, write = os.pipe()
    observer = SimpleNamespace(ticks=Ticks(), trial=TrialState(), injections=None, devices=DeviceClock(print))
    settings = GateSettings(read, write, os.getpid(), fills_cache=True)
    gate = Gate(observer, settings, SimpleNamespace(wanted=False))
    atexit.unregister(gate._report_end)
    now, warm_up, epochs = 100.0, gate.warm_up, gate.epochs
    warm_up.begin(98.0)
    epochs.begin(2, 0, 0)  # two iterators: a look at the data, and the first epoch
    assert not warm_up.is_over(now, 50, epochs.begun)
    epochs.begin(3, 0, 0)
    assert warm_up.is_over(now, 50, epochs.begun)
    assert warm_up.is_over(now + 2 * gates.FILLING_SECONDS, 50, 1), "one long epoch, or a repeat within the pipeline"
    gate._pipes.reading.close()
    for descriptor in (commands, answers, write):
        os.close(descriptor)


def warm_up(settings: GateSettings) -> gates.WarmUp:
    observer = SimpleNamespace(ticks=Ticks(), injections=None)
    made = gates.WarmUp(observer, settings.fills_cache, settings.warm_steps)
    made.begin(100.0)
    return made


def test_a_program_of_few_steps_is_warm_after_some_of_them():
    short = warm_up(GateSettings(0, 0, 0, warm_steps=2))
    assert [short.is_over(100.1 * ticks, ticks, 1, ticks) for ticks in (1, 2)] == [False, True]


def test_one_slow_step_without_tracing_shows_the_pace():
    slow, quick = warm_up(GateSettings(0, 0, 0)), warm_up(GateSettings(0, 0, 0))
    assert [slow.is_over(100.0 + 4 * n, n + 1, 1, n + 1) for n in range(2)] == [False, True]
    assert [quick.is_over(100.0 + 0.01 * n, n + 1, 1, n + 1) for n in range(2)] == [False, False]
    levered = warm_up(GateSettings(0, 0, 0))
    lever = SimpleNamespace(changes=0)
    levered._observer.injections = SimpleNamespace(ready=True, report=lambda: {"function": lever})
    over = [levered.is_over(100.0 + 4 * n, n + 1, 1, n + 1) for n in range(4)]
    assert not any(over), "a lever may take hold of the third call only"
    lever.changes = 1
    assert levered.is_over(116.0, 4, 1, 4)


def test_steps_of_another_phase_are_not_waited_for(tmp_path):
    """A short `fit` in front of many predictions: these are the steps, as the scouting run has found."""
    read, commands = os.pipe()
    answers, write = os.pipe()
    observer = Observer(Recorder(str(tmp_path)), ObserveSettings(trace=False))
    settings = GateSettings(read, write, os.getpid(), not_steps=("fit",))
    gate = Gate(observer, settings, SimpleNamespace(wanted=False))
    atexit.unregister(gate._report_end)
    observer.trial.at_step = gate.tick
    fit, predict = observer.streams.make("fit", 1, "fit"), observer.streams.make("predict", 2, "predict")
    for step in range(4):
        observer.ticks.tick(fit, 0.01 * step, 0.01 * (step + 1))
    observer.look()
    assert gate.steps == 0
    observer.ticks.tick(predict, 0.04, 0.05)  # at once: what comes before is no better view of the same step
    observer.look()
    assert gate.steps == 1
    assert (fit.count, predict.count) == (4, 1)
    observer.finish()
    gate._pipes.reading.close()
    for end in (commands, answers, write):
        os.close(end)


class Iterator:
    def __init__(self, name: str) -> None:
        self._iterator_resource = name


def test_iterators_that_were_held_are_kept_and_young_ones_go():
    keeper = Keeper()
    epoch = Iterator("epoch")
    keeper.made(epoch, 0)
    for number in range(5):
        keeper.made(Iterator(f"predict {number}"), 0)
    assert [resource for _, resource, _ in keeper.living] == ["epoch", "predict 4"], "the last is seen to be gone later"
    assert keeper.old == []
    keeper.made(epoch, 1)  # held meanwhile
    assert keeper.old == ["predict 4"]
    del epoch
    keeper.made(Iterator("next epoch"), 2)
    assert keeper.old[:2] == ["predict 4", "epoch"]
    for number in range(200):
        keeper.made(Iterator("another"), 3 + number)
    assert len(keeper.old) == MOST


def observed(window: SimpleNamespace) -> SimpleNamespace:
    recorder = SimpleNamespace(fact=lambda *_, **__: None)
    hooks = SimpleNamespace(at_end=[])
    return SimpleNamespace(window=window, recorder=recorder, trial=TrialState(), hooks=hooks, spans=Spans())


def test_the_scout_stays_while_it_is_open_what_the_step_is(monkeypatch):
    """Six batches of `fit` and then predictions: after three seconds nobody knows yet which of them take the time."""
    left: list[int] = []
    monkeypatch.setattr(scouting, "_leave", left.append)
    monkeypatch.setattr(scouting, "finish", lambda observer: None)
    window = SimpleNamespace(opened_times=1, is_open=False, opened_for=None, best=100)
    observer = observed(window)
    fit, predict = SimpleNamespace(rank=100), SimpleNamespace(rank=50)

    scout = scouting.Scout(observer, ScoutSettings(waits=False))
    scout.tick(fit, 1.0, 1)
    scout.tick(predict, 4.5, 1)
    scout.tick(predict, 12.5, 1)
    assert not left
    scout.tick(predict, 13.5, 1)
    assert left == [0]

    scout = scouting.Scout(observer, ScoutSettings(waits=False))
    for step in range(7):
        scout.tick(fit, 1.0 + 0.6 * step, 1)
    assert left == [0, 0]


def test_the_scout_leaves_a_program_alone_that_may_come_to_its_end(monkeypatch):
    left: list[int] = []
    monkeypatch.setattr(scouting, "_leave", left.append)
    monkeypatch.setattr(scouting, "finish", lambda observer: None)
    monkeypatch.setattr(scouting.time, "perf_counter", lambda: 100.0)
    observer = observed(SimpleNamespace(opened_times=1, is_open=False, opened_for=None, best=100))
    scout = scouting.Scout(observer, ScoutSettings(waits=False, to_end=40.0))
    for step in range(60):
        scout.tick(SimpleNamespace(rank=100), 110.0 + 0.5 * step, 1)
    assert not left
    scout.tick(SimpleNamespace(rank=100), 140.5, 1)
    assert left == [0]


def test_the_scout_stays_for_slow_steps(monkeypatch):
    """Four steps of four seconds say too little about a program."""
    left: list[int] = []
    monkeypatch.setattr(scouting, "_leave", left.append)
    monkeypatch.setattr(scouting, "finish", lambda observer: None)
    window = SimpleNamespace(opened_times=1, is_open=False, opened_for=None, best=100)
    observer = observed(window)
    fit, model = SimpleNamespace(rank=100), SimpleNamespace(rank=30)
    scout = scouting.Scout(observer, ScoutSettings(waits=False))
    for step in range(5):
        scout.tick(model, 4.0 * step + 1, 1)
        scout.tick(fit, 4.0 * step + 4, 1)
    assert not left
    scout.tick(fit, 24.0, 1)
    assert left == [0]


def test_the_scout_stays_for_steps_after_those_that_trace(monkeypatch):
    """Seven updates of a GAN in twelve seconds, of which tracing its models took eleven."""
    left: list[int] = []
    monkeypatch.setattr(scouting, "_leave", left.append)
    monkeypatch.setattr(scouting, "finish", lambda observer: None)
    observer = observed(SimpleNamespace(opened_times=1, is_open=False, opened_for=None, best=100))
    update = SimpleNamespace(rank=100)
    scout = scouting.Scout(observer, ScoutSettings(waits=False))
    for end in (1.0, 4.0, 4.01, 11.0, 13.1, 13.11, 13.12):
        scout.tick(update, end, 1)
    assert not left
    for end in (13.4, 13.41, 13.42):
        scout.tick(update, end, 1)
    assert left == [0]

    slow = scouting.Scout(observer, ScoutSettings(waits=False))
    for end in (1.0, 4.0, 43.0, 90.0, 93.0, 96.0, 99.0):  # a machine that traces for a minute and a half
        slow.tick(update, end, 1)
    assert left == [0]
    slow.tick(update, 102.0, 1)
    assert left == [0, 0]


def test_the_scout_waits_for_an_agent_to_learn(monkeypatch):
    """A program that has compiled a model predicts for a while before it fits for the first time."""
    left: list[int] = []
    monkeypatch.setattr(scouting, "_leave", left.append)
    monkeypatch.setattr(scouting, "finish", lambda observer: None)
    window = SimpleNamespace(opened_times=1, is_open=False, opened_for=None, best=50)
    observer = observed(window)
    fit, predict = SimpleNamespace(rank=100), SimpleNamespace(rank=50)
    observer.trial.compiled = True
    scout = scouting.Scout(observer, ScoutSettings(waits=False))
    for move in range(20):
        scout.tick(predict, 1.0 + move, 1)
    assert not left
    for step in range(6):
        scout.tick(fit, 21.0 + step, 1)
    assert left == [0]

    left.clear()
    scout = scouting.Scout(observer, ScoutSettings(waits=False))
    for move in range(26):
        scout.tick(predict, 1.0 + move, 1)
    assert left == [0], "it never learns"


def test_the_scout_waits_for_a_place_of_the_source_that_trains(monkeypatch, tmp_path):
    """A loop behind a `fit`: until the recording names one of its lines, or the time for that is over."""
    left: list[int] = []
    program = tmp_path / "train.py"
    program.write_text("model.fit(x, y)\nfor batch in batches:\n    model.train_on_batch(batch)\n")
    counters = tmp_path / "counters.jsonl"
    monkeypatch.setattr(scouting, "_leave", left.append)
    monkeypatch.setattr(scouting, "finish", lambda observer: None)
    monkeypatch.setattr(scouting, "_own_files", lambda: [str(program)])
    observer = observed(SimpleNamespace(opened_times=1, is_open=False, opened_for=None, best=100))
    observer.recorder.directory = str(tmp_path)
    observer.write_counters = lambda: counters.write_text(json.dumps([str(program), 1, ""]))
    fit = SimpleNamespace(rank=100)

    scout = scouting.Scout(observer, ScoutSettings())
    for second in range(46):
        assert not left, "it waits"
        scout.tick(fit, 1.0 + second, 1)
    assert left == [0]

    left.clear()
    observer.write_counters = lambda: counters.write_text(json.dumps([[str(program), 1, ""], [str(program), 3, ""]]))
    scout = scouting.Scout(observer, ScoutSettings())
    for second in range(7):
        scout.tick(fit, 1.0 + second, 1)
    assert left == [0], "nothing is missing"


def test_a_batch_of_fit_may_become_a_call_of_its_function():
    calls = KerasCall("fit", calls=9, ms=900.0, batches=9, single=9)
    launch = ranked(Launch(("python",)), Case("tune", evidence=(StepStack("fit"), calls)))
    assert launch.least_step == "train-function"


def test_so_may_an_epoch_of_one_batch_in_a_fit_that_has_not_ended():
    calls = KerasCall("fit", calls=1, ms=900.0, batches=9, single=1, epochs=500)
    assert calls.is_one_batch_again
    assert not dataclasses.replace(calls, epochs=10).is_one_batch_again
    launch = ranked(Launch(("python",)), Case("tune", evidence=(StepStack("fit"), calls)))
    assert launch.least_step == "train-function"


def test_what_the_scout_saw_outweighed_is_passed_by():
    seen = [Stream(kind, count=count) for kind, count in (("fit", 6), ("predict", 90), ("session", 0))]
    launch = ranked(Launch(("python",)), Case("tune", evidence=(StepStack("predict"), *seen)))
    assert "fit" in launch.not_steps
    assert "predict" not in launch.not_steps
    assert "apply" in launch.not_steps, "training that comes later is no step, either"
    assert launch.least_step == "model", "a lever may turn predictions into plain calls"
    assert ranked(Launch(("python",)), Case("tune")).not_steps == ()
    launch = ranked(Launch(("python",)), Case("tune", evidence=(StepStack("apply"), *seen)))
    assert (launch.least_step, launch.not_steps) == ("apply", ("fit",)), "the `fit` before the loop is another phase"
    loop_only = Case("tune", evidence=(StepStack("apply"), Stream("apply", count=90)))
    assert ranked(Launch(("python",)), loop_only).not_steps == (), "a lever may trace what was eager"


def test_batches_are_the_steps_where_samples_are_called_for_one_by_one():
    seen = [Stream(kind, count=count) for kind, count in (("model", 640), ("input", 20))]
    stack, loop = StepStack("model"), (Finding("per-sample-loop", ""),)
    assert ranked(Launch(("python",)), Case("tune", evidence=(stack, *seen))).least_step == "model"
    launch = ranked(Launch(("python",)), Case("tune", evidence=(stack, *seen), findings=loop))
    assert launch.least_step == "input"
    assert set(launch.not_steps) == set(RANK) - {"input"}, "one call for all is no other step"
    training = Case("tune", evidence=(StepStack("apply"), *seen), findings=loop)
    assert ranked(Launch(("python",)), training).least_step == "apply", "an update is an update"
