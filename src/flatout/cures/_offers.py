"""Which cures a finding names: those that `tune` would try on this very program.

A cause knows which cures help in general. Whether one fits here, only the cure knows: what it says in `skip`, whether
it has a setting, and, where it is an edit of the source, whether the edit finds its place. All of that is asked
without TensorFlow, on the files as they are.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from flatout.causes import find as find_cause
from flatout.cures import _trial_edit
from flatout.cures._catalogue import edit_of, is_injected, levers
from flatout.model.case import Case, Finding, Fix

PROPOSED = ("exact", "reassociated")
"""What a cure may do to the numbers that is named although the cause did not choose it."""


def name_offered(case: Case) -> Case:
    """The case with findings that name a lever only where it would be tried."""
    reasons: dict[str, str | None] = {}

    def why_not(name: str) -> str | None:
        if name not in reasons:
            reasons[name] = reason_against(name, case)
        return reasons[name]

    def named(finding: Finding) -> Finding:
        fixes: list[Fix] = []
        for fix in finding.fixes:
            why = why_not(fix.lever) if fix.lever else None
            fixes.append(replace(fix, lever=None, advice=_with_reason(fix, why)) if why else fix)
        if finding.fixes and any(fix.lever for fix in finding.fixes) and not any(fix.lever for fix in fixes):
            fixes += _instead(finding, why_not)
        return replace(finding, fixes=tuple(fixes))

    return replace(case, findings=tuple(map(named, case.findings)))


def reason_against(name: str, case: Case) -> str | None:
    """Why a lever would not be tried on the program of this case; None where it would."""
    cure = levers().get(name)
    if cure is None:
        return "there is no such lever"
    try:
        why = cure.spec.skip(case)
        if why is not None:
            return why
        values = cure.spec.values(case)
        if not values:
            return "no setting of it fits this program"
        if is_injected(cure):
            return None
        edit = edit_of(cure)
        sources = list(_trial_edit.sources(case))
        if edit is None or any(edit(text, path, case, value) for value in values for path, text in sources):
            return None
        by_hand = cure.spec.by_hand
        return (by_hand(case, values[0]) if by_hand is not None else "") or "its edit finds no place in the source"
    except Exception as error:  # source may be written in any way
        return f"the source could not be looked through: {type(error).__name__}: {error}"


def _with_reason(fix: Fix, why: str) -> str:
    return f"{fix.advice} By hand: the lever {fix.lever} does not fit here ({why.rstrip('.')})."


def _instead(finding: Finding, why_not: Callable[[str], str | None]) -> list[Fix]:
    """The first cure of the cause that does fit, where none of those that it chose does."""
    for name in find_cause(finding.cause).spec.cures:
        cure = levers().get(name)
        if cure is None or cure.spec.equivalence not in PROPOSED or not cure.spec.by_default:
            continue
        if name not in {fix.lever for fix in finding.fixes} and why_not(name) is None:
            text = f"{cure.title}."
            return [Fix(text, lever=name, equivalence=cure.spec.equivalence)]
    return []
