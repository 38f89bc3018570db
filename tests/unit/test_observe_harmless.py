"""The observer is not noticed by the program: what a program copies, lets go, replaces or raises stays its own."""

from __future__ import annotations

import atexit
import builtins
import copy
import dataclasses
import gc
import importlib.util
import json
import os
import pickle
import sys
import threading
import time
import weakref
from pathlib import Path
from types import CellType, FunctionType, ModuleType, SimpleNamespace
from typing import Any

import pytest

from flatout.cures import _frozen_here
from flatout.observe import private_names, probes, program_classes
from flatout.observe import spans as spans_module
from flatout.observe.eager_lines import EagerLines
from flatout.observe.injection import MOST_NOTES, Injection
from flatout.observe.installing import ProbeInstaller, finish
from flatout.observe.observer import Observer, Probe
from flatout.observe.probes import (
    conversions,
    functions,
    host_sync,
    input_wait,
    pipelines,
    run_spans,
    steps_of_keras,
    steps_of_loops,
    steps_of_sessions,
    switches,
)
from flatout.observe.probes.sampler import Sampler
from flatout.observe.recorder import Recorder
from flatout.observe.run_sampler import RunSampler
from flatout.observe.settings import ObserveSettings
from flatout.observe.spans import Key, Spans
from flatout.observe.traced import Asked, any_in
from flatout.source import users_code
from flatout.trial.child import scouting, start


@pytest.fixture
def observer(tmp_path: Path) -> Observer:
    return Observer(Recorder(str(tmp_path)), ObserveSettings(trace=False))


class Function:
    """As a tf.function, whose pickle is its dictionary."""

    _name = "step"
    _flatout_known: Any


@pytest.mark.parametrize("copied", [copy.deepcopy, lambda function: pickle.loads(pickle.dumps(function))])
def test_a_function_that_was_called_can_be_copied(observer: Observer, copied: Any) -> None:
    known, function = functions.Functions(observer), Function()
    known.known(function)
    assert copied(function)._flatout_known is None
    assert known.known(copied(function)).total is known.known(function).total


def test_a_cache_in_the_place_of_one_that_is_gone_is_not_taken_for_it(observer: Observer) -> None:
    cache: list[str] = []
    function, known = SimpleNamespace(_function_cache=cache), functions.Functions(observer)
    observer.recorder.fact = lambda *args, **values: None  # type: ignore[method-assign]

    def traced(trains: bool) -> None:
        graph = SimpleNamespace(_flatout_trains=trains)
        asked = Asked(len, "step", graph, cache, lambda: SimpleNamespace(parameters={}))
        functions._traced(observer, known, None, asked, 0.0, True)
        cache.append("trace")

    traced(True)
    traced(False)
    assert any_in(function, known.trains) is not None, "another of its traces trains"
    cache.clear()  # as a new one with the same identity
    assert any_in(function, known.trains) is None
    traced(False)
    assert any_in(function, known.trains) is None


class Session:
    """As TensorFlow's profiler session."""

    exported = False

    def start(self, directory: str, options: Any) -> None:
        """Begins at once."""

    def export_to_tb(self) -> None:
        self.exported = True


def test_steps_that_nobody_counts_any_more_take_no_memory(observer: Observer) -> None:
    stream, session = observer.streams.make("fit", "steps", "fit"), Session()
    observer.window._session = session
    observer._follower._give_up(ValueError("broken"))
    for number in range(100):
        observer.ticks.tick(stream, number, number + 0.5)
    assert not observer.ticks.rows
    assert session.exported


