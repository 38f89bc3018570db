"""The trials of a tune as a forest plot, with the interval of each trial, and the resulting patch."""

from __future__ import annotations

import math
from collections.abc import Sequence

from flatout.model.case import Case, Interval, Trial
from flatout.model.evidence.outcomes import LeverSkipped
from flatout.model.levers import shown
from flatout.report import words
from flatout.report.formatting import duration
from flatout.report.html.components import chip, folded, subheading
from flatout.report.html.context import ReportContext
from flatout.report.html.markup import Child, Html, join, tag, verbatim
from flatout.report.trial_groups import Group, groups, name, outcome

TITLE = "Trials"
TICKS = (0.1, 0.2, 0.5, 0.8, 1, 1.25, 1.5, 2, 3, 5, 10, 20, 50, 100, 200, 500, 1000)


def has_data(context: ReportContext) -> bool:
    tried = any(not trial.serving for trial in context.case.trials)  # the view `serving` shows the others
    return bool(tried or context.case.patch or context.case.evidence_of(LeverSkipped))


def write(context: ReportContext) -> Html:
    case = context.case
    scale = _Scale.over([trial.speedup for trial in case.trials if trial.speedup])
    return join(
        [_group(group, scale) for group in groups(case)],
        _use(case),
        _whole_run(case),
        _by_hand(case),
        _patch(case),
        _skipped(case),
    )


class _Scale:
    """A logarithmic scale: twice as fast is as far from 1 as half as fast."""

    def __init__(self, low: float, high: float) -> None:
        self.low, self.high = math.log(low), math.log(high)

    @classmethod
    def over(cls, intervals: list[Interval]) -> _Scale:
        edges = [edge for i in intervals for edge in (i.low, i.ratio, i.high) if edge > 0 and math.isfinite(edge)]
        return cls(min([0.8, *edges]) * 0.95, max([1.25, *edges]) * 1.05)

    def at(self, ratio: float) -> float:
        """Percent from the left."""
        if not ratio > 0:
            return 0.0
        if not math.isfinite(ratio):
            return 100.0
        return min(100.0, max(0.0, 100 * (math.log(ratio) - self.low) / (self.high - self.low)))

    def ticks(self) -> list[float]:
        """Round numbers, as many as there is room for their labels."""
        inside = [tick for tick in TICKS if self.low < math.log(tick) < self.high]
        kept: list[float] = [1]
        for tick in sorted(inside, key=lambda tick: -abs(math.log(tick))):
            if all(abs(self.at(tick) - self.at(other)) >= 15 for other in kept):
                kept.append(tick)
        return sorted(kept)


def _group(group: Group, scale: _Scale) -> Html:
    return tag(
        "div",
        subheading(group.title, group.note),
        tag(
            "div",
            tag(
                "table",
                tag("caption", f"{group.title}: speedups with intervals, {group.note}"),
                tag(
                    "thead",
                    tag(
                        "tr",
                        [tag("th", "lever", scope="col"), tag("th", "speedup", scope="col", class_="number")],
                        tag("th", "interval", scope="col", class_="number minor"),
                        tag("th", _axis(scale), scope="col", class_="plot"),
                        tag("th", "outcome", scope="col"),
                        tag("th", "results", scope="col", class_="minor"),
                        tag("th", "step", scope="col", class_="number minor"),
                        tag("th", "rounds", scope="col", class_="number minor"),
                    ),
                ),
                tag("tbody", [_row(trial, scale) for trial in group.trials]),
                class_="forest",
            ),
            class_="scroll",
            tabindex="0",
            role="region",
            aria_label=group.title,
        ),
        _remarks(group.trials),
        class_="block",
    )


def _axis(scale: _Scale) -> Html:
    ticks = [
        tag("span", f"{tick:g}×", style=f"left:{scale.at(tick):.2f}%", class_="tick one-fold" if tick == 1 else "tick")
        for tick in scale.ticks()
    ]
    return tag("div", ticks, class_="axis", aria_hidden="true")


