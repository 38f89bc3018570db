"""A finding names only levers that would be tried on this very program."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import pytest

from flatout.cures import catalogue, name_offered
from flatout.cures._offers import reason_against
from flatout.model.case import Case, Finding, Fix, Frame, Program, Steps
from flatout.model.evidence.steps import EagerTape, StepStack
from flatout.model.observed import Distribution

FIXTURES = Path(__file__).resolve().parents[1] / "fixtures" / "causes"
LOOP = """import tensorflow as tf

model, optimizer = make()
for images, labels in dataset:
    with tf.GradientTape() as tape:
        loss = tf.reduce_mean(tf.square(labels - model(images)))
{inside}    gradients = tape.gradient(loss, model.trainable_variables)
    optimizer.apply_gradients(zip(gradients, model.trainable_variables))
"""


def eager_case(file: Path, lever: str) -> Case:
    update = next(n for n, row in enumerate(file.read_text().splitlines(), 1) if "apply_gradients" in row)
    stack = (Frame(str(file), update, "<module>", 1),)
    ms = Distribution(median=10.0, p10=10.0, p90=10.0, mean=10.0, low=10.0, high=10.0)
    return Case(
        kind="run",
        program=Program(command=("python", str(file)), directory=str(file.parent)),
        steps=Steps(count=50, found_by="eager optimizer updates", kind="train", ms=ms),
        evidence=(StepStack("apply", stack), EagerTape(1.0, stack)),
        findings=(Finding("eager-step", "Eager.", fixes=(Fix("Move the step.", lever=lever),), cost_share=0.5),),
    )


def test_an_edit_that_engages_is_named(tmp_path: Path) -> None:
    program = tmp_path / "train.py"
    program.write_text(LOOP.format(inside=""))
    assert name_offered(eager_case(program, "extract-step")).findings[0].fixes[0].lever == "extract-step"


def test_one_that_finds_no_place_is_not(tmp_path: Path) -> None:
    program = tmp_path / "train.py"
    program.write_text(LOOP.format(inside="        if float(loss) > 3:\n            break\n"))
    fixes = name_offered(eager_case(program, "extract-step")).findings[0].fixes
    assert fixes[0].lever is None
    assert "Move the step." in fixes[0].advice
    assert "extract-step does not fit here" in fixes[0].advice
    assert [fix.lever for fix in fixes[1:]] == ["function"], "another cure of the cause does fit"


def test_steps_per_execution_is_for_fit_alone(tmp_path: Path) -> None:
    program = tmp_path / "train.py"
    program.write_text(LOOP.format(inside=""))
    why = reason_against("steps-per-execution", eager_case(program, "steps-per-execution"))
    assert why == "the steps are not those of a Keras fit"


@pytest.mark.parametrize("path", sorted(FIXTURES.glob("*/shows.json")), ids=lambda path: path.parent.name)
def test_what_is_named_would_be_tried(path: Path) -> None:
    from flatout.causes import diagnose

    case = name_offered(diagnose(Case.from_json(json.loads(path.read_text()))))
    for fix in (fix for finding in case.findings for fix in finding.fixes if fix.lever):
        assert catalogue()[fix.lever or ""].spec.skip(case) is None, fix
    assert name_offered(case) == replace(case)
