"""What all evidence has in common, and the registry of its kinds.

A kind of evidence is a class. Its JSON form has the same names for every kind:

    {"kind": "host-sync", "value": 1.35, "unit": "ms/step", "where": …, "source": "hook", "note": "",
     "data": {"per_step": 2.0, "calls": 400, …}}

One field of the class is the `value`, the others of its own are the `data`.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from dataclasses import field
from typing import Any, ClassVar

from flatout.model import codec
from flatout.model.codec import REST, Json
from flatout.model.errors import CaseUnreadable
from flatout.model.location import Where
from flatout.model.record import record

Value = float | int | str | bool | None
COMMON = ("where", "source", "note")
KINDS: dict[str, type[Evidence]] = {}
"""The classes by their kind, filled as their modules are imported; `kinds.all_kinds` imports them all."""


@record(frozen=True, kw_only=True)
class Evidence:
    """Something observed: what, how much, where, and by which instrument (`source`)."""

    KIND: ClassVar[str] = ""
    UNIT: ClassVar[str] = ""
    VALUE: ClassVar[str] = ""
    """The field that is the value; empty for evidence without one."""

    where: Where | None = None
    source: str = ""
    note: str = ""
    other: Json = field(default_factory=dict, metadata=REST)
    """Data that this version has no field for, from a newer one or an older one. It is written again as it was."""

    def __init_subclass__(cls, kind: str = "", value: str = "", unit: str = "") -> None:
        cls.KIND, cls.VALUE, cls.UNIT = kind, value, unit
        if kind in KINDS:
            raise TypeError(f"{cls.__name__} and {KINDS[kind].__name__} are both evidence of the kind {kind!r}")
        if kind:
            KINDS[kind] = cls

    @property
    def kind(self) -> str:
        return self.KIND

    @property
    def value(self) -> Value:
        return getattr(self, self.VALUE) if self.VALUE else None

    @property
    def unit(self) -> str:
        return self.UNIT

    def write_json(self) -> Json:
        return {
            "kind": self.kind,
            "value": codec.plain(self.value),
            "unit": self.unit,
            "where": codec.plain(self.where),
            "source": self.source,
            "note": self.note,
            "data": codec.write_fields(self, _own_fields(type(self))),
        }

    @classmethod
    def read_json(cls, form: Any, path: str) -> Evidence:
        """Evidence of any kind. What does not have the form of its kind, as this version knows it, stays generic."""
        if not isinstance(form, Mapping):
            raise codec.damaged(path, "an object", form)
        generic = codec.read(_Form, form, path)
        known = KINDS.get(generic.kind)
        if known is None or generic.unit != known.UNIT:
            return generic.evidence()
        try:
            own = codec.read_fields(known, generic.data, f"{path}.data", _own_fields(known))
            if known.VALUE and generic.value is not None:
                own |= codec.read_fields(known, {known.VALUE: generic.value}, path, [known.VALUE])
        except CaseUnreadable:
            return generic.evidence()  # one damaged item does not make the case worthless
        if any(one.required and one.attribute not in own for one in codec.plan_of(known)):
            return generic.evidence()
        return known(**own, where=generic.where, source=generic.source, note=generic.note)


@record(frozen=True)
class Measurement(Evidence):
    """A number of a finding, which names it itself."""

    kind: str = ""
    value: Value = None
    unit: str = ""

    def write_json(self) -> Json:
        return codec.to_plain(_Form(self.kind, self.value, self.unit, self.where, self.source, self.note))


@record(frozen=True)
class OtherEvidence(Evidence):
    """Evidence of a kind that this version does not know: from a newer version, an older one or a plugin."""

    kind: str = ""
    value: Value = None
    unit: str = ""
    data: Json = field(default_factory=dict)

    def write_json(self) -> Json:
        return codec.to_plain(_Form(self.kind, self.value, self.unit, self.where, self.source, self.note, self.data))


@record(frozen=True)
class _Form:
    """The JSON form, whatever the kind."""

    kind: str
    value: Value = None
    unit: str = ""
    where: Where | None = None
    source: str = ""
    note: str = ""
    data: Json = field(default_factory=dict)

    def evidence(self) -> Evidence:
        common: dict[str, Any] = {name: getattr(self, name) for name in COMMON}
        if self.data:
            return OtherEvidence(self.kind, self.value, self.unit, self.data, **common)
        return Measurement(self.kind, self.value, self.unit, **common)


def _own_fields(kind: Any) -> tuple[str, ...]:
    """The fields that are the `data`."""
    return tuple(one.name for one in dataclasses.fields(kind) if one.name not in (*COMMON, kind.VALUE))
