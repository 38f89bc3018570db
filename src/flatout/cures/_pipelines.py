"""Questions about the pipelines of a Case, for the `skip` of the cures of the input."""

from __future__ import annotations

from collections.abc import Iterator

from flatout.model import queries
from flatout.model.case import Case, Pipeline, Stage

WORTH = 0.02
"""Share of the step below which curing the input cannot be measured."""


def no_wait(case: Case) -> str | None:
    """Why no cure of the input can help; None where the steps wait for their input, or where that is unknown."""
    if not case.pipelines:
        return "the program iterates no tf.data pipeline"
    if case.steps is None or case.steps.split_ms is None:
        return None
    waits = queries.share(case, queries.input_ms(case))
    return f"the steps wait {waits:.1%} of their time for input" if waits < WORTH else None


def stages(case: Case) -> Iterator[tuple[Pipeline, int, Stage]]:
    """The stages that the program itself wrote, each with its pipeline and its index there."""
    for pipeline in case.pipelines:
        for position, stage in enumerate(pipeline.stages):
            if not stage.detail.by_keras:
                yield pipeline, position, stage


def is_map(stage: Stage) -> bool:
    return stage.name in ("Map", "ParallelMap")
