"""How numbers are put into sentences."""

from __future__ import annotations

import pytest

from flatout.model import queries
from flatout.model.case import Case, Distribution, Pipeline, PipelineOptions, Split, Stage, StageDetail, Steps


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (0.5, "0.5 times a step"),
        (0.02, "0.02 times a step"),
        (1.0, "once a step"),
        (1.4, "1.4 times a step"),
        (2.0, "2 times a step"),
        (16.0, "16 times a step"),
        (2000.4, "2000 times a step"),
    ],
)
def test_what_happens_in_a_step_is_never_told_as_zero_times(value: float, text: str) -> None:
    assert queries.times_a_step(value) == text


def test_one_thing_is_no_plural() -> None:
    assert [queries.counted(count, "thread") for count in (0, 1, 2000)] == ["0 threads", "1 thread", "2,000 threads"]


def _pipeline(name: str, ms: float, drawn: int | None) -> Pipeline:
    stages = (Stage("Map", "Map", ms=ms, detail=StageDetail(ms_per_batch=ms)),)
    return Pipeline(name, None, stages, elements=100, options=PipelineOptions(drawn=drawn))


@pytest.mark.parametrize(
    ("of_training", "of_validation", "hot"),
    [
        (20, 0, "training"),
        (20, 2, "training"),
        (20, 20, "validation"),
        (None, None, "validation"),
        (0, 0, "validation"),
    ],
)
def test_the_hot_stage_is_of_the_pipeline_that_the_steps_draw_from(
    of_training: int | None, of_validation: int | None, hot: str
) -> None:
    """A batch of the validation costs more here, as may be where only the training's pipeline is parallel."""
    steps = Steps(100, "fit", Distribution(10.0, 9.0, 11.0, 10.0), Split(input=5.0, compute=5.0))
    pipelines = (_pipeline("training", 4.0, of_training), _pipeline("validation", 9.0, of_validation))
    found = queries.hot_stage(Case(kind="run", steps=steps, pipelines=pipelines))
    assert found is not None
    assert found.pipeline.name == hot
