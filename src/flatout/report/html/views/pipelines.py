"""The tf.data pipelines as drawings, source first, with the hot stage marked, and as TensorFlow runs them."""

from __future__ import annotations

from flatout.model.case import Pipeline, Stage
from flatout.model.codec import to_plain
from flatout.report.formatting import duration, number, share, size
from flatout.report.html.components import bar, chip, facts, file_and_line, folded, spot, subheading
from flatout.report.html.context import ReportContext
from flatout.report.html.markup import Child, Html, tag
from flatout.report.html.tables import Cell, Column, table
from flatout.report.terminal.input import hot

TITLE = "Input pipelines"
MOST = 20


def has_data(context: ReportContext) -> bool:
    return bool(context.case.pipelines)


def write(context: ReportContext) -> Html:
    return tag("div", [_pipeline(pipeline, context) for pipeline in context.case.pipelines[:MOST]])


def _pipeline(pipeline: Pipeline, context: ReportContext) -> Html:
    hottest = hot(pipeline)
    return tag(
        "div",
        subheading(pipeline.name, spot(context, pipeline.where)),
        facts(
            [
                ("elements", f"{pipeline.elements:,}" if pipeline.elements else None),
                ("wait for each", duration(pipeline.wait_ms) if pipeline.wait_ms is not None else None),
                ("hot stage", hottest.name if hottest else None),
            ]
        ),
        tag("ol", [_stage(stage, stage is hottest) for stage in pipeline.stages], class_="pipeline"),
        _rewritten(pipeline),
        folded("All stages as a table", _table(pipeline, hottest, context)),
        _options(pipeline),
        class_="block",
    )


def _stage(stage: Stage, is_hot: bool) -> Html:
    return tag(
        "li",
        tag("strong", stage.name),
        chip("hot", "hot") if is_hot else None,
        tag("span", f"{stage.function}()", class_="function") if stage.function else None,
        tag("span", tag("b", duration(stage.ms)), " an element", class_="time") if stage.ms is not None else None,
        tag("span", share(stage.share), bar(stage.share, "hot" if is_hot else ""), class_="time")
        if stage.share
        else None,
        tag("span", _settings(stage), class_="settings"),
        file_and_line(stage.where),
        class_="hot" if is_hot else None,
    )


def _settings(stage: Stage) -> list[Child]:
    found: list[Child] = []
    if stage.parallelism:
        found.append(chip(f"parallel {stage.parallelism}"))
    if stage.buffer:
        found.append(chip(f"buffer {stage.buffer}"))
    if stage.stateful:
        found.append(chip(f"stateful: {stage.stateful}", "warning"))
    return found


def _rewritten(pipeline: Pipeline) -> Html | None:
    if not pipeline.rewritten:
        return None
    return tag(
        "p",
        "As TensorFlow runs it, after its own rewrites: ",
        [(" → " if at else "", tag("code", name)) for at, name in enumerate(pipeline.rewritten)],
        class_="quiet",
    )


def _options(pipeline: Pipeline) -> Html | None:
    written = to_plain(pipeline.options)
    if not written:
        return None
    return tag("p", "Options: ", ", ".join(f"{key}={value}" for key, value in written.items()), class_="quiet")


def _table(pipeline: Pipeline, hottest: Stage | None, context: ReportContext) -> Html:
    rows = [
        [
            stage.name + (" (hot)" if stage is hottest else ""),
            Cell(duration(stage.ms), stage.ms or 0.0),
            Cell(share(stage.share), stage.share or 0.0),
            Cell(number(stage.elements), stage.elements or 0),
            Cell(size(stage.bytes), stage.bytes or 0),
            stage.parallelism,
            stage.buffer,
            stage.stateful,
            stage.function,
            file_and_line(stage.where),
        ]
        for stage in pipeline.stages
    ]
    columns = [
        Column("stage"),
        Column("an element", True),
        Column("share", True),
        Column("elements", True, minor=True),
        Column("size", True, minor=True),
        Column("parallel", minor=True),
        Column("buffer", minor=True),
        Column("state", minor=True),
        Column("function", minor=True),
        Column("where"),
    ]
    return table(columns, rows, f"Stages of {pipeline.name}, source first")
