"""Typed messages: each survives the way through JSON, and an invalid one names its field."""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from typing import Any, Literal

import pytest

from flatout.data.task import PipelineTask
from flatout.model.errors import InvalidMessage
from flatout.observe.levers import LeverReport
from flatout.observe.settings import ObserveSettings
from flatout.process.forking import Exited, Fork, Import, Imported, Started
from flatout.process.messages import decode, encode
from flatout.process.worker import Answer, Failure, Task, WorkerRequest
from flatout.trial.messages import BlockDone, Go, ProgramEnded, Warm
from flatout.trial.settings import (
    ChildSettings,
    GateSettings,
    GuestSettings,
    ScoutSettings,
    TrialRequest,
    TrialSettings,
)

GATE = GateSettings(3, 4, 100, least_step="model", not_steps=("fit", "apply"), fills_cache=True)
REPORTS = {"steps-per-execution=16": LeverReport(2, ("8 batches a call",))}
MESSAGES = [
    Import(("tensorflow", "keras")),
    Fork("/tmp/request.json", "/tmp/output.txt"),
    Imported(("tensorflow",), None),
    Imported((), "importing TensorFlow has started 3 threads"),
    Started(12),
    Exited(12, -9),
    WorkerRequest("package.module:Tasks"),
    Task("convert", {"route": "onnx", "batch": None, "feeds": ["a.npz", "x"]}),
    Answer({"seconds": 1.5, "times": [1.0, 2.0]}),
    Failure("needless", "nothing to do"),
    Go(12),
    Warm(9, 0.5, REPORTS),
    BlockDone((0.1, 0.2), (1, 16), 17, 0.25, 40, (0,), True, REPORTS),
    ProgramEnded(640),
    ProgramEnded(640, REPORTS),
    ChildSettings("/tmp/case"),
    ChildSettings("/tmp/case", ObserveSettings(False, 5, 10, False, True), "package", True, ("xla", "threads=4")),
    ChildSettings("/tmp/case", trial=TrialSettings(GATE, 7, pinned=True, perturbed=True)),
    ChildSettings("/tmp/case", trial=TrialSettings(ScoutSettings(), None)),
    ChildSettings("/tmp/case", trial=TrialSettings(GuestSettings("flatout.data.child", '{"type": "Ünicode"}'))),
    TrialRequest(("train.py", "--épochs"), {"HOME": "/root"}, ChildSettings("/tmp/case"), {"a.py": "b.py"}),
    PipelineTask("tune", 2, 1.5, 60.0, ("semantic",), ("cache",), 1 << 30, "/tmp/cache"),
]


@pytest.mark.parametrize("message", MESSAGES, ids=lambda message: type(message).__name__)
def test_a_message_survives_the_way_through_text(message: object) -> None:
    text = encode(message)
    assert text.isascii()
    assert "\n" not in text
    assert decode(text, type(message)) == message


def test_which_message_it_is_is_told_by_its_type() -> None:
    assert decode(encode(ProgramEnded(3)), Warm, BlockDone, ProgramEnded) == ProgramEnded(3)
    with pytest.raises(InvalidMessage, match=r"expected Warm or BlockDone, got a 'Go'"):
        decode(encode(Go(3)), Warm, BlockDone)


@pytest.mark.parametrize("message", MESSAGES, ids=lambda message: type(message).__name__)
def test_an_unknown_field_is_named_in_every_message(message: object) -> None:
    wrong = json.dumps({**json.loads(encode(message)), "surprise": 1})
    with pytest.raises(InvalidMessage, match=f"{type(message).__name__}: there is no field 'surprise'"):
        decode(wrong, type(message))


@pytest.mark.parametrize("message", MESSAGES, ids=lambda message: type(message).__name__)
def test_a_field_of_another_type_is_named_in_every_message(message: object) -> None:
    plain = json.loads(encode(message))
    for name in plain:
        if name != "type":
            wrong = 3 if isinstance(plain[name], dict) else {"type": "Nothing"}
            with pytest.raises(InvalidMessage, match=rf"{type(message).__name__}\.{name}: expected "):
                decode(json.dumps({**plain, name: wrong}), type(message))


@dataclass(frozen=True)
class Inner:
    size: int


@dataclass(frozen=True)
class Other:
    name: str


@dataclass(frozen=True)
class Everything:
    number: int
    share: float
    flag: bool
    mode: Literal["a", "b"]
    pair: tuple[int, str]
    inner: Inner
    anything: Any
    choice: Inner | Other | None = None
    many: tuple[Inner, ...] = ()
    table: dict[str, float] = field(default_factory=dict)
    loose: int | str = 0


FULL = Everything(1, 0.5, True, "a", (1, "x"), Inner(3), {"k": [1, None]}, Other("o"), (Inner(1),), {"a": 1.0}, "s")


@pytest.mark.parametrize(
    ("change", "text"),
    [
        ({"number": "1"}, 'Everything.number: expected int, got "1"'),
        ({"number": True}, "Everything.number: expected int, got true"),
        ({"number": 1.5}, "Everything.number: expected int, got 1.5"),
        ({"share": "half"}, "Everything.share: expected float"),
        ({"share": 10**400}, "Everything.share: expected float, got 1000"),
        ({"flag": 1}, "Everything.flag: expected bool, got 1"),
        ({"mode": "c"}, "Everything.mode: expected 'a' or 'b', got \"c\""),
        ({"pair": [1]}, "Everything.pair: expected a list of 2"),
        ({"pair": [1, 2]}, "Everything.pair[1]: expected str, got 2"),
        ({"inner": {"type": "Inner", "size": None}}, "Everything.inner.size: expected int, got null"),
        ({"inner": {"type": "Inner"}}, "Everything.inner.size is missing"),
        ({"inner": {"size": 1}}, "Everything.inner: expected Inner"),
        ({"choice": {"type": "Third"}}, "Everything.choice: expected Inner or Other, got a 'Third'"),
        ({"choice": 3}, "Everything.choice: expected Inner or Other or null, got 3"),
        ({"many": [{"type": "Inner", "size": "x"}]}, "Everything.many[0].size: expected int"),
        ({"many": "x"}, "Everything.many: expected a list"),
        ({"table": {"a": "b"}}, "Everything.table['a']: expected float"),
        ({"table": []}, "Everything.table: expected an object"),
        ({"loose": None}, "Everything.loose: expected int or str, got null"),
    ],
)
def test_what_is_wrong_is_said_with_its_path(change: dict[str, Any], text: str) -> None:
    plain = json.loads(encode(FULL))
    assert decode(json.dumps(plain), Everything) == FULL
    with pytest.raises(InvalidMessage) as raised:
        decode(json.dumps({**plain, **change}), Everything)
    assert text in str(raised.value)


def test_a_missing_field_is_named_and_one_with_a_default_is_not_needed() -> None:
    plain = json.loads(encode(FULL))
    del plain["choice"]
    assert decode(json.dumps(plain), Everything).choice is None
    del plain["share"]
    with pytest.raises(InvalidMessage, match=r"Everything\.share is missing"):
        decode(json.dumps(plain), Everything)


def test_a_whole_number_is_a_float_where_one_is_declared() -> None:
    assert isinstance(decode('{"type": "Warm", "steps": 3, "seconds": 2}', Warm).seconds, float)


@pytest.mark.parametrize("text", ["", "[]", "3", "null", '{"steps": 3}', "{", "Go"])
def test_what_is_no_message_says_what_was_expected(text: str) -> None:
    with pytest.raises(InvalidMessage, match="Go"):
        decode(text, Go)
