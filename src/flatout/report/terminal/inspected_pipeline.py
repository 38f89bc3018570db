"""An inspected pipeline: a drawing with the hot stage, the cost of each stage, and how fast it could be."""

from __future__ import annotations

from pathlib import Path

from rich.cells import cell_len
from rich.text import Text

from flatout.model.case import Case, Pipeline, Stage
from flatout.model.evidence.pipelines import PipelinePace
from flatout.report.formatting import clean, duration, elide, number, share, size
from flatout.report.terminal.page import Column, Page
from flatout.report.terminal.palette import GREEN, RED

WIDEST_NAME = 34


def has_data(case: Case) -> bool:
    return bool(case.evidence_of(PipelinePace))


def write(case: Case, page: Page, directory: Path | None) -> None:
    page.line((clean(case.verdict), "bold"), indent=0)
    paces = {item.pipeline: item for item in case.evidence_of(PipelinePace)}
    if not paces:
        page.missing(
            "No stage was measured in this case.", "`flatout data inspect script.py` measures each stage of a pipeline."
        )
    for pipeline in case.pipelines:
        pace = paces.get(pipeline.name)
        if pace is not None:
            _pipeline(pipeline, pace, page)
    for note in case.notes:
        page.line(f"{clean(note.level)}: ", clean(note.text))


def _pipeline(pipeline: Pipeline, pace: PipelinePace, page: Page) -> None:
    page.heading(clean(pipeline.name, 60), page.location(pipeline.where, page.width // 2))
    _drawing(pipeline, page)
    page.gap()
    page.line("Each stage measured alone; time and CPU of one element that it gives")
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
            Column("where", flexible=True, middle=True, drop=3),
        ],
        [_row(stage, page) for stage in pipeline.stages],
    )
    if pipeline.rewritten:
        page.gap()
        page.line("As TensorFlow runs it, after its own rewrites")
        page.line(" → ".join(clean(name, 60) for name in pipeline.rewritten))
    _pace(pace, page)


def _drawing(pipeline: Pipeline, page: Page) -> None:
    """One line per stage, source first, with a bar of its time (dark: CPU, light: waiting); the hot one is marked."""
    names = ["  " * (stage.detail.depth or 0) + _title(stage) for stage in pipeline.stages]
    room = min(max((cell_len(name) for name in names), default=0), WIDEST_NAME, page.width // 3)
    times = [stage.detail.ms_per_batch or 0.0 for stage in pipeline.stages]
    largest = max(times, default=0.0)
    width = max(page.width - room - 32, 8)
    for position, (stage, name, time) in enumerate(zip(pipeline.stages, names, times, strict=True)):
        busy = min(stage.detail.cpu_ms_per_batch or 0.0, time)
        cells = max(round(width * time / largest), 1) if time > 0 and largest > 0 else 0
        full = round(cells * busy / time) if time > 0 else 0
        hot = bool(stage.detail.critical)
        style = RED if hot else GREEN
        line = Text("→ " if position else "  ")
        shown = elide(name, room)
        line.append(shown + " " * (room - cell_len(shown) + 2), style="bold" if hot else "")
        line.append("█" * full + "░" * (cells - full), style=style)
        line.append(" " * (width - cells + 1) + f"{duration(time) if stage.ms is not None else '–':>9}")
        line.append("  ◀ limits it" if hot else "", style="bold")
        page.line(line)
    page.line("█ computes  ░ waits   for one element that leaves the pipeline")


def _title(stage: Stage) -> str:
    setting = stage.detail.batch or stage.buffer or stage.detail.count
    function = clean(stage.function, 24) if stage.function and stage.function != "<lambda>" else ""
    return " ".join(word for word in (clean(stage.name, 24), function, clean(setting or "", 12)) if word)


def _row(stage: Stage, page: Page) -> list[str]:
    calls = stage.detail.parallelism_in_use or stage.parallelism or ""
    return [
        _title(stage),
        duration(stage.ms),
        duration(stage.detail.cpu_ms or 0.0) if stage.ms is not None else "–",
        duration(stage.detail.ms_per_batch or 0.0) if stage.ms is not None else "–",
        share(stage.share),
        number(stage.detail.per_batch) if stage.ms is not None else "",
        size(stage.detail.element_bytes),
        clean(number(calls) if isinstance(calls, float) else calls, 12),
        clean(stage.buffer or "", 12),
        size(stage.detail.memory_bytes) if stage.detail.memory_bytes else "",
        clean(stage.stateful or "", 14),
        clean(stage.detail.runs_as or "", 20),
        page.location(stage.where),
    ]


def _pace(pace: PipelinePace, page: Page) -> None:
    page.heading("Pace", "elements a second that leave the pipeline")
    rows = [
        ("now", pace.now_ms, "measured, without a consumer"),
        ("all parallel", pace.divided_ms, f"on {number(pace.cores)} cores, computed from the costs"),
        ("no limit", pace.unbounded_ms, "with unlimited cores: the part that cannot run in parallel"),
        ("needed", pace.needs_ms, "by the trainer"),
    ]
    for label, ms, note in rows:
        if ms is not None:
            rate = f"{1e3 / ms:,.4g} a second" if ms > 1e-6 else "no bound"
            page.labelled(label, f"{rate:<22}", clean(note), indent=2, room=14)
