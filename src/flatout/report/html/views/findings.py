"""The findings as cards, the most expensive first: cause, location, evidence, cure, and its measured effect."""

from __future__ import annotations

from flatout.causes import catalogue
from flatout.model.case import Case, Evidence, Finding, Fix, Trial
from flatout.model.levers import shown
from flatout.model.queries import is_diagnosed
from flatout.report import words
from flatout.report.formatting import duration, quantity, share
from flatout.report.html.cause_page import inline, page
from flatout.report.html.components import bar, chip, code, folded, missing
from flatout.report.html.context import ReportContext
from flatout.report.html.markup import Child, Html, join, tag
from flatout.report.labels import NO_FINDINGS
from flatout.report.trial_groups import outcome

TITLE = "Findings"
MOST = 60


def has_data(context: ReportContext) -> bool:
    return bool(context.case.findings) or is_diagnosed(context.case)


def write(context: ReportContext) -> Html:
    findings = context.case.findings
    if not findings:
        return missing(NO_FINDINGS)
    first = {finding.cause: finding for finding in reversed(findings)}  # each cause is explained once
    cards = [
        tag("li", _card(number, finding, context, explained=first[finding.cause] is finding))
        for number, finding in enumerate(findings[:MOST], 1)
    ]
    more = len(findings) - MOST
    return join(tag("ol", cards, class_="cards"), missing(f"and {more:,} more in the JSON") if more > 0 else None)


def _card(number: int, finding: Finding, context: ReportContext, explained: bool) -> Html:
    return tag(
        "article",
        tag(
            "header",
            tag("span", f"{number}", class_="rank", aria_hidden="true"),
            tag("h3", finding.cause),
            chip(f"{finding.confidence} confidence", f"confidence-{finding.confidence}"),
            _cost(finding),
        ),
        tag("p", inline(finding.summary), class_="claim"),
        code(context, finding.where),
        tag("dl", _rows(finding, context.case), class_="rows"),
        _explanation(finding.cause) if explained else None,
        class_="card",
        aria_label=f"Finding {number}: {finding.cause}",
    )


def _cost(finding: Finding) -> Html:
    if finding.cost_ms is None and finding.cost_share is None:
        return tag("p", "cost not known", class_="cost quiet")
    return tag(
        "p",
        tag("b", duration(finding.cost_ms)) if finding.cost_ms is not None else None,
        (" a step" if finding.of == "step" else " of the run") if finding.cost_ms is not None else None,
        tag("span", share(finding.cost_share), class_="share") if finding.cost_share is not None else None,
        bar(finding.cost_share, "hot") if finding.cost_share is not None else None,
        tag("span", f"and {share(finding.counted_before)} counted above", class_="quiet")
        if finding.counted_before
        else None,
        class_="cost",
    )


def _rows(finding: Finding, case: Case) -> list[Child]:
    rows: list[Child] = []
    if finding.evidence:
        rows += [tag("dt", "Evidence"), tag("dd", tag("ul", [_evidence(item) for item in finding.evidence[:8]]))]
    if finding.estimate:
        rows += [tag("dt", "Cost from"), tag("dd", finding.estimate)]
    for fix in finding.fixes[:4]:
        rows += [tag("dt", "Cure"), tag("dd", _fix(fix)), tag("dt", "Measured"), tag("dd", _gain(fix, case))]
    return rows


def _evidence(item: Evidence) -> Html:
    kind = item.kind.replace("-", " ").replace("_", " ")
    value = quantity(item.value, item.unit) if item.value is not None else None
    note = tag("span", f" {item.note}", class_="quiet") if item.note else None
    return tag("li", f"{kind} ", tag("b", value) if value else None, note)


def _fix(fix: Fix) -> list[Child]:
    parts: list[Child] = [*inline(fix.advice), " "]
    if fix.lever:
        parts += [chip(f"lever {fix.lever}", "lever"), " "]
    return [*parts, chip(words.agreement(fix.equivalence), f"equivalence {fix.equivalence}")]


def _gain(fix: Fix, case: Case) -> Child:
    """The effect of the lever in a trial of this program. A confirmed result takes precedence over the first race."""
    trial = tried(fix.lever, case)
    if trial is None:
        told = "not tried in this case" if case.trials else "not tried yet: flatout tune tries it on the program"
        return tag("span", told if fix.lever else "a manual edit: there is no lever for it", class_="quiet")
    mark = chip(outcome(trial), f"status {trial.status}")
    if trial.speedup is None:
        return [mark, f" {trial.note}"]
    others = [name for name in trial.levers if name.partition("=")[0] != fix.lever]
    how = "on top of" if trial.upon else "together with"
    together = f"{how} {shown(others)}: " if others else None
    interval = f" [{trial.speedup.low:.2f}, {trial.speedup.high:.2f}]"
    numbers = f" · {words.agreement(trial.parity)}" if trial.parity else ""
    ratio = tag("b", f"{trial.speedup.ratio:.2f}×")
    return [together, ratio, tag("span", interval + numbers, class_="quiet"), " ", mark]


def tried(lever: str | None, case: Case) -> Trial | None:
    if not lever:
        return None
    order = {"combination": 0, "single": 1}
    found = [t for t in case.trials if t.stage in order and lever in (name.partition("=")[0] for name in t.levers)]

    def rank(trial: Trial) -> tuple[bool, int, float]:
        """Single levers before combinations, confirmed before unconfirmed, faster before slower."""
        return len(trial.levers) > 1, order[trial.stage], -(trial.speedup.ratio if trial.speedup else 0.0)

    return min(found, key=rank, default=None)


def _explanation(cause: str) -> Child:
    known = catalogue().get(cause)
    title = ["Why ", tag("code", cause), " costs time, and when it does not"]
    return folded(title, page(known.page)) if known else None
