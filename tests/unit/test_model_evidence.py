"""Evidence: every kind survives JSON, and what this version does not understand survives too."""

from __future__ import annotations

import dataclasses
import json
import subprocess
import sys
import types
import typing
from typing import Any, Literal

import pytest

from flatout.model import codec
from flatout.model.case import Case, Evidence, Measurement, OtherEvidence, Where
from flatout.model.errors import CaseUnreadable
from flatout.model.evidence.devices import DeviceBusy, MatrixPrecision
from flatout.model.evidence.kinds import all_kinds
from flatout.model.evidence.program import CpuUse
from flatout.model.evidence.steps import HostSync, StepStack, Tracing
from flatout.model.location import Frame

KINDS = all_kinds()
WHERE = Where("train.py", 12, "step", "loss = step(x)")


def example(hint: Any) -> Any:
    """A value of this type that is no default."""
    origin, arguments = typing.get_origin(hint), typing.get_args(hint)
    if origin is Literal:
        return arguments[-1]
    if origin in (typing.Union, types.UnionType):
        return example(next(one for one in arguments if one is not types.NoneType))
    if origin is tuple:
        inner = arguments[:1] * 2 if arguments[-1] is Ellipsis else arguments
        return tuple(example(one) for one in inner)
    if origin is dict:
        return {"a name": example(arguments[1])}
    if hint is Frame:
        return Frame("train.py", 3, "main", 1)
    if hint is Any:
        return "anything"
    return {str: "text", int: 7, float: 1.5, bool: True}[hint]


def filled(kind: type[Evidence]) -> Evidence:
    hints = typing.get_type_hints(kind)
    own = [field.name for field in dataclasses.fields(kind) if field.name not in ("where", "source", "note", "other")]
    values = {name: example(hints[name]) for name in own}
    return kind(**values, where=WHERE, source="hook", note="a note", other={"of a newer version": [1, 2]})


def bare(kind: type[Evidence]) -> Evidence:
    """With no more than what has to be there."""
    hints = typing.get_type_hints(kind)
    required = [field.name for field in dataclasses.fields(kind) if field.default is dataclasses.MISSING]
    return kind(**{name: example(hints[name]) for name in required if name != "other"})


def through_json(item: Evidence) -> Evidence:
    return codec.read(Evidence, json.loads(json.dumps(codec.to_plain(item), allow_nan=False)))


@pytest.mark.parametrize("kind", KINDS.values(), ids=list(KINDS))
@pytest.mark.parametrize("make", [filled, bare])
def test_every_kind_survives_json(kind: type[Evidence], make: Any) -> None:
    item = make(kind)
    again = through_json(item)
    assert type(again) is kind
    assert again == item


@pytest.mark.parametrize("kind", KINDS.values(), ids=list(KINDS))
def test_the_json_form_has_the_same_names_for_every_kind(kind: type[Evidence]) -> None:
    form = codec.to_plain(filled(kind))
    assert list(form) == ["kind", "value", "unit", "where", "source", "note", "data"]
    assert form["kind"] == kind.KIND
    assert (form["value"] is not None) == bool(kind.VALUE)
    assert kind.VALUE not in form["data"]


def test_a_kind_has_one_class() -> None:
    with pytest.raises(TypeError, match="HostSync"):
        types.new_class("Another", (Evidence,), {"kind": "host-sync"})


def test_the_form_of_one_kind_in_full() -> None:
    item = HostSync(1.35, per_step=2.0, calls=400, bytes_per_step=8.0, how="numpy", where=WHERE, source="hook")
    assert codec.to_plain(item) == {
        "kind": "host-sync",
        "value": 1.35,
        "unit": "ms/step",
        "where": {"file": "train.py", "line": 12, "function": "step", "code": "loss = step(x)"},
        "source": "hook",
        "note": "",
        "data": {"per_step": 2.0, "calls": 400, "bytes_per_step": 8.0, "how": "numpy"},
    }


