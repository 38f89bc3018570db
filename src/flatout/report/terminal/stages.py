"""An inspected pipeline: a drawing with its hot stage, a table of what each stage costs, and how fast it could be."""

from __future__ import annotations

from pathlib import Path

from rich.cells import cell_len
from rich.text import Text

from flatout.model.case import Case, Evidence, Pipeline, Stage
from flatout.report.terminal.page import Column, Page
from flatout.report.terminal.text import clean, duration, elide, number, share, size

WIDEST_NAME = 34


def has_data(case: Case) -> bool:
    return bool(case.evidence_of("pipeline-pace"))


def write(case: Case, page: Page, directory: Path | None) -> None:
    page.line((clean(case.verdict), "bold"), indent=0)
    paces = {str(item.data.get("pipeline")): item for item in case.evidence_of("pipeline-pace")}
    if not paces:
        page.missing(
            "No stage was measured in this case.", "`flatout data inspect script.py` measures each stage of a pipeline."
        )
    for pipeline in case.pipelines:
        pace = paces.get(pipeline.name)
        if pace is not None:
            _pipeline(pipeline, pace, page)
    for note in case.notes:
        page.line((f"{clean(note.level)}: ", "dim"), clean(note.text))


def _pipeline(pipeline: Pipeline, pace: Evidence, page: Page) -> None:
    page.heading(clean(pipeline.name, 60), page.place(pipeline.where, page.width // 2))
    _drawing(pipeline, page)
    page.gap()
    page.line(("Each stage measured alone; time and CPU of one element that it gives", "dim"))
    page.table(
        [
            Column("stage", flexible=True),
            Column("time", right=True),
            Column("CPU", right=True),
            Column("per batch", right=True),
            Column("share", right=True),
            Column("elements", right=True, drop=4),
            Column("size", right=True, drop=5),
            Column("calls", right=True, drop=2),
            Column("buffer", right=True, drop=6),
            Column("memory", right=True, drop=7),
            Column("state", drop=1),
            Column("runs as", drop=8),
            Column("where", flexible=True, middle=True, drop=3, style="cyan"),
        ],
        [_row(stage, page) for stage in pipeline.stages],
    )
    if pipeline.rewritten:
        page.gap()
        page.line(("As TensorFlow runs it, after its own rewrites", "dim"))
        page.line(" → ".join(clean(name, 60) for name in pipeline.rewritten))
    _pace(pace, page)


def _drawing(pipeline: Pipeline, page: Page) -> None:
    """One line for each stage, source first, with a bar of its time: CPU full, waiting light; the hot one is marked."""
    names = ["  " * int(stage.detail.get("depth") or 0) + _title(stage) for stage in pipeline.stages]
    room = min(max((cell_len(name) for name in names), default=0), WIDEST_NAME, page.width // 3)
    times = [_number(stage, "ms_per_batch") for stage in pipeline.stages]
    largest = max(times, default=0.0)
    width = max(page.width - room - 32, 8)
    for position, (stage, name, time) in enumerate(zip(pipeline.stages, names, times, strict=True)):
        busy = min(_number(stage, "cpu_ms_per_batch"), time)
        cells = max(round(width * time / largest), 1) if time > 0 and largest > 0 else 0
        full = round(cells * busy / time) if time > 0 else 0
        hot = bool(stage.detail.get("critical"))
        style = "red" if hot else "green"
        line = Text("→ " if position else "  ", style="dim")
        shown = elide(name, room)
        line.append(shown + " " * (room - cell_len(shown) + 2), style="bold" if hot else "")
        line.append("█" * full + "░" * (cells - full), style=style)
        line.append(" " * (width - cells + 1) + f"{duration(time) if stage.ms is not None else '–':>9}")
        line.append("  ◀ limits it" if hot else "", style="bold red")
        page.line(line)
    page.line(("█ computes  ░ waits   for one element that leaves the pipeline", "dim"))


def _title(stage: Stage) -> str:
    setting = stage.detail.get("batch") or stage.buffer or stage.detail.get("count")
    function = clean(stage.function, 24) if stage.function and stage.function != "<lambda>" else ""
    return " ".join(word for word in (clean(stage.name, 24), function, clean(setting or "", 12)) if word)


def _row(stage: Stage, page: Page) -> list[str]:
    calls = stage.detail.get("parallelism_in_use") or stage.parallelism or ""
    return [
        _title(stage),
        duration(stage.ms),
        duration(_number(stage, "cpu_ms")) if stage.ms is not None else "–",
        duration(_number(stage, "ms_per_batch")) if stage.ms is not None else "–",
        share(stage.share),
        number(stage.detail.get("per_batch")) if stage.ms is not None else "",
        size(stage.detail.get("element_bytes")),
        clean(number(calls) if isinstance(calls, float) else calls, 12),
        clean(stage.buffer or "", 12),
        size(stage.detail["memory_bytes"]) if stage.detail.get("memory_bytes") else "",
        clean(stage.stateful or "", 14),
        clean(stage.detail.get("runs_as") or "", 20),
        page.place(stage.where),
    ]


def _pace(pace: Evidence, page: Page) -> None:
    page.heading("Pace", "elements a second that leave the pipeline")
    rows = [
        ("now", "now_ms", "measured, with nobody else to wait for"),
        ("all parallel", "divided_ms", f"on {number(pace.data.get('cores'))} cores, computed from the costs"),
        ("no limit", "unbounded_ms", "with cores without end: what no parallelism can help"),
        ("needed", "needs_ms", "by the trainer"),
    ]
    for label, key, note in rows:
        ms = pace.data.get(key)
        if isinstance(ms, (int, float)):
            rate = f"{1e3 / ms:,.4g} a second" if ms > 1e-6 else "no bound"
            page.labelled(label, f"{rate:<22}", (clean(note), "dim"), indent=2, room=14)


def _number(stage: Stage, key: str) -> float:
    value = stage.detail.get(key)
    return float(value) if isinstance(value, (int, float)) else 0.0
