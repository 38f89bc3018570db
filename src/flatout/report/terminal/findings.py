"""The findings of a case, the most expensive first: what, where, how much, how sure, and the cure."""

from __future__ import annotations

from flatout.model.case import Case, Evidence, Finding, Fix
from flatout.report.formatting import clean, duration, elide, evidence_text, share
from flatout.report.labels import NO_FINDINGS
from flatout.report.terminal.page import Page

IN_FULL = 10
"""Further findings get one line each."""

_CONFIDENCE = {"high": "green", "medium": "yellow", "low": "bright_black"}


def write(case: Case, page: Page) -> None:
    if not case.findings:
        if case.kind == "run" and case.steps is None:
            return  # without steps nothing was diagnosed; the verdict says why
        page.heading("Findings")
        page.line(NO_FINDINGS)
        return
    page.heading("Findings", "ranked by cost per step" if _has_cost(case) else "")
    for number, finding in enumerate(case.findings[:IN_FULL], 1):
        if number > 1:
            page.gap()
        _in_full(number, finding, page)
    rest = case.findings[IN_FULL:]
    if rest:
        page.gap()
        for number, finding in enumerate(rest, IN_FULL + 1):
            line = f"{number}  {clean(finding.cause, 40)}  {cost(finding)}  {page.location(finding.where, 40)}"
            page.line(elide(line, page.width - 2))


def _has_cost(case: Case) -> bool:
    return any(finding.cost_ms is not None for finding in case.findings)


def cost(finding: Finding) -> str:
    parts = []
    if finding.cost_ms is not None:
        parts.append(f"{duration(finding.cost_ms)} per step")
    if finding.cost_share is not None:
        parts.append(share(finding.cost_share))
    return " · ".join(parts)


def _in_full(number: int, finding: Finding, page: Page) -> None:
    cause = clean(finding.cause, 40)
    paid = cost(finding) or "cost not known"
    page.line(
        (f"{number:>2}  ", "bold"),
        (cause, "bold"),
        f"   {paid}   ",
        (f"{clean(finding.confidence, 10)} confidence", _CONFIDENCE.get(finding.confidence, "")),
        indent=0,
    )
    if finding.where and finding.where.file:
        code = clean(finding.where.code) if finding.where.code else ""
        spot = page.location(finding.where, min(44, page.width - 6))
        page.line((spot, "cyan"), elide(f"   {code}", page.width - 4 - len(spot)) if code else "", indent=4)
    page.line(clean(finding.summary), indent=4)
    facts = [evidence_text(item) for item in best(finding.evidence)]
    if facts:
        page.labelled("evidence", " · ".join(facts))
    if finding.estimate:
        page.labelled("estimate", clean(finding.estimate, 300))
    if finding.fixes:
        page.labelled("cure", clean(finding.fixes[0].advice), *_lever(finding.fixes[0]))
    page.labelled("more", f"flatout explain {cause}")


def _lever(fix: Fix) -> list[str | tuple[str, str]]:
    if fix.lever:
        return [" (lever ", (clean(fix.lever, 40), "bold"), f", {clean(fix.equivalence, 20)})"]
    return [f" ({clean(fix.equivalence, 20)})"]


def best(evidence: tuple[Evidence, ...], most: int = 3) -> list[Evidence]:
    """Up to three, those with a number first; detectors put the strongest in front."""

    def is_number(item: Evidence) -> bool:
        return isinstance(item.value, (int, float)) and not isinstance(item.value, bool)

    return sorted(evidence, key=lambda item: not is_number(item))[:most]