def test_a_case_gives_the_evidence_of_one_kind() -> None:
    mine, other = CpuUse(1.5, cores=2), Tracing(3.0, 4, 100)
    case = Case("run", evidence=(other, mine, Measurement("cpu-use", 1.5, "cores")))
    assert case.evidence_of(CpuUse) == (mine,)
    assert case.evidence_of(StepStack) == ()


@pytest.mark.parametrize(
    "form",
    [
        {"kind": "of-a-newer-version", "value": 3, "unit": "things", "data": {"deep": {"er": [1, None]}}},
        {"kind": "of-a-plugin", "value": "text", "unit": "", "data": {}},
        {"kind": "without-a-value", "value": None, "unit": "", "data": {"a": True}},
    ],
)
def test_an_unknown_kind_is_written_again_as_it_was(form: dict[str, Any]) -> None:
    whole = {"where": codec.to_plain(WHERE), "source": "elsewhere", "note": "n", **form}
    item = codec.read(Evidence, whole)
    assert isinstance(item, OtherEvidence if form["data"] else Measurement)
    assert codec.to_plain(item) == whole


@pytest.mark.parametrize(
    ("value", "unit", "data"),
    [
        (1.5, "cores", {}),  # a number of a finding has the same name
        (1.5, "percent", {"cores": 2}),  # another unit
        ("much", "cores", {"cores": 2}),
        (True, "cores", {"cores": 2}),
        (None, "cores", {"cores": 2}),
        (1.5, "cores", {"cores": 2.5}),
        (1.5, "cores", {"cores": [2]}),
        (1.5, "cores", {"cores": 2, "idle": "none"}),
    ],
)
def test_what_does_not_fit_its_kind_stays_generic(value: Any, unit: str, data: dict[str, Any]) -> None:
    form = {"kind": "cpu-use", "value": value, "unit": unit, "where": None, "source": "", "note": "", "data": data}
    item = codec.read(Evidence, form)
    assert not isinstance(item, CpuUse)
    assert codec.to_plain(item) == form


@pytest.mark.parametrize(
    ("form", "path"),
    [
        ("text", "evidence[0]"),
        ({"value": 1}, "evidence[0].kind"),
        ({"kind": 3}, "evidence[0].kind"),
        ({"kind": "cpu-use", "unit": None}, "evidence[0].unit"),
        ({"kind": "cpu-use", "where": "train.py:3"}, "evidence[0].where"),
        ({"kind": "cpu-use", "where": {"line": "three"}}, "evidence[0].where.line"),
        ({"kind": "cpu-use", "data": []}, "evidence[0].data"),
    ],
)
def test_damage_is_told_with_its_path(form: Any, path: str) -> None:
    with pytest.raises(CaseUnreadable) as raised:
        Case.from_json({"kind": "run", "evidence": [form]})
    assert str(raised.value).startswith(f"{path}: ")


def test_a_stack_is_read_as_frames() -> None:
    form = {"kind": "step-stack", "value": "fit", "data": {"stack": [["train.py", 9, "main", 2]], "policy": "float32"}}
    item = codec.read(Evidence, form)
    assert isinstance(item, StepStack)
    assert item.stack[0].first_line == 2
    assert item.policy == "float32"
    assert "jit_compile" not in codec.to_plain(item)["data"], "what is not known is left out"


def test_names_in_json_may_differ_from_attributes() -> None:
    assert codec.to_plain(DeviceBusy(0.5, 5.0, 10.0, "gpu"))["data"]["kind"] == "gpu"
    assert codec.to_plain(MatrixPrecision("TF32", other={"TF32": 0.9}))["data"] == {"TF32": 0.9}


def test_the_model_needs_neither_numpy_nor_rich() -> None:
    code = (
        "import sys, flatout.model.case, flatout.model.queries\n"
        "from flatout.model.evidence.kinds import all_kinds\n"
        "assert all_kinds()\n"
        "sys.exit(bool({'numpy', 'rich', 'typer', 'tensorflow'} & set(sys.modules)))"
    )
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0


def test_importing_a_case_does_not_import_every_kind() -> None:
    code = "import sys, flatout.model.case; sys.exit('flatout.model.evidence.devices' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0
