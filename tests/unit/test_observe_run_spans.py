"""Spans of the hooks that a session of TF1 calls: those of the program's own classes."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from flatout.observe.observer import Observer
from flatout.observe.probes.run_spans import _wrap_session
from flatout.observe.probes.steps_of_sessions import Feeds, Growth, _count_runs
from flatout.observe.recorder import Recorder
from flatout.observe.settings import ObserveSettings
from flatout.observe.spans import Key, Spans


class Base:
    def before_run(self, context: Any) -> None:
        pass

    def end(self, session: Any) -> str:
        return "ended"


class Scores(Base):
    runs = 0

    def after_run(self, context: Any, values: Any) -> None:
        self.runs += 1


def opened(spans: Spans, hooks: Any) -> list[Any]:
    """What the session was given."""
    given: list[Any] = []
    wrapped = _wrap_session(spans, lambda self, creator, hooks, should_recover: given.append(hooks))
    wrapped(None, "creator", hooks, should_recover=True)
    return given


def test_hooks_of_the_program_are_spans_of_the_run() -> None:
    spans = Spans()
    spans.begin()
    hook, other = Scores(), Scores()
    hooks = [hook, other]
    assert opened(spans, hooks)[0] is hooks
    for one in hooks:
        one.before_run(None)
        one.after_run(None, None)
    assert hook.end(None) == "ended"
    found = {node.key.name: (node.key.kind, node.calls, node.key.line > 0) for node in spans.nodes[1:]}
    assert found == {
        "Base.before_run": ("callback", 2, True),
        "Scores.after_run": ("callback", 2, True),
        "Base.end": ("callback", 1, True),
    }
    assert hook.runs == other.runs == 1
    assert spans.current is spans.nodes[0]


def test_what_is_no_list_of_hooks_is_handed_on_as_it_is() -> None:
    spans = Spans()
    spans.begin()
    for hooks in (None, iter([Scores()]), [object(), None]):
        assert opened(spans, hooks)[0] is hooks
    assert opened(Spans(), [Scores()])


class Graph:
    version = 1


class Session:
    graph = Graph()


def test_what_a_saver_runs_in_a_session_is_no_step(tmp_path: Path) -> None:
    observer = Observer(Recorder(str(tmp_path)), ObserveSettings(trace=False))
    observer.spans.begin()
    counted = _count_runs(observer, Feeds(), Growth(), [0.0])
    run = counted(lambda self, fetches, *rest: fetches)
    session = Session()
    assert run(session, "train") == "train"
    depth = observer.spans.enter(Key("checkpoint", "Saver.save"))
    assert run(session, "save/control_dependency:0") == "save/control_dependency:0"
    observer.spans.leave(depth)
    run(session, "train")
    assert list(observer.streams) == [("session", "train")]