def test_the_last_writing_of_the_tree_waits_for_the_one_under_way(
    observer: Observer, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    sampler = RunSampler(observer)
    begun, goes_on = threading.Event(), threading.Event()
    move = os.replace

    def slowly(old: str, new: str) -> None:
        if threading.current_thread() is writer:
            begun.set()
            goes_on.wait(60)
        move(old, new)

    monkeypatch.setattr(os, "replace", slowly)
    writer = threading.Thread(target=sampler.write)
    writer.start()
    begun.wait(60)
    last = threading.Thread(target=sampler.write)
    last.start()
    last.join(0.05)
    goes_on.set()
    writer.join()
    last.join()
    assert observer.recorder.broken is None


@pytest.mark.parametrize("kind", [RunSampler, Sampler])
def test_a_sampler_is_no_thread_of_the_program_and_sleeps_by_itself(
    observer: Observer, monkeypatch: pytest.MonkeyPatch, kind: type[RunSampler | Sampler]
) -> None:
    slept: list[float] = []
    monkeypatch.setattr(time, "sleep", slept.append)
    sampler, threads = kind(observer), threading.enumerate()
    looked = threading.Event()
    name = "look" if isinstance(sampler, RunSampler) else "sample"
    monkeypatch.setattr(sampler, name, looked.set)
    sampler.start()
    assert looked.wait(60)
    assert threading.enumerate() == threads
    observer.active = False
    assert not slept


def test_what_cannot_be_undone_keeps_nothing_else_from_being_undone(monkeypatch: pytest.MonkeyPatch) -> None:
    class Base:
        def call(self) -> str:
            return "base"

    class Model(Base):
        def fit(self) -> str:
            return "fit"

    monkeypatch.setattr(private_names, "_replaced", [])
    private_names.replace(Model, "fit", lambda self: "ours")
    private_names.replace(Model, "call", lambda self: "ours")
    del Model.call  # as the program may do
    private_names.restore()
    assert (Model().fit(), Model().call()) == ("fit", "base")


def test_an_end_of_observing_that_fails_is_noted(observer: Observer, tmp_path: Path) -> None:
    sampler = RunSampler(observer)
    sampler.observer.settings = dataclasses.replace(observer.settings, seconds=1.0)
    sampler.last = sampler.began + 2.0
    sampler.end = lambda: sampler.sums[None]
    sampler.run()  # a thread that raises writes to the program's stderr
    assert "the sampler of the run stopped: KeyError" in (tmp_path / "facts.jsonl").read_text()


def callback_with(values: Any) -> Any:
    class Scores:
        def on_epoch_end(self, epoch: int, logs: Any = None) -> Any:
            return values

    return Scores()


def test_a_callback_class_that_the_program_lets_go_of_is_not_kept() -> None:
    spans, values = Spans(), {1, 2}
    spans.begin()
    kept = weakref.ref(values)
    callback = callback_with(values)
    run_spans._time_hooks(spans, callback)
    assert callback.on_epoch_end(0) is values
    del callback, values
    gc.collect()
    assert kept() is None
    assert not program_classes._changed


def test_a_callback_class_is_as_before_once_observing_is_over() -> None:
    spans, callback = Spans(), callback_with(1)
    before = type(callback).on_epoch_end
    run_spans._time_hooks(spans, callback)
    assert type(callback).on_epoch_end is not before
    program_classes.restore()
    assert type(callback).on_epoch_end is before


class Iterator:
    """As an iterator over a dataset, with its buffers."""

    def __init__(self, dataset: Any) -> None:
        self._dataset = dataset


def test_an_iterator_of_which_python_takes_nothing_is_not_kept(
    observer: Observer, monkeypatch: pytest.MonkeyPatch
) -> None:
    wraps: list[Any] = []
    monkeypatch.setattr(input_wait, "patch", lambda key, wrap: wraps.append(wrap))
    input_wait.on_tensorflow(observer, ModuleType("tensorflow"))
    observer.spans.begin()
    make = pipelines.Pipelines(observer, ModuleType("tensorflow")).wrap_iterator(lambda iterator, dataset: None)
    iterator = Iterator(None)
    make(iterator, None)
    wraps[0](lambda iterator: 1)(iterator)
    assert [row[2] for row in observer.spans.rows(0.0)] == ["run", "iterator"]
    iterator = Iterator(None)
    make(iterator, None)
    kept = weakref.ref(iterator)
    del iterator
    gc.collect()
    assert kept() is None
    assert wraps[0](lambda iterator: 2)(Iterator(None)) == 2


class Optimizer:
    iterations: Any = None


def test_the_steps_of_an_optimizer_are_read_without_keeping_it() -> None:
    optimizer = Optimizer()
    optimizer.iterations = SimpleNamespace(numpy=lambda: 3)
    read = steps_of_loops._counter(optimizer)
    kept = weakref.ref(optimizer)
    assert read() == 3
    del optimizer
    gc.collect()
    assert kept() is None
    known = functions.Known(None, ("", 0, ""), "", functions.Total())  # type: ignore[arg-type]
    known.counter = read
    assert functions._steps_inside(known) == 1


def test_a_program_that_leaves_at_once_leaves_though_it_is_interrupted(
    observer: Observer, monkeypatch: pytest.MonkeyPatch
) -> None:
    left: list[int] = []
    monkeypatch.setattr(os, "_exit", left.append)
    monkeypatch.setattr(atexit, "register", lambda *given: None)

    def interrupted(observer: Observer) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(start, "finish", interrupted)
    start._finish_at_exit(observer)
    with pytest.raises(KeyboardInterrupt):  # nothing is raised by the real one, which never returns
        os._exit(3)
    assert left == [3]


def test_a_handler_of_a_signal_may_end_the_program_in_the_midst_of_a_flush(observer: Observer, tmp_path: Path) -> None:
    def handled() -> None:
        with observer.recorder._lock:  # where the handler comes in between
            finish(observer)

    thread = threading.Thread(target=handled, daemon=True)
    thread.start()
    thread.join(20)
    assert not thread.is_alive()
    assert '"kind":"end"' in (tmp_path / "facts.jsonl").read_text()


class Mute(Exception):
    def __str__(self) -> str:
        raise ValueError("no text")


def test_an_exception_without_a_text_ends_the_recording_all_the_same(
    observer: Observer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(sys, "last_value", Mute(), raising=False)
    finish(observer)
    assert '"type":"Mute"' in (tmp_path / "facts.jsonl").read_text()
    assert '"kind":"end"' in (tmp_path / "facts.jsonl").read_text()
    assert capfd.readouterr().err == ""


def test_an_import_that_fails_raises_what_the_program_would_see(observer: Observer) -> None:
    def run(module: ModuleType) -> None:
        raise Mute

    with pytest.raises(Mute):
        ProbeInstaller(observer).execute("tensorflow", ModuleType("tensorflow"), run)


# ── what is noted about a call raises nothing into it ────────────────────────────────────────────────────────────────


class Hostile:
    """Answers to nothing."""

    def __getattr__(self, name: str) -> Any:
        raise RuntimeError(f"{name} is asked for outside of a request")

    def __str__(self) -> str:
        raise RuntimeError("it has no text")

    def __bool__(self) -> bool:
        raise RuntimeError("neither true nor false")


class Graph:
    version = 1


class OfTf1:
    graph = Graph()


@pytest.mark.parametrize("fetches", ["train", Hostile(), [Hostile()]], ids=["name", "object", "list"])
@pytest.mark.parametrize("feeds", [Hostile(), [1], {"x": SimpleNamespace(nbytes=float("nan"))}], ids=["o", "l", "nan"])
def test_a_session_tells_the_program_itself_what_is_wrong_with_a_run(
    observer: Observer, fetches: Any, feeds: Any
) -> None:
    counted = steps_of_sessions._count_runs(observer, steps_of_sessions.Feeds(), steps_of_sessions.Growth(), [0.0])

    def fails(self: Any, *given: Any) -> None:
        raise TypeError("the session's own")

    with pytest.raises(TypeError, match="the session's own"):
        counted(fails)(OfTf1(), fetches, feeds)
    assert counted(lambda self, *given: 5)(OfTf1(), fetches, feeds) == 5
    assert [stream.kind for stream in observer.streams.values()] == ["session"]


def test_a_tensor_is_read_by_code_of_a_module_without_a_name(observer: Observer) -> None:
    read = host_sync._wrap(observer, host_sync.Pulls(observer), "numpy")(lambda tensor: 4)
    names: dict[str, Any] = {"__name__": None, "read": read}
    exec("value = read(0)", names)
    assert names["value"] == 4


def test_a_function_is_made_of_any_object_that_can_be_called(observer: Observer) -> None:
    made = functions._count_made(observer, functions.Functions(observer))

    def __init__(self: Any, python: Any) -> None:
        self._python_function = python

    function = SimpleNamespace()
    made(__init__)(function, Hostile())
    assert isinstance(function._python_function, Hostile)


def test_a_model_need_not_tell_its_name_or_settings() -> None:
    assert not any(steps_of_keras._model_facts(SimpleNamespace(model=Hostile())).values())
    assert steps_of_loops._name(Hostile()) == "model"


def test_lines_that_cannot_be_found_are_not_counted(observer: Observer, monkeypatch: pytest.MonkeyPatch) -> None:
    def too_deep(*given: Any) -> None:
        raise RecursionError

    monkeypatch.setattr(users_code, "innermost", too_deep)
    lines = EagerLines(observer, "model")
    lines.add(sys._getframe(), 1.0)
    assert steps_of_loops._counted({}, sys._getframe()) is None
    assert not lines.rows


def test_modules_that_the_program_has_taken_away_fail_no_import(
    observer: Observer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def gone() -> list[str]:
        raise ModuleNotFoundError("flatout.observe.probes")

    monkeypatch.setitem(sys.modules, "tensorflow", ModuleType("tensorflow"))
    monkeypatch.setattr(probes, "names", gone)
    ran: list[ModuleType] = []
    module = ModuleType("tensorflow")
    module.__dict__["__version__"] = (2, 0)  # of a module of the program's own
    ProbeInstaller(observer).execute("tensorflow", module, ran.append)
    assert ran == [module]
    facts = [json.loads(line) for line in (tmp_path / "facts.jsonl").read_text().splitlines()]
    assert [(fact["kind"], fact.get("probe"), fact.get("version")) for fact in facts] == [
        ("lost", "tensorflow", None),
        ("import", None, None),
    ]
    observer.more_probes.append(Probe("shield"))
    with pytest.raises(ModuleNotFoundError):  # a trial that is not held back does not run
        ProbeInstaller(observer).execute("tensorflow", module, ran.append)


# ── what is not asked for is not run ─────────────────────────────────────────────────────────────────────────────────


@pytest.fixture
def waiting(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The file of a module that the program runs at its first use. It leaves a file behind."""
    file, ran = tmp_path / "waiting.py", tmp_path / "ran"
    file.write_text(f"open({str(ran)!r}, 'w').close()\n", encoding="utf-8")
    spec = importlib.util.spec_from_file_location("waiting", file)
    assert spec is not None
    assert spec.loader is not None
    spec.loader = importlib.util.LazyLoader(spec.loader)
    module = importlib.util.module_from_spec(spec)
    monkeypatch.setitem(sys.modules, "waiting", module)
    spec.loader.exec_module(module)
    return ran


def test_a_module_that_waits_for_its_first_use_is_not_run(
    observer: Observer, waiting: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    wrapper = private_names.wrapped(len, lambda value: len(value))
    monkeypatch.setattr(conversions, "patch", lambda key, wrap: None)
    monkeypatch.setattr(conversions, "resolve", lambda key: (None, "convert", wrapper))
    conversions.on_tensorflow(observer, ModuleType("tensorflow"))
    monkeypatch.setattr(switches, "resolve", lambda key: (None, "switch", wrapper))
    switches.on_keras(observer, ModuleType("keras"))
    scouting._own_files()
    _frozen_here._files()
    assert not waiting.exists()
    assert sys.modules["waiting"].__file__
    assert waiting.exists()  # now it is used


def test_a_forked_child_waits_at_no_gate(observer: Observer) -> None:
    seen: list[float] = []
    observer.trial.at_step = lambda stream, end, n: seen.append(end)
    stream = observer.streams.make("fit", "steps", "fit")
    observer.ticks.tick(stream, 0.0, 1.0)
    observer.look()
    start._forget(observer)
    observer.ticks.tick(stream, 1.0, 2.0)
    observer.look()
    assert seen == [1.0]
    assert not observer.ticks.rows


def test_notes_of_a_lever_are_bounded(observer: Observer) -> None:
    injection = Injection(observer, "function")
    for number in range(1000):
        injection.give_up(f"the function of call {number} cannot be traced")
    assert len(injection.notes) == MOST_NOTES


def test_more_spans_than_are_told_apart_leave_the_others_as_they_are(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(spans_module, "MOST_NODES", 2)
    times = iter(range(100))
    monkeypatch.setattr(spans_module, "perf_counter", lambda: float(next(times)))
    spans = Spans()
    spans.begin()
    fit = spans.enter(Key("fit", "fit"))
    for number in range(5):
        outer = spans.enter(Key("callback", f"hook {number}"))
        inner = spans.enter(Key(f"kind {number}", "inner"))
        spans.leave(inner)
        spans.leave(outer)
        assert spans.is_in("fit")
    spans.leave(fit)
    assert not spans.current.number
    assert spans.rows(0.0)[1][-2:] == [1, 21.0]


def test_a_timed_hook_can_be_sent_to_another_process() -> None:
    callback = callback_with(1)
    run_spans._time_hooks(Spans(), callback)
    hook = type(callback).on_epoch_end
    held = [cell.cell_contents for cell in hook.__closure__]
    others = [one for one in held if one is not hook.__wrapped__]
    sent = pickle.dumps(others)
    assert b"flatout" not in sent
    cells = [CellType(one if one is hook.__wrapped__ else None) for one in held]
    there = FunctionType(hook.__code__, {"__builtins__": builtins}, "there", None, tuple(cells))
    assert pickle.loads(sent) == [None]
    assert there(callback, 0) == 1


def on_epoch_end(epoch: int, logs: Any = None) -> int:
    """As a function of the program's module that is given to `LambdaCallback`."""
    return epoch


@pytest.mark.parametrize("copied", [copy.deepcopy, lambda callback: pickle.loads(pickle.dumps(callback))])
def test_a_callback_with_a_function_of_a_module_can_be_copied(copied: Any) -> None:
    spans, callback = Spans(), SimpleNamespace(on_epoch_end=on_epoch_end)
    spans.begin()
    run_spans._time_hooks(spans, callback)
    timed = callback.on_epoch_end
    assert timed is not on_epoch_end
    assert (timed(3), timed.__name__) == (3, "on_epoch_end")
    assert spans.nodes[-1].calls == 1
    assert copied(callback).on_epoch_end is on_epoch_end
    run_spans._time_hooks(spans, callback)
    assert callback.on_epoch_end is timed, "it is timed once"


def test_a_window_is_closed_though_something_fails_as_it_opens(tmp_path: Path) -> None:
    session = Session()
    observer = Observer(Recorder(str(tmp_path)), ObserveSettings())
    observer.devices._looked = True
    observer.window.make_session = lambda: session
    observer.window.on_open.append(lambda: 1 / 0)
    observer.window.open(None)
    observer.finish()
    assert session.exported
    assert "before the window: ZeroDivisionError" in (tmp_path / "facts.jsonl").read_text()
