"""Which levers to try, in which order, and why others are left out."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass

from flatout.causes import catalogue as causes
from flatout.cures import LoadedCure, find
from flatout.cures import levers as all_levers
from flatout.model.case import Case, Finding, Interval
from flatout.model.levers import parse

ALLOWED = ("exact", "reassociated", "precision")
"""Equivalences that are tried by default. What changes the precision is tried, but combined only on request."""
BOUND_MATTERS = 1.03
TIGHT_BOUND = 2.0
"""High end over low end of a bound that may be a reason to leave something out."""
SUGGESTS = 0.02
"""Share of a step that a finding has to cost for its cures to be tried before all others."""


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
    chosen: list[tuple[tuple[float, ...], str]] = []
    skipped: list[tuple[str, str]] = []
    names = dict.fromkeys(parse(text)[0] for text in named)
    for lever in [find(name) for name in names] if named else list(all_levers().values()):
        if lever.spec.equivalence == "bound" or lever.spec.side == "run" or lever.name in without:
            continue
        why = _why_not(lever, case, bool(named), allow, bounds or {})
        values: Sequence[str] = ()
        if why is None:
            why, values = _judged(lever, case, _given(lever, named))
        if why is None and lever.spec.in_whole_runs:
            why = "a step with it is another one: whole runs try it"
        if why is None and not named and saves_beside_steps(lever, case):
            why = "what it saves lies between the steps: whole runs try it"
        if why is not None:
            skipped.append((lever.name, why))
            continue
        for value in values:
            chosen.append((order(lever, case), f"{lever.name}={value}" if value else lever.name))
    chosen.sort(key=lambda item: item[0])
    return Plan(tuple(text for _, text in chosen), tuple(skipped))


def of_run(case: Case, named: Sequence[str] = (), allow: Collection[str] = (), without: Collection[str] = ()) -> Plan:
    """The cures that no race of steps can show: whole runs try them."""
    wanted = {parse(text)[0] for text in named}
    chosen, skipped = [], []
    for lever in all_levers().values():
        of_run = lever.spec.in_whole_runs or (not named and saves_beside_steps(lever, case))
        if not of_run or lever.name in without or (named and lever.name not in wanted):
            continue
        why = _why_not(lever, case, bool(named), allow, {})
        given = _given(lever, named)
        values: Sequence[str] = ()
        if why is None:
            why, values = _judged(lever, case, given)
        if why is not None:
            skipped.append((lever.name, why))
            continue
        chosen += [f"{lever.name}={one}" if one else lever.name for one in given or values[:1]]
    return Plan(tuple(chosen), tuple(skipped))


def _why_not(
    lever: LoadedCure, case: Case, named: bool, allow: Collection[str], bounds: dict[str, Interval]
) -> str | None:
    if not named and lever.spec.fewer_results:
        return f"it leaves out results; only on request: --lever {lever.name}"
    if not named and not lever.spec.by_default and lever.spec.equivalence not in allow:
        return f"only on request: --lever {lever.name}"
    if not named and lever.spec.equivalence not in (*ALLOWED, *allow):
        return f"{lever.spec.equivalence}: it changes the training itself; --allow {lever.spec.equivalence} to try it"
    for side, name, free in (("input", "free-input", "an input"), ("compute", "free-compute", "a computation")):
        bound = bounds.get(name)
        if lever.spec.side == side and bound is not None and excludes(bound):
            return f"even {free} that costs nothing gives {bound.ratio:.2f} [{bound.low:.2f}, {bound.high:.2f}]"
    return None


def _given(lever: LoadedCure, named: Sequence[str]) -> list[str]:
    """The settings with which it is named."""
    return list(dict.fromkeys(value for name, value in map(parse, named) if name == lever.name and value))


def _judged(lever: LoadedCure, case: Case, given: Sequence[str]) -> tuple[str | None, Sequence[str]]:
    """Why the cure leaves itself out, and its settings. It reads source that anybody may have written: where it fails
    at that, the others are tried none the less."""
    try:
        why = lever.spec.skip(case)
        values = () if why is not None else given or lever.spec.values(case)
    except Exception as error:
        return f"it cannot read this program: {type(error).__name__}: {error}", ()
    return why or (None if values else "no setting of it fits this program"), values


def excludes(bound: Interval) -> bool:
    """Whether a bound shows that its side is not worth curing. One below 1 says that the trial of the bound itself went
    wrong, a wide one says nothing."""
    return bound.ratio >= 1 and bound.high <= TIGHT_BOUND * bound.low and bound.high < BOUND_MATTERS


def order(lever: LoadedCure, case: Case) -> tuple[float, ...]:
    """For sorting: the levers of the first finding, then those of the findings that cost most together, last those that
    none names. One lever cures all places of a program: what counts is what they cost in all."""
    named = [(number, one) for number, one in enumerate(case.findings) if _place(lever.name, one) is not None]
    if not named:
        return (2, 0.0, 0, 0)
    together = sum(one.cost_share or 0.0 for _, one in named)
    number, first = named[0]
    return (min(number, 1), -min(together, 1.0), number, _place(lever.name, first) or 0)


def suggested(lever: LoadedCure, case: Case) -> bool:
    """Whether a finding names it whose cost is not negligible, or not known."""
    return any(
        _place(lever.name, finding) is not None and (number == 0 or _costs(finding))
        for number, finding in enumerate(case.findings)
    )


def saves_beside_steps(lever: LoadedCure, case: Case) -> bool:
    """Whether findings name it for what lies between the steps alone (a validation that predicts batch by batch), which
    no race of steps shows."""
    named = [finding for finding in case.findings if _place(lever.name, finding) is not None]
    return bool(lever.spec.saves and named) and all(finding.of == "run" for finding in named)


def _costs(finding: Finding) -> bool:
    """With what a finding before it counts as well: an estimate that is too large would leave nothing to the others."""
    return finding.cost_share is None or finding.full_share >= SUGGESTS


def _place(name: str, finding: Finding) -> int | None:
    """Where the finding names it: its own fixes before the cures that its cause has in general; None: nowhere."""
    named = cures_of(finding)
    return named.index(name) if name in named else None


def cures_of(finding: Finding) -> list[str]:
    """Levers that it names: its own fixes before those that its cause has in general."""
    fixes = [parse(fix.lever)[0] for fix in finding.fixes if fix.lever]
    known = causes()
    return [*fixes, *(known[finding.cause].spec.cures if finding.cause in known else ())]


def first_of_each(case: Case, levers: Sequence[str]) -> tuple[str, ...]:
    """Of these levers the one that each finding names first, with all of its settings where several go together."""
    found: list[str] = []
    for finding in case.findings:
        named = [(place, text) for text in levers if (place := _place(parse(text)[0], finding)) is not None]
        first = min(named, default=(0, ""))[0]
        found += [text for place, text in named if place == first and text not in found]
    return combinations(found)[-1] if found else ()


def combinations(winners: Sequence[str]) -> list[tuple[str, ...]]:
    """The best alone, the two best together, and so on; levers that exclude each other never together."""
    together: list[str] = []
    found = []
    for text in winners:
        if not excluded(text, together):
            together.append(text)
            found.append(tuple(together))
    return found


def excluded(text: str, others: Sequence[str]) -> bool:
    """Whether a lever cannot be combined with one of these."""
    lever = find(parse(text)[0])
    names = {parse(other)[0] for other in others}
    if (lever.name in names and not lever.spec.several) or names & set(lever.spec.conflicts):
        return True
    return any(lever.name in find(name).spec.conflicts for name in names)
