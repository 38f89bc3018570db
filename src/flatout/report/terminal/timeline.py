"""The steps in order: their times, outliers, functions that were traced again, the trace window."""

from __future__ import annotations

from pathlib import Path
from statistics import median

from flatout.model.case import Case, Steps
from flatout.report.formatting import clean, duration, number
from flatout.report.terminal import overview
from flatout.report.terminal.charts import bar, buckets, spark
from flatout.report.terminal.page import Column, Page
from flatout.report.terminal.palette import AMBER, TEAL

ROWS = 16
SLOWEST = 8


def has_data(case: Case) -> bool:
    return case.steps is not None


def write(case: Case, page: Page, directory: Path | None) -> None:
    page.heading("Timeline")
    if case.steps is None:
        page.missing(
            "No steps were found in this case.",
            "`flatout run` finds the steps of Keras fit, of custom loops with an optimizer and of predict "
            "loops. A program that ended before its second step, or a trace without step marks, has none.",
        )
    else:
        overview.steps(case.steps, page)
        if case.steps.times_ms:
            _course(case.steps, page)
            _outliers(case.steps, page)
        if case.steps.window:
            first, last = case.steps.window
            page.gap()
            page.line(f"The trace window covers the steps {first:,} to {last:,}.")
    _retraces(case, page)
    _files(case, page, directory)


def _course(steps: Steps, page: Page) -> None:
    """Blocks of consecutive steps. The case may keep a sample of the times, so the step numbers are computed."""
    scale = steps.count / len(steps.times_ms)
    groups = buckets(steps.times_ms, ROWS)
    largest = max(median(group) for group in groups)
    rows, position = [], 0
    for group in groups:
        first, last = round(position * scale), round((position + len(group)) * scale) - 1
        middle = median(group)
        rows.append(
            [
                f"{first:,} – {max(first, last):,}",
                duration(middle),
                duration(max(group)),
                bar(middle, largest, max(8, page.width - 50)),
            ]
        )
        position += len(group)
    page.heading("Course", "medians of consecutive steps")
    page.table(
        [
            Column("steps", right=True),
            Column("median", right=True),
            Column("slowest", right=True),
            Column("", style=TEAL),
        ],
        rows,
    )
    if len(steps.times_ms) > ROWS:
        peaks = [max(group) for group in buckets(steps.times_ms, page.width - 14)]
        page.line("slowest  ", (spark(peaks, 0.9 * min(steps.times_ms), max(peaks)), AMBER))


def _outliers(steps: Steps, page: Page) -> None:
    middle = steps.ms.median
    scale = steps.count / len(steps.times_ms)
    slow = [(time, i) for i, time in enumerate(steps.times_ms) if middle > 0 and time > 2 * middle]
    if not slow:
        return
    page.heading("Outliers", f"{len(slow):,} steps took more than twice the median; the slowest:")
    rows = [
        [number(round(i * scale)), duration(time), f"{time / middle:.1f}×"]
        for time, i in sorted(slow, reverse=True)[:SLOWEST]
    ]
    page.table([Column("step", right=True), Column("time", right=True), Column("of median", right=True)], rows)


def _retraces(case: Case, page: Page) -> None:
    again = [function for function in case.functions if function.why]
    if not again:
        return
    page.heading("Traced again", "why: flatout show --view functions")
    page.table(
        [Column("function", flexible=True), Column("traces", right=True), Column("tracing", right=True),
         Column("where", flexible=True, middle=True)],
        [[f.name, number(f.traces), duration(f.trace_ms), page.location(f.where)] for f in again],
    )  # fmt: skip


def _files(case: Case, page: Page, directory: Path | None) -> None:
    """The files to open in a viewer. They are in the directory of the case, which names its log directory."""
    lines = []
    if directory is not None:
        lines += [
            f"{clean(path)}: open in https://ui.perfetto.dev" for path in sorted(directory.glob("*perfetto*"))[:3]
        ]
    if case.logdir:
        logs = clean(directory / case.logdir if directory else case.logdir)
        lines.append(f"{logs}: open with `tensorboard --logdir` or `xprof --logdir`")
    if lines:
        page.heading("In a viewer")
        for line in lines:
            page.line(line)
