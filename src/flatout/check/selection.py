"""Selects patterns by cause, by group, by full name (`late-batch/cheap-map`), or all."""

from __future__ import annotations

import difflib
from collections.abc import Iterable, Sequence

from flatout.causes import GROUPS, catalogue, patterns
from flatout.check.checker import VERSION
from flatout.model.errors import UnknownCause
from flatout.source.analysis.patterns import Pattern

OLDEST = (2, 0)
"""Where projects may pin another TensorFlow, the defaults are those of all; detectors look at the file's."""


def select(
    chosen: Sequence[str] = (),
    added: Sequence[str] = (),
    ignored: Sequence[str] = (),
    version: tuple[int, int] = VERSION,
) -> tuple[Pattern, ...]:
    """The chosen patterns, or the defaults for a version of TensorFlow, plus those added, minus those ignored."""
    known = patterns()
    if chosen:
        names = set(_named(chosen, known))
    else:
        names = {item.full_name for item in known if item.default or version < item.default_below}
    names |= set(_named(added, known))
    names -= set(_named(ignored, known))
    return tuple(item for item in known if item.full_name in names)


def asked(chosen: Sequence[str], added: Sequence[str]) -> frozenset[str]:
    """Full names of the patterns that were named one by one: a cause or a pattern, no group."""
    names = [name for name in (*chosen, *added) if name not in GROUPS]
    return frozenset(_named(names, patterns()))


def matches(cause: str, full_name: str, names: Iterable[str]) -> bool:
    """Whether one of the names covers a finding: `all`, its group, its cause or its pattern."""
    group = catalogue()[cause].spec.group if cause in catalogue() else ""
    return not {"all", group, cause, full_name}.isdisjoint(names)


def check_names(names: Iterable[str]) -> None:
    _named(list(names), patterns())


def _named(names: Sequence[str], known: Sequence[Pattern]) -> list[str]:
    found: list[str] = []
    for name in names:
        if name == "all":
            mine = list(known)
        elif name in GROUPS:
            mine = [item for item in known if catalogue()[item.cause].spec.group == name]
        else:
            mine = [item for item in known if name in (item.cause, item.full_name)]
            if not mine and name not in catalogue():
                raise UnknownCause(_unknown(name, known))
        found += [item.full_name for item in mine]
    return found


def _unknown(name: str, known: Sequence[Pattern]) -> str:
    names = {item.cause for item in known} | {item.full_name for item in known} | {"all", *GROUPS}
    close = difflib.get_close_matches(name, names, n=3, cutoff=0.5)
    hint = f" Did you mean {' or '.join(close)}?" if close else ""
    return f"There is no cause, pattern or group named {name!r}.{hint} `flatout check --list` shows all of them."
