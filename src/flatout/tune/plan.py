"""Which levers to try, in which order, and why others are left out."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass

from flatout.causes import catalogue as causes
from flatout.cures import LoadedCure, find
from flatout.cures import levers as all_levers
from flatout.model.case import Case, Interval
from flatout.model.levers import parse

ALLOWED = ("exact", "reassociated", "precision")
"""Equivalences that are tried by default. What changes the precision is tried, but combined only on request."""
BOUND_MATTERS = 1.03


@dataclass(frozen=True)
class Plan:
    levers: tuple[str, ...]
    """With their settings; those that diagnosis expects most of come first."""
    skipped: tuple[tuple[str, str], ...]
    """(lever, why)."""


def make(
    case: Case,
    named: Sequence[str] = (),
    allow: Collection[str] = (),
    without: Collection[str] = (),
    bounds: dict[str, Interval] | None = None,
) -> Plan:
    """`named`: only these; `allow`: further equivalences (semantic); `bounds`: the measured speedup of each bound."""
    chosen: list[tuple[float, str]] = []
    skipped: list[tuple[str, str]] = []
    wanted = {parse(text)[0]: parse(text)[1] for text in named}
    for lever in [find(name) for name in wanted] if named else list(all_levers().values()):
        if lever.spec.equivalence == "bound" or lever.name in without:
            continue
        why = _why_not(lever, case, bool(named), allow, bounds or {})
        if why is not None:
            skipped.append((lever.name, why))
            continue
        values = [wanted[lever.name]] if wanted.get(lever.name) else lever.spec.values(case)
        if not values:
            skipped.append((lever.name, "no setting of it fits this program"))
        for value in values:
            chosen.append((expected(lever, case), f"{lever.name}={value}" if value else lever.name))
    chosen.sort(key=lambda item: -item[0])
    return Plan(tuple(text for _, text in chosen), tuple(skipped))


def _why_not(
    lever: LoadedCure, case: Case, named: bool, allow: Collection[str], bounds: dict[str, Interval]
) -> str | None:
    if not named and not lever.spec.by_default and lever.spec.equivalence not in allow:
        return f"only on request: --lever {lever.name}"
    if not named and lever.spec.equivalence not in (*ALLOWED, *allow):
        return f"{lever.spec.equivalence}: it changes the training itself; --allow {lever.spec.equivalence} to try it"
    for side, name, free in (("input", "free-input", "an input"), ("compute", "free-compute", "a computation")):
        bound = bounds.get(name)
        if lever.spec.side == side and bound is not None and bound.high < BOUND_MATTERS:
            return f"even {free} that costs nothing gives {bound.ratio:.2f} [{bound.low:.2f}, {bound.high:.2f}]"
    return lever.spec.skip(case)


def expected(lever: LoadedCure, case: Case) -> float:
    """What diagnosis expects of a lever: the cost of the findings that it is known to cure."""
    known = causes()
    by_findings = [
        finding.cost_share or 0.0
        for finding in case.findings
        if lever.name in (known[finding.cause].spec.cures if finding.cause in known else ())
        or any(fix.lever == lever.name for fix in finding.fixes)
    ]
    return max(by_findings, default=0.0)


def combinations(winners: Sequence[str]) -> list[tuple[str, ...]]:
    """The best alone, the two best together, and so on; levers that exclude each other never together."""
    together: list[str] = []
    found = []
    for text in winners:
        lever = find(parse(text)[0])
        names = {parse(other)[0] for other in together}
        if (lever.name in names and not lever.spec.several) or names & set(lever.spec.conflicts):
            continue
        if any(lever.name in find(name).spec.conflicts for name in names):
            continue
        together.append(text)
        found.append(tuple(together))
    return found
