"""The routes that an optimize has tried, the Pareto front, the claim, and the routes that were not tried."""

from __future__ import annotations

from pathlib import Path

from flatout.model.case import Case, Json, Serving, Trial
from flatout.model.evidence.outcomes import Metric, RouteSkipped
from flatout.report.formatting import clean, duration, size
from flatout.report.terminal.page import Column, Page
from flatout.report.terminal.palette import TEAL

_OUTCOMES = {"won": "faster", "lost": "slower", "noise": "as fast", "failed": "failed", "timeout": "given up"}


def has_data(case: Case) -> bool:
    return any(trial.serving for trial in case.trials)


def write(case: Case, page: Page, directory: Path | None) -> None:
    page.line((clean(case.verdict), "bold"), indent=0)
    for note in case.notes:
        page.line((f"{clean(note.level, 10)}: ", "bold" if note.level == "warning" else ""), clean(note.text),
                  f" {clean(note.todo)}" if note.todo else "")  # fmt: skip
    if not has_data(case):
        page.missing("No route was tried in this case.", "`flatout optimize MODEL --data FILE` tries them on a model.")
        return
    tables(case, page)
    _to_use(case, page)


def tables(case: Case, page: Page) -> None:
    routes = [trial for trial in case.trials if trial.stage == "route" and trial.serving]
    done = sorted((trial for trial in routes if trial.step_ms), key=lambda trial: trial.step_ms or 0.0)
    metric = next((clean(item.name, 20) for item in case.evidence_of(Metric)), "agreement")
    batch = next((trial.serving.latencies[0].batch for trial in done if trial.serving and trial.serving.latencies), 1)
    page.heading(
        "Routes", f"in the same rounds, against tf-function{f', batch {batch}' if batch else ''}; ◀ on the front"
    )
    _table(done, metric, page)
    _front(done, metric, page)
    _claim(case, metric, page)
    _not_done([trial for trial in routes if not trial.step_ms], page)
    skipped = case.evidence_of(RouteSkipped)
    if skipped:
        page.heading("Left out")
        for item in skipped:
            page.labelled(clean(item.value), clean(item.note), indent=2, room=26)


def _table(trials: list[Trial], metric: str, page: Page) -> None:
    columns = [
        Column("route", flexible=True),
        Column("p50", right=True),
        Column("speedup", right=True),
        Column("interval"),
        Column(metric, right=True),
        Column("size", right=True),
        Column("memory", right=True, drop=3),
        Column("p95", right=True, drop=4),
        Column("p99", right=True, drop=6),
        Column("load", right=True, drop=5),
        Column("setting", drop=2),
        Column("", drop=1),
    ]
    page.table(columns, [_row(trial, trial.serving) for trial in trials if trial.serving])


def _row(trial: Trial, serving: Serving) -> list[str]:
    latency = serving.latencies[0] if serving.latencies else None
    known = trial.speedup
    return [
        clean(trial.levers[0] if trial.levers else serving.route),
        duration(latency.p50 if latency else trial.step_ms),
        f"{known.ratio:.2f}×" if known else "",
        f"[{known.low:.2f}, {known.high:.2f}]"
        if known
        else clean(trial.note, 20)
        if trial.note == "the baseline"
        else "",
        _kept(serving),
        size(serving.size_bytes) if serving.size_bytes else "",
        size(serving.memory_bytes) if serving.memory_bytes else "",
        duration(latency.p95) if latency else "",
        duration(latency.p99) if latency else "",
        duration(serving.load_ms) if serving.load_ms is not None else "",
        _setting(serving.setting),
        "◀" if serving.on_front else "",
    ]


def _setting(setting: Json) -> str:
    return clean(" ".join(f"{key}={value}" for key, value in setting.items()), 40)


def _kept(serving: Serving) -> str:
    value = serving.metric if serving.metric is not None else serving.agreement
    return "" if value is None else f"{value:.4f}"


def _front(trials: list[Trial], metric: str, page: Page) -> None:
    """The Pareto front as bars of latency: what a smaller or more accurate route costs in time."""
    front = [trial for trial in trials if trial.serving and trial.serving.on_front and trial.serving.latencies]
    if len(front) < 2:
        return
    page.heading("Pareto front", f"nothing is better in latency, size and {metric} at once")
    room = max(len(trial.levers[0]) for trial in front) + 2
    longest = max(trial.serving.latencies[0].p50 for trial in front if trial.serving)
    width = max(10, min(40, page.width - room - 44))
    for trial in front:
        serving = trial.serving
        if serving is None:
            continue
        p50 = serving.latencies[0].p50
        bar = "█" * max(1, round(width * p50 / longest))
        text = f" {duration(p50)} · {size(serving.size_bytes)} · {metric} {_kept(serving)}"
        page.labelled(clean(trial.levers[0]), (bar, TEAL), text, indent=2, room=room)


def _claim(case: Case, metric: str, page: Page) -> None:
    claims = [trial for trial in case.trials if trial.stage == "claim" and trial.serving]
    if not claims:
        return
    page.heading("Measured again", "in fresh processes, against two baselines: this is the claim")
    _table(claims, metric, page)
    winner = next((trial.serving for trial in claims if trial.serving and trial.serving.artefact), None)
    if winner is not None and len(winner.latencies) > 1:
        for latency in winner.latencies:
            gain = latency.speedup
            page.line(
                f"batch {latency.batch}: p50 {duration(latency.p50)}, p99 {duration(latency.p99)}, "
                f"{latency.throughput:,.0f} samples/s",
                f", {gain.ratio:.2f}× [{gain.low:.2f}, {gain.high:.2f}]" if gain else "",
                f", {_setting(latency.setting)}" if latency.setting else "",
            )


def _not_done(trials: list[Trial], page: Page) -> None:
    if trials:
        page.heading("Not recommended", "failed a check, or could not be made")
    for trial in trials:
        page.labelled(clean(trial.levers[0]), f"{_OUTCOMES[trial.status]}: {clean(trial.note, 400)}", indent=2, room=26)


def _to_use(case: Case, page: Page) -> None:
    artefact = next((t.serving.artefact for t in case.trials if t.serving and t.serving.artefact), None)
    if artefact is None:
        return
    page.heading("To use it")
    page.line(f"{clean(artefact, 300)}   the artefact; load.py in it loads it, manifest.json lists what was measured")
    page.line(f"flatout verify {clean(artefact, 300)}   repeats the check on another machine")
