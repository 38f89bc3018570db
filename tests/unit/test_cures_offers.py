"""A finding names only levers that would be tried on this very program."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import pytest

from flatout.causes import diagnose
from flatout.cures import catalogue, name_offered
from flatout.cures._offers import reason_against
from flatout.model.case import Case, Finding, Fix, Frame, Program, Split, Steps, Where
from flatout.model.evidence.program import KerasCall
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
    assert not fixes[1].advice.startswith("#"), "the title of its page, not its first heading"


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


def batches(lever_fits: int, of: str = "train-function") -> Case:
    """A loop of `train_on_batch` that computes for a tenth of its steps."""
    ms = Distribution(median=2.0, p10=2.0, p90=2.0, mean=2.0, low=2.0, high=2.0)
    where = Where("train.py", 9)
    split = Split(input=0.0, python=1.6, compute=0.2, idle=0.2)
    called = KerasCall("train_on_batch", calls=90, ms=180.0, batches=90, single=lever_fits, values=1, where=where)
    steps = Steps(90, "calls of a tf.function that trains", ms, split_ms=split, kind="train", where=where)
    return Case("run", steps=steps, evidence=(StepStack(of, (Frame("train.py", 9, "<module>", 1),)), called))


def test_loops_of_train_on_batch_are_told_of_their_lever() -> None:
    [found] = [item for item in name_offered(diagnose(batches(90))).findings if item.cause == "step-overhead"]
    assert found.fixes[0].lever == "direct-batch"
    [found] = [item for item in name_offered(diagnose(batches(3))).findings if item.cause == "step-overhead"]
    assert "direct-batch" not in [fix.lever for fix in found.fixes], "most calls have class weights"


def test_direct_batch_is_tried_where_batches_are_given_by_hand() -> None:
    assert reason_against("direct-batch", batches(90)) is None
    assert "class weights" in (reason_against("direct-batch", batches(0)) or "")
    assert "neither train_on_batch" in (reason_against("direct-batch", Case("run")) or "")
