"""The JSON codec of the model: what is read is what was written, and damage is named with its path."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, ClassVar, Literal, NamedTuple

import pytest

from flatout.model import codec
from flatout.model.case import Case, DeviceDetail, PipelineOptions, StageDetail, Steps, Trial
from flatout.model.errors import CaseUnreadable


class Pair(NamedTuple):
    name: str
    number: int


@dataclass(frozen=True)
class Inner:
    value: float


@dataclass(frozen=True)
class Outer:
    text: str
    number: int = 0
    maybe: float | None = None
    word: Literal["a", "b"] = "a"
    inner: Inner | None = None
    several: tuple[Inner, ...] = ()
    couple: tuple[int, str] = (0, "")
    pair: Pair | None = None
    table: dict[str, int] = field(default_factory=dict)
    either: int | str | None = None
    renamed: str = field(default="", metadata=codec.named("other name"))
    today: str = field(default="new", metadata=codec.renamed({"old": "new"}))


@dataclass(frozen=True)
class Sparse:
    OMIT_NONE: ClassVar[bool] = True
    rest: dict[str, Any] = field(default_factory=dict, metadata=codec.REST)
    known: int | None = None


FULL = Outer("t", 3, 1.5, "b", Inner(2.0), (Inner(3.0),), (4, "x"), Pair("y", 5), {"z": 6}, "either", "r", "new")


def test_what_is_written_is_read_again() -> None:
    written = codec.to_plain(FULL)
    assert written["pair"] == ["y", 5]
    assert written["other name"] == "r"
    assert codec.read(Outer, written) == FULL


def test_unknown_names_are_passed_over_and_missing_ones_have_defaults() -> None:
    assert codec.read(Outer, {"text": "t", "later": 1}) == Outer("t")


def test_a_word_of_an_older_version_has_its_name_of_today() -> None:
    assert codec.read(Outer, {"text": "t", "today": "old"}).today == "new"
    assert codec.read(Steps, {"count": 1, "found_by": "", "ms": {"median": 1, "p10": 1, "p90": 1}, "kind": "predict"}) \
        .kind == "inference"  # fmt: skip


def test_a_word_of_a_newer_version_is_kept() -> None:
    trial = codec.read(Trial, {"levers": ["xla"], "status": "won", "stage": "a-later-stage"})
    assert codec.to_plain(trial)["stage"] == "a-later-stage"


def test_the_rest_stands_beside_the_fields_and_none_is_left_out() -> None:
    sparse = codec.read(Sparse, {"a": 1, "known": None, "b": [2]})
    assert sparse == Sparse({"a": 1, "b": [2]})
    assert codec.to_plain(sparse) == {"a": 1, "b": [2]}


@pytest.mark.parametrize(
    ("form", "message"),
    [
        ([], "the case: an object was expected, not []"),
        ({}, "text: it is missing"),
        ({"text": 1}, "text: text was expected, not 1"),
        ({"text": None}, "text: text was expected, not None"),
        ({"text": "t", "number": "many"}, "number: a whole number was expected, not 'many'"),
        ({"text": "t", "number": 1.5}, "number: a whole number was expected, not 1.5"),
        ({"text": "t", "number": True}, "number: a whole number was expected, not True"),
        ({"text": "t", "number": float("nan")}, "number: a whole number was expected, not nan"),
        ({"text": "t", "number": float("inf")}, "number: a whole number was expected, not inf"),
        ({"text": "t", "maybe": "1.5"}, "maybe: a number was expected, not '1.5'"),
        ({"text": "t", "word": 3}, "word: text was expected, not 3"),
        ({"text": "t", "inner": {"value": "x"}}, "inner.value: a number was expected, not 'x'"),
        ({"text": "t", "inner": {}}, "inner.value: it is missing"),
        ({"text": "t", "several": {"value": 1}}, "several: a list was expected, not {'value': 1}"),
        ({"text": "t", "several": [{"value": 1}, 2]}, "several[1]: an object was expected, not 2"),
        ({"text": "t", "couple": [1]}, "couple: a list of 2 was expected, not [1]"),
        ({"text": "t", "pair": ["y", "z"]}, "pair[1]: a whole number was expected, not 'z'"),
        ({"text": "t", "table": {"z": "x"}}, "table.z: a whole number was expected, not 'x'"),
        ({"text": "t", "either": [1]}, "either: text, a number or nothing was expected, not [1]"),
    ],
)
def test_damage_is_told_with_its_path(form: Any, message: str) -> None:
    with pytest.raises(CaseUnreadable) as raised:
        codec.read(Outer, form)
    assert str(raised.value) == message


def test_a_long_value_is_cut_in_the_message() -> None:
    with pytest.raises(CaseUnreadable) as raised:
        codec.read(Outer, {"text": ["x" * 10_000]})
    assert len(str(raised.value)) < 200


def test_whole_numbers_may_be_written_as_floats() -> None:
    number = codec.read(Outer, {"text": "t", "number": 3.0}).number
    assert number == 3
    assert isinstance(number, int)


@pytest.mark.parametrize("kind", [StageDetail, DeviceDetail, PipelineOptions])
def test_details_keep_what_this_version_does_not_know(kind: Any) -> None:
    assert codec.to_plain(codec.read(kind, {"later": {"a": 1}})) == {"later": {"a": 1}}
    assert codec.to_plain(kind()) == {}


def test_options_are_written_before_what_was_observed_of_them() -> None:
    options = PipelineOptions({"autotune.enabled": False}, ("train.py", 3, "main"), 4, "model")
    assert list(codec.to_plain(options)) == ["autotune.enabled", "where", "iterators", "costs_from"]
    assert options.is_off("autotune.enabled")
    assert not options.is_off("deterministic")


def test_a_case_names_the_damaged_value() -> None:
    data = Case("run", steps=None).to_json() | {"trials": [{"levers": ["xla"], "status": "won", "rounds": "nine"}]}
    with pytest.raises(CaseUnreadable, match=r"^trials\[0\]\.rounds: "):
        Case.from_json(data)