def _row(trial: Trial, scale: _Scale) -> Html:
    speedup = trial.speedup
    return tag(
        "tr",
        tag("th", name(trial) or "(nothing)", scope="row"),
        tag("td", tag("b", f"{speedup.ratio:.2f}×") if speedup else "–", class_="number"),
        tag("td", _interval(speedup), class_="number minor"),
        tag("td", _mark(trial, scale), class_="plot"),
        tag("td", chip(*_outcome(trial))),
        tag("td", words.agreement(trial.parity) if trial.parity else "", class_="minor"),
        tag("td", duration(trial.step_ms) if trial.step_ms else "", class_="number minor"),
        tag("td", f"{trial.rounds}" if trial.rounds else "", class_="number minor"),
    )


def _outcome(trial: Trial) -> tuple[str, str]:
    if trial.stage == "bound" and trial.status not in ("failed", "timeout"):
        return "bound", "status"
    return outcome(trial), f"status {trial.status}"


def _interval(speedup: Interval | None) -> str:
    return f"[{speedup.low:.2f}, {speedup.high:.2f}]" if speedup and math.isfinite(speedup.high) else ""


def _mark(trial: Trial, scale: _Scale) -> Html:
    one = tag("span", class_="one", style=f"left:{scale.at(1):.2f}%")
    if trial.speedup is None:
        return tag("div", one, class_="track", aria_hidden="true")
    low, high = scale.at(trial.speedup.low), scale.at(trial.speedup.high)
    kind = "bound" if trial.stage == "bound" else trial.status
    return tag(
        "div",
        one,
        tag("span", class_=f"whisker {kind}", style=f"left:{low:.2f}%;width:{max(0.4, high - low):.2f}%"),
        tag("span", class_=f"dot {kind}", style=f"left:{scale.at(trial.speedup.ratio):.2f}%"),
        class_="track",
        aria_hidden="true",
    )


def _remarks(trials: Sequence[Trial]) -> Child:
    noted = [trial for trial in trials if trial.note]
    if not noted:
        return None
    return folded("Remarks", tag("ul", [tag("li", tag("strong", shown(t.levers)), f": {t.note}") for t in noted]))


def _use(case: Case) -> Child:
    if not case.tuned:
        return None
    return tag("p", "To use it: ", tag("code", "flatout run --with @tuned …"), " runs the program for real with ",
               tag("strong", words.change(case.tuned, words.names_in(case))), ".")  # fmt: skip


def _whole_run(case: Case) -> Child:
    whole = case.whole_run
    if whole is None or whole.after_seconds is None:
        return None
    before = f"{whole.before_seconds:.1f} s → " if whole.before_seconds is not None else ""
    ratio = f" ({whole.speedup.ratio:.2f}× {_interval(whole.speedup)})" if whole.speedup is not None else ""
    how = "estimated from its steps" if whole.estimated else f"{whole.pairs} pairs of runs, imports included"
    how += " after a first start that is not counted" if whole.next_start else ""
    end = "" if whole.complete else " The end of the program was not reached."
    if whole.tenfold is not None:
        end += f" With ten times as many steps: {whole.tenfold:.2f}×."
    return tag("p", "Whole run: ", tag("strong", f"{before}{whole.after_seconds:.1f} s{ratio}"), f", {how}.{end}")


def _by_hand(case: Case) -> Child:
    if case.conclusion is None or not case.conclusion.by_hand:
        return None
    return tag("ul", [tag("li", told) for told in case.conclusion.by_hand], class_="notes", aria_label="By hand")


def _patch(case: Case) -> Child:
    if not case.patch:
        return None
    kinds = {"+": "added", "-": "removed", "@": "place"}
    lines = [
        tag("span", verbatim(line) or " ", class_=f"line {kinds.get(line[:1], '')}".strip())
        for line in case.patch[:200_000].splitlines()
    ]
    return tag(
        "div",
        subheading("Patch", "the same change in the source, run as one more trial"),
        tag("figure", tag("pre", tag("code", lines), tabindex="0", aria_label="Patch"), class_="code patch"),
        tag("button", "Download the patch", type="button", data_do="patch"),
        class_="block",
    )


def _skipped(case: Case) -> Child:
    skipped = case.evidence_of(LeverSkipped)
    if not skipped:
        return None
    rows: list[Child] = []
    for item in skipped:
        rows += [tag("dt", str(item.value)), tag("dd", item.note)]
    return folded(f"{len(skipped)} levers were not tried, and why", tag("dl", rows, class_="rows"))
