"""All causes by name, and their patterns."""

from __future__ import annotations

import dataclasses
import functools
from collections.abc import Mapping

from flatout.causes._spec import GROUPS, Cause
from flatout.model.errors import UnknownCause
from flatout.plugins import Catalogue, Loaded, suggestion
from flatout.source.analysis.patterns import Pattern

_CAUSES = Catalogue("flatout.causes", declares="CAUSE", kind=Cause)


@functools.cache
def catalogue() -> Mapping[str, Loaded[Cause]]:
    """All causes by name, in the order of their groups."""
    found = sorted(_CAUSES.all().values(), key=lambda cause: (GROUPS.index(cause.spec.group), cause.name))
    return {cause.name: cause for cause in found}


def find(name: str) -> Loaded[Cause]:
    """The cause of this name."""
    causes = catalogue()
    if name in causes:
        return causes[name]
    hint = suggestion(name, causes)
    raise UnknownCause(f"There is no cause named {name!r}.{hint} `flatout explain` lists all {len(causes)}.")


@functools.cache
def patterns() -> tuple[Pattern, ...]:
    """How all causes look in source; each pattern with the name of its cause."""
    return tuple(
        dataclasses.replace(pattern, cause=cause.name)
        for cause in catalogue().values()
        for pattern in cause.spec.patterns
    )
