"""All kinds of evidence by name. Reading a case needs them all; making evidence needs only the class itself."""

from __future__ import annotations

from flatout.model.evidence import devices, graphs, job, outcomes, pipelines, program, steps  # noqa: F401
from flatout.model.evidence.base import KINDS, Evidence


def all_kinds() -> dict[str, type[Evidence]]:
    return KINDS


def class_of(kind: str) -> type[Evidence] | None:
    return KINDS.get(kind)
