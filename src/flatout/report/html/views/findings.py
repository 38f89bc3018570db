"""The findings as cards, the most expensive first: what, where, the evidence, the cure, and what it gave when tried."""

from __future__ import annotations

from flatout.causes import catalogue
from flatout.model.case import Case, Evidence, Finding, Fix, Trial
from flatout.model.levers import shown
from flatout.report.html.markup import Child, Html, join, tag
from flatout.report.html.material import Material
from flatout.report.html.parts import bar, chip, code, folded, missing
from flatout.report.html.prose import inline, page
from flatout.report.terminal.text import duration, quantity, share
from flatout.report.trials import outcome

TITLE = "Findings"
MOST = 60


def has_data(material: Material) -> bool:
    case = material.case
    return bool(case.findings) or case.kind in ("trace", "check") or (case.kind == "run" and case.steps is not None)


def write(material: Material) -> Html:
    findings = material.case.findings
    if not findings:
        return missing("Nothing worth changing was found.")
    first = {finding.cause: finding for finding in reversed(findings)}  # a cause is explained once
    cards = [
        tag("li", _card(number, finding, material, explained=first[finding.cause] is finding))
        for number, finding in enumerate(findings[:MOST], 1)
    ]
    more = len(findings) - MOST
    return join(tag("ol", cards, class_="cards"), missing(f"and {more:,} more in the JSON") if more > 0 else None)


def _card(number: int, finding: Finding, material: Material, explained: bool) -> Html:
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
        code(material, finding.where),
        tag("dl", _rows(finding, material.case), class_="rows"),
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
        " a step" if finding.cost_ms is not None else None,
        tag("span", share(finding.cost_share), class_="share") if finding.cost_share is not None else None,
        bar(finding.cost_share, "hot") if finding.cost_share is not None else None,
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
    return [*parts, chip(fix.equivalence, f"equivalence {fix.equivalence}")]


def _gain(fix: Fix, case: Case) -> Child:
    """What the lever did in a trial of this very program; the confirmation counts before the first race."""
    trial = tried(fix.lever, case)
    if trial is None:
        words = "not tried in this case" if case.trials else "not tried yet: flatout tune tries it on the program"
        return tag("span", words if fix.lever else "an edit by hand: no lever stands for it", class_="quiet")
    mark = chip(outcome(trial), f"status {trial.status}")
    if trial.speedup is None:
        return [mark, f" {trial.note}"]
    others = [name for name in trial.levers if name.partition("=")[0] != fix.lever]
    how = "on top of" if trial.upon else "together with"
    together = f"{how} {shown(others)}: " if others else None
    interval = f" [{trial.speedup.low:.2f}, {trial.speedup.high:.2f}]"
    numbers = f" · numbers {trial.parity}" if trial.parity else ""
    ratio = tag("b", f"{trial.speedup.ratio:.2f}×")
    return [together, ratio, tag("span", interval + numbers, class_="quiet"), " ", mark]


def tried(lever: str | None, case: Case) -> Trial | None:
    if not lever:
        return None
    order = {"combination": 0, "single": 1}
    found = [t for t in case.trials if t.stage in order and lever in (name.partition("=")[0] for name in t.levers)]

    def rank(trial: Trial) -> tuple[bool, int, float]:
        """Alone before together with others, confirmed before not, faster before slower."""
        return len(trial.levers) > 1, order[trial.stage], -(trial.speedup.ratio if trial.speedup else 0.0)

    return min(found, key=rank, default=None)


def _explanation(cause: str) -> Child:
    known = catalogue().get(cause)
    title = ["Why ", tag("code", cause), " costs time, and when it does not"]
    return folded(title, page(known.page)) if known else None
