"""The tf.data pipelines stage by stage: as written, as TensorFlow runs them, and which stage is slow."""

from __future__ import annotations

from pathlib import Path

from flatout.model.case import Case, Pipeline, Stage
from flatout.model.codec import to_plain
from flatout.report.formatting import clean, duration, number, share, size
from flatout.report.terminal.page import Column, Page


def has_data(case: Case) -> bool:
    return bool(case.pipelines)


def write(case: Case, page: Page, directory: Path | None) -> None:
    if not case.pipelines:
        page.heading("Input")
        page.missing(
            "No tf.data pipeline was seen in this case.",
            "`flatout run` reads a pipeline when the program iterates over a tf.data.Dataset. Arrays "
            "that are handed to a step directly, and generators outside tf.data, do not pass through one.",
        )
        return
    for pipeline in case.pipelines:
        _pipeline(pipeline, page)


def _pipeline(pipeline: Pipeline, page: Page) -> None:
    name = clean(pipeline.name, 60).removeprefix("pipeline ")
    page.heading(f"Pipeline {name}", page.location(pipeline.where, page.width // 2))
    page.fields(
        [
            f"{pipeline.elements:,} element{'s' * (pipeline.elements != 1)}" if pipeline.elements else "",
            f"the step waits {duration(pipeline.wait_ms)} for each" if pipeline.wait_ms is not None else "",
        ]
    )
    page.gap()
    page.line("As written, source first; times per element of the stage")
    hottest = hot(pipeline)
    page.table(
        [
            Column(""),
            Column("stage", flexible=True),
            Column("time", right=True),
            Column("share", right=True),
            Column("elements", right=True, drop=5),
            Column("size", right=True, drop=6),
            Column("parallel", drop=3),
            Column("buffer", drop=4),
            Column("state", drop=1),
            Column("function", flexible=True, drop=7),
            Column("where", flexible=True, middle=True, drop=2),
        ],
        [_row(stage, stage is hottest, page) for stage in pipeline.stages],
    )
    if hottest is not None:
        page.labelled("▓ hot", f"{clean(hottest.name, 60)} takes the most time of all stages.", indent=2, room=11)
    for stage in pipeline.stages:
        if stage.stateful:
            page.labelled("stateful", f"{clean(stage.name, 60)}: {clean(stage.stateful, 200)}", indent=2, room=11)
    if pipeline.rewritten:
        page.gap()
        page.line("As TensorFlow runs it, after its own rewrites")
        page.line(" → ".join(clean(name, 60) for name in pipeline.rewritten))
    if written := to_plain(pipeline.options):
        options = ", ".join(f"{clean(key, 60)}={clean(value, 60)}" for key, value in written.items())
        page.labelled("options", options, indent=2, room=11)


def hot(pipeline: Pipeline) -> Stage | None:
    """The stage with the greatest share, or time if shares are missing. None if nothing was measured."""
    shares = [stage for stage in pipeline.stages if stage.share]
    if shares:
        return max(shares, key=lambda stage: stage.share or 0.0)
    timed = [stage for stage in pipeline.stages if stage.ms]
    return max(timed, key=lambda stage: stage.ms or 0.0) if timed else None


def _row(stage: Stage, is_hot: bool, page: Page) -> list[str]:
    return [
        "▓" if is_hot else "",
        stage.name,
        duration(stage.ms),
        share(stage.share),
        "" if stage.elements is None else number(stage.elements),
        "" if stage.bytes is None else size(stage.bytes),
        clean(stage.parallelism or "", 12),
        clean(stage.buffer or "", 12),
        "stateful" if stage.stateful else "",
        stage.function or "",
        page.location(stage.where),
    ]
