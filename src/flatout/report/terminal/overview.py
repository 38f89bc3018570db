"""The overview: one screen for a run or a tune; of other cases all there is, as in the view `details`."""

from __future__ import annotations

from pathlib import Path

from flatout.model.case import Case, Steps
from flatout.report.formatting import clean, duration, elide, share
from flatout.report.labels import NO_VERDICT, device_name, name_of_steps
from flatout.report.terminal import findings, run, run_screen, screen, serving, trials, tune_screen
from flatout.report.terminal.charts import PARTS, keyed, stacked, typical_spark
from flatout.report.terminal.page import Column, Page
from flatout.report.terminal.palette import TEAL

_LEVELS = {"error": ("error", "bold"), "warning": ("warning", "bold"), "info": ("note", "")}
SCREENS = {"run": run_screen.write, "tune": tune_screen.write}


def has_data(case: Case) -> bool:
    return True


def write(case: Case, page: Page, directory: Path | None) -> None:
    if case.kind in SCREENS:
        screen.write(case, page, directory, SCREENS[case.kind])
    else:
        details(case, page, directory)


def details(case: Case, page: Page, directory: Path | None) -> None:
    """The verdict, where the time of a step goes, all findings with their evidence, trials, notes."""
    _program(case, page)
    page.gap()
    page.line((clean(case.verdict) or NO_VERDICT, "bold"), indent=0)
    run.write(case, page)
    if case.steps:
        steps(case.steps, page)
    if case.devices:
        _devices(case, page)
    if case.findings or case.kind in ("run", "trace", "check", "env"):
        findings.write(case, page)
    if case.kind == "optimize" and serving.has_data(case):
        serving.tables(case, page)
    elif case.trials:
        trials.tables(case, page)
    if case.notes:
        page.heading("Notes")
        for note in case.notes:
            page.line(_LEVELS.get(note.level, ("note", "")), f": {clean(note.text)}", _todo(note.todo))


def _program(case: Case, page: Page) -> None:
    program = case.program
    words = program.command[program.command[:1] == (case.kind,) :]  # the command of a trace case begins with `trace`
    command = clean(" ".join(words), 300)
    facts = [f"{duration(1000 * program.seconds)} in all" if program.seconds else ""]
    if program.signal:
        facts.append(f"ended by signal {clean(program.signal, 30)}")
    elif program.exit_code is not None:
        facts.append(f"exit code {program.exit_code}")
    facts.append(clean(program.started, 40))
    page.line(elide(f"flatout {clean(case.kind, 20)}  {command}", page.width), indent=0)
    if any(facts):
        page.line(" · ".join(fact for fact in facts if fact), indent=0)
    if program.error:
        page.line(("The program failed: ", "bold"), clean(program.error, 500), indent=0)


def steps(found: Steps, page: Page) -> None:
    """Median and spread, warm-up apart, the split, and the course over time."""
    page.heading("Step", f"{found.count:,} {name_of_steps(found.kind)}, found by {clean(found.found_by, 200)}")
    page.fields(
        [
            f"median {duration(found.ms.median)}",
            f"p10–p90 {duration(found.ms.p10)} – {duration(found.ms.p90)}",
            f"warm-up apart: {found.warmup:,} step{'s' * (found.warmup != 1)}, {duration(found.warmup_ms)}"
            if found.warmup
            else "",
            f"outliers {found.outliers:,}" if found.outliers else "",
            f"trend {100 * found.trend:+.0f} %" if abs(found.trend) >= 0.05 else "",
        ]
    )
    if found.where and found.where.file:
        page.line(_source(found, page))
    split = found.split_ms
    if split and split.total() > 0:
        total = split.total()
        values = {name: float(getattr(split, name)) for name, _, _ in PARTS}
        page.line(stacked(values, page.width - 4))
        legend = [
            keyed(glyph, colour, f"{name} {duration(values[name])} {share(values[name] / total)}")
            for name, glyph, colour in PARTS
            if values[name] > 0
        ]
        page.fields(legend)
        if found.split_from:
            page.line(f"split from {clean(found.split_from, 200)}")
    if len(found.times_ms) > 1:
        line, low, high = typical_spark(found.times_ms, min(page.width - 32, 100))
        page.line((line, TEAL), f"  {duration(low)} to {duration(high)}")


def _source(found: Steps, page: Page) -> str:
    width = page.width - 2
    code = clean(found.where.code) if found.where and found.where.code else ""
    spot = page.location(found.where, min(48, width))
    return elide(f"{spot}   {code}" if code else spot, width)


def _devices(case: Case, page: Page) -> None:
    page.heading("Devices")
    page.table(
        [Column("device", flexible=True), Column("busy", right=True), Column("of window", right=True),
         Column("tensor cores", right=True, drop=1), Column("model", flexible=True, drop=2)],
        [[device_name(device.name), share(device.busy_share), duration(device.window_ms),
          "" if device.tensor_core_share is None else share(device.tensor_core_share), device.model]
         for device in case.devices[:16]],
    )  # fmt: skip


def _todo(todo: str) -> str:
    return f" {clean(todo)}" if todo else ""
