"""The routes that an optimize has tried: latency against accuracy, the Pareto front, and a row for each."""

from __future__ import annotations

from flatout.model.case import Case, Interval, Serving, Trial
from flatout.model.evidence.outcomes import Metric, RouteSkipped
from flatout.report.formatting import duration, size
from flatout.report.html.charts import chart, label
from flatout.report.html.components import chip, facts, folded, subheading
from flatout.report.html.context import ReportContext
from flatout.report.html.markup import Child, Html, join, tag
from flatout.report.html.tables import Cell, Column, table
from flatout.report.trial_groups import outcome

TITLE = "Serving"
COLUMNS = (
    Column("route", wide=True),
    Column("p50", number=True),
    Column("p95", number=True, minor=True),
    Column("p99", number=True, minor=True),
    Column("speedup", number=True),
    Column("kept", number=True),
    Column("size", number=True),
    Column("memory", number=True, minor=True),
    Column("load", number=True, minor=True),
    Column("precision", minor=True),
    Column("setting", minor=True),
    Column("outcome", minor=True),
)


def has_data(context: ReportContext) -> bool:
    return any(trial.serving for trial in context.case.trials)


def write(context: ReportContext) -> Html:
    case = context.case
    routes = [trial for trial in case.trials if trial.serving and trial.stage == "route"]
    timed = sorted((trial for trial in routes if trial.step_ms), key=lambda trial: trial.step_ms or 0.0)
    claims = [trial for trial in case.trials if trial.serving and trial.stage == "claim"]
    metric = next((item.name for item in case.evidence_of(Metric)), "agreement")
    return join(
        _winner(claims),
        _front(timed, metric),
        subheading("Measured again", "in fresh processes, against two baselines: this is the claim")
        if claims
        else None,
        _table(claims, "The claim") if claims else None,
        subheading("Routes", f"in the same rounds, against tf-function; kept: {metric}"),
        _table(timed, "Routes that were timed"),
        _failed([trial for trial in routes if not trial.step_ms]),
        _skipped(case),
    )


def _winner(claims: list[Trial]) -> Child:
    served = next((trial.serving for trial in claims if trial.serving and trial.serving.artefact), None)
    if served is None:
        return None
    batches = [
        (f"batch {latency.batch}" if latency.batch else "a call", f"{latency.throughput:,.0f} samples/s")
        for latency in served.latencies
    ]
    return facts([("artefact", tag("code", served.artefact)), ("format", served.format), *batches])


def _front(trials: list[Trial], metric: str) -> Child:
    points = [(trial, trial.serving) for trial in trials if trial.serving and _kept(trial.serving) is not None]
    if len(points) < 2:
        return None
    traces = []
    for on_front, name, color in ((False, "beaten", "@muted"), (True, "on the front", "@accent")):
        chosen = [(trial, serving) for trial, serving in points if serving.on_front is on_front]
        traces.append(
            {
                "type": "scatter",
                "mode": "markers+text" if on_front else "markers",  # names of all would lie upon each other
                "name": name,
                "x": [round(serving.latencies[0].p50, 5) for _, serving in chosen],
                "y": [_kept(serving) for _, serving in chosen],
                "text": [label(trial.levers[0], 30) for trial, _ in chosen],
                "textposition": "top right",  # the front begins at the left edge
                "customdata": [size(serving.size_bytes) for _, serving in chosen],
                "marker": {"color": color, "size": 10},
                "hovertemplate": "%{text}<br>%{x:.4~g} ms, %{y:.5~g}, %{customdata}<extra></extra>",
            }
        )
    best = points[0][0].levers[0]
    summary = f"Latency of a call against {metric}; {best} is the fastest, routes further right and lower are beaten."
    layout = {
        "xaxis": {"title": {"text": "p50 in ms"}, "type": "log"},
        "yaxis": {"title": {"text": label(metric, 30)}},
        "showlegend": True,
    }
    return chart(traces, layout, summary, height=360, caption=summary)


def _table(trials: list[Trial], caption: str) -> Html:
    return table(COLUMNS, [_row(trial, trial.serving) for trial in trials if trial.serving], caption)


def _row(trial: Trial, serving: Serving) -> list[Cell | Child]:
    latency = serving.latencies[0] if serving.latencies else None
    speedup, kept = trial.speedup, _kept(serving)
    return [
        Cell([trial.levers[0] if trial.levers else serving.route, " ", chip("front") if serving.on_front else None]),
        Cell(duration(latency.p50), latency.p50) if latency else "",
        Cell(duration(latency.p95), latency.p95) if latency else "",
        Cell(duration(latency.p99), latency.p99) if latency else "",
        Cell([tag("b", f"{speedup.ratio:.2f}×"), tag("small", _bounds(speedup))], speedup.ratio) if speedup else "",
        Cell(f"{kept:.4f}", kept) if kept is not None else "",
        Cell(size(serving.size_bytes), serving.size_bytes) if serving.size_bytes else "",
        Cell(size(serving.memory_bytes), serving.memory_bytes) if serving.memory_bytes else "",
        Cell(duration(serving.load_ms), serving.load_ms) if serving.load_ms is not None else "",
        serving.precision,
        " ".join(f"{key}={value}" for key, value in serving.setting.items()),
        chip(outcome(trial), f"status {trial.status}"),
    ]


def _bounds(speedup: Interval) -> str:
    return f"[{speedup.low:.2f}, {speedup.high:.2f}]"


def _kept(serving: Serving) -> float | None:
    return serving.metric if serving.metric is not None else serving.agreement


def _failed(trials: list[Trial]) -> Child:
    if not trials:
        return None
    rows: list[Child] = []
    for trial in trials:
        rows += [tag("dt", trial.levers[0] if trial.levers else ""), tag("dd", trial.note)]
    return folded(f"{len(trials)} failed a check, or could not be made", tag("dl", rows, class_="rows"), open_=True)


def _skipped(case: Case) -> Child:
    skipped = case.evidence_of(RouteSkipped)
    if not skipped:
        return None
    rows: list[Child] = []
    for item in skipped:
        rows += [tag("dt", str(item.value)), tag("dd", item.note)]
    return folded(f"{len(skipped)} routes were not tried, and why", tag("dl", rows, class_="rows"))
