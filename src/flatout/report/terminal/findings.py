"""The findings of a case, the most expensive first: what, where, how much, how sure, and the cure."""

from __future__ import annotations

from flatout.model import queries
from flatout.model.case import Case, Evidence, Finding, Fix
from flatout.report import words
from flatout.report.formatting import clean, duration, elide, evidence_text, share
from flatout.report.labels import NO_FINDINGS
from flatout.report.terminal.page import Page

IN_FULL = 10
"""Further findings get one line each."""


def write(case: Case, page: Page) -> None:
    if not case.findings:
        if case.kind == "run" and case.steps is None:
            return  # without steps nothing was diagnosed; the verdict says why
        page.heading("Findings")
        page.line(NO_FINDINGS)
        return
    page.heading("Findings", _ranked_by(case) if _has_cost(case) else "")
    for number, finding in enumerate(case.findings[:IN_FULL], 1):
        if number > 1:
            page.gap()
        _in_full(number, finding, page, _of_run(case, finding))
    rest = case.findings[IN_FULL:]
    if rest:
        page.gap()
        for number, finding in enumerate(rest, IN_FULL + 1):
            line = f"{number}  {clean(finding.cause, 40)}  {cost(finding)}  {page.location(finding.where, 40)}"
            page.line(elide(line, page.width - 2))


def _ranked_by(case: Case) -> str:
    """What the shares are of, where that is not the median step alone."""
    whole, rare = queries.whole_ms(case), queries.now_and_then_ms(case)
    known = [(item.cost_ms or 0.0, item.cost_share) for item in case.findings if item.of == "step" and item.cost_share]
    if case.run is not None:
        return "ranked by seconds of the run"
    by_this_rule = all(abs(ms / part - whole) < 0.01 * whole for ms, part in known)  # not in older cases
    if case.kind != "run" or rare < 0.005 * whole or not by_this_rule:
        return "ranked by cost per step"
    often = duration(whole - rare)
    return f"shares are of {duration(whole)}: the median step, {often}, and what comes now and then"


def _has_cost(case: Case) -> bool:
    return any(finding.cost_ms is not None for finding in case.findings)


def cost(finding: Finding) -> str:
    """`82 ms per step · 61 %`; with what findings before it have counted, where it stands for the same time."""
    of = "per step" if finding.of == "step" else "of the run"
    parts = []
    if finding.cost_ms is not None and (finding.cost_ms or not finding.counted_before):
        parts.append(f"{duration(finding.cost_ms)} {of}")
    if finding.cost_share:
        parts.append(share(finding.cost_share))
    if finding.counted_before:
        more = "and " if finding.cost_share else ""
        parts.append(f"{more}{share(finding.counted_before)} counted above")
    return " · ".join(parts)


def _of_run(case: Case, finding: Finding) -> str:
    """` · 0.7 s of the run`, for a cost per step in a run that was watched as a whole."""
    seconds = queries.run_seconds(case, finding) if case.run is not None and finding.of == "step" else None
    return f" · {duration(1000 * seconds)} of the run" if seconds else ""


def _in_full(number: int, finding: Finding, page: Page, of_run: str = "") -> None:
    cause = clean(finding.cause, 40)
    paid = f"{cost(finding)}{of_run}" if cost(finding) else "cost not known"
    page.line(
        (f"{number:>2}  ", "bold"),
        (cause, "bold"),
        f"   {paid}   ",
        f"{clean(finding.confidence, 10)} confidence",
        indent=0,
    )
    if finding.where and finding.where.file:
        code = clean(finding.where.code) if finding.where.code else ""
        spot = page.location(finding.where, min(44, page.width - 6))
        page.line((spot, "bold"), elide(f"   {code}", page.width - 4 - len(spot)) if code else "", indent=4)
    page.line(clean(finding.summary), indent=4)
    facts = [evidence_text(item) for item in best(finding.evidence)]
    if facts:
        page.labelled("evidence", " · ".join(facts))
    if finding.estimate:
        page.labelled("estimate", clean(finding.estimate, 300))
    if finding.fixes:
        page.labelled("cure", clean(finding.fixes[0].advice), *_lever(finding.fixes[0]))
        instead = next((fix for fix in finding.fixes[1:] if fix.lever), None)
        if instead is not None and not finding.fixes[0].lever:
            page.labelled("or", clean(instead.advice), *_lever(instead))
    page.labelled("more", f"flatout explain {cause}")


def _lever(fix: Fix) -> list[str | tuple[str, str]]:
    if fix.lever:
        return [" (lever ", (clean(fix.lever, 40), "bold"), f"; {words.agreement(fix.equivalence)})"]
    return [f" ({words.agreement(fix.equivalence)})"]


def best(evidence: tuple[Evidence, ...], most: int = 3) -> list[Evidence]:
    """Up to three, those with a number first; detectors put the strongest in front."""

    def is_number(item: Evidence) -> bool:
        return isinstance(item.value, (int, float)) and not isinstance(item.value, bool)

    return sorted(evidence, key=lambda item: not is_number(item))[:most]
