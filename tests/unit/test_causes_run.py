"""Causes of the whole run: one ranking by seconds of the run, and a first sentence about the run."""

from __future__ import annotations

import dataclasses
import sys
from pathlib import Path

import pytest
from sample_case import sample_case

from flatout.causes import Cause, catalogue, diagnose, drawing_seconds, run_sentence
from flatout.cures import find as find_cure
from flatout.model import queries
from flatout.model.case import Case, Finding, Program, RunPart, RunTree, Where
from flatout.model.evidence.graphs import RepeatedOps
from flatout.model.evidence.program import KerasCall
from flatout.model.evidence.steps import EagerLine, EagerTape, FunctionsMade, StepStack, Tracing
from flatout.model.location import Frame
from flatout.plugins import Loaded


def case_with(*parts: RunPart, seconds: float = 20.0) -> Case:
    case = sample_case()
    program = dataclasses.replace(case.program, seconds=seconds)
    rest = seconds - sum(part.seconds for part in parts)
    tree = RunTree(seconds, (*parts, RunPart("import", "tensorflow", rest)))
    return dataclasses.replace(case, kind="run", program=program, run=tree, findings=(), evidence=())


def found(case: Case, name: str) -> list[Finding]:
    return [item for look in catalogue()[name].spec.detectors.values() for item in look(case)]


def test_the_first_sentence_names_what_took_long_and_the_steps() -> None:
    assert run_sentence(sample_case()) == (
        "15.0 s: 7.2 s in Gallery.on_epoch_end (train.py:17), 5.5 s before the first step "
        "(4.5 s importing tensorflow), 1.4 s in 300 training steps."
    )
    assert run_sentence(dataclasses.replace(sample_case(), run=None)) == ""


@pytest.mark.parametrize(("most", "words"), [(6.0, "most of it at"), (3.0, "the largest part of it at"), (2.0, "")])
def test_a_line_has_most_of_a_part_from_half_of_it_on(most: float, words: str) -> None:
    lines = [RunPart("line", "", value, where=Where("train.py", row)) for row, value in enumerate((most, 1.5, 1.0), 1)]
    text = run_sentence(case_with(RunPart("program", "", 10.0, parts=tuple(lines))))
    place = f", {words} train.py:1" if words else ""
    assert f"10.0 s in other lines of the program{place}," in f"{text[:-1]},"


@pytest.mark.parametrize("cost", [0.02, None])
def test_no_cause_was_found_is_not_said_above_findings(cost: float | None, monkeypatch: pytest.MonkeyPatch) -> None:
    one = Finding("gpu-unused", "The GPU is not used.", cost_ms=None, cost_share=cost)
    lone = Loaded(
        "gpu-unused", "A cause", "", sys.modules[__name__], Cause(group="hardware", in_run=lambda case: [one])
    )
    monkeypatch.setattr("flatout.causes._diagnosis.catalogue", lambda: {"gpu-unused": lone})
    case = diagnose(dataclasses.replace(case_with(), verdict=""))
    assert len(case.findings) == 1
    assert "No cause is known to cost more than 5%, although only" in case.verdict


@pytest.mark.parametrize(("outside", "of"), [(True, "run"), (False, "step")])
def test_eager_calls_after_training_cost_the_run_and_no_step(outside: bool, of: str) -> None:
    case = case_with(RunPart("steps", "fit", 5.0, 300))
    assert case.steps is not None
    count = case.steps.count
    line = EagerLine(
        5000 / count, "model", calls=500, per_step=500 / count, outside=outside, where=Where("train.py", 9)
    )
    (item,) = found(dataclasses.replace(case, evidence=(line,)), "eager-calls")
    assert item.of == of
    assert ("outside of the steps" in item.summary) == outside
    if outside:
        assert item.cost_ms == pytest.approx(4000)
        assert item.cost_share == pytest.approx(0.2)


@pytest.mark.parametrize(("outside", "of"), [(True, "run"), (False, "step")])
def test_predict_after_training_by_hand_costs_the_run_and_no_step(outside: bool, of: str) -> None:
    case = case_with(RunPart("steps", "tape", 5.0, 300))
    assert case.steps is not None
    calls = case.steps.count
    call = KerasCall("predict", calls, 10.0 * calls, calls, single=calls, where=Where("train.py", 40), outside=outside)
    (item,) = found(dataclasses.replace(case, evidence=(StepStack("tape"), call)), "predict-in-loop")
    assert item.of == of
    if outside:
        assert item.cost_ms == pytest.approx(0.9 * 10.0 * calls)


def test_weights_that_are_loaded_before_training_are_no_part_of_a_step() -> None:
    case = case_with(RunPart("steps", "fit", 5.0, 300))
    line = EagerLine(20.0, "set-weights", calls=30, per_step=0.3, outside=True, where=Where("train.py", 9))
    assert found(dataclasses.replace(case, evidence=(line,)), "weight-copies") == []
    assert found(dataclasses.replace(case, evidence=(dataclasses.replace(line, outside=False),)), "weight-copies")


def test_a_costly_callback_comes_before_a_cheap_part_of_the_steps() -> None:
    gallery = RunPart("callback", "Gallery.on_epoch_end", 9.0, 3, Where("train.py", 17))
    case = diagnose(case_with(RunPart("steps", "fit", 0.4, 300), gallery))
    costs = [queries.run_seconds(case, item) or 0.0 for item in case.findings if item.cost_share is not None]
    assert case.findings[0].cause == "slow-callback"
    assert case.findings[0].cost_ms == pytest.approx(9000)
    assert costs == sorted(costs, reverse=True)
    assert case.verdict.startswith("20.0 s: 10.6 s before the first step")
    assert "45% of the run goes to slow-callback" in case.verdict


def test_a_cost_per_step_is_told_in_seconds_of_the_run() -> None:
    case = case_with(RunPart("steps", "fit", 5.0, 300))
    item = Finding("step-overhead", "It is.", cost_ms=1.0, cost_share=0.5)
    assert queries.run_seconds(case, item) == pytest.approx(2.5)
    assert queries.run_seconds(case, dataclasses.replace(item, of="run")) == pytest.approx(10.0)


@pytest.mark.parametrize(
    ("cause", "part"),
    [
        ("slow-callback", RunPart("callback", "Short.on_epoch_end", 0.2, 3)),
        ("checkpoint-bound", RunPart("checkpoint", "Model.save", 0.2, 3)),
        ("summary-bound", RunPart("summary", "write", 0.2, 300)),
        ("validation-bound", RunPart("validation", "evaluate", 8.0, 1)),
        ("compile-bound", RunPart("tracing", "step", 1.5, 2)),
        ("between-epochs", RunPart("epoch-start", "fit", 0.2, 4)),
        ("late-exit", RunPart("exit", "", 2.0)),
        ("slow-start", RunPart("import", "numpy", 0.3)),
    ],
)
def test_what_every_program_has_is_no_finding(cause: str, part: RunPart) -> None:
    assert found(case_with(RunPart("steps", "fit", 8.0, 300), part), cause) == []


@pytest.mark.parametrize(
    ("name", "calls", "epochs", "advice"),
    [
        ("Model.save", 3, 3, "Save weights alone (save_weights), and every few minutes"),
        ("Model.save", 1, 3, "Save weights alone where"),
        ("Model.save_weights", 1, 3, "Write them to a fast local disk"),
        ("Model.save", 300, 3, "Save every thousandth step or once an epoch, not 300 times"),
        ("Model.save", 100, 100, "Save weights alone (save_weights), and every few minutes"),
    ],
)
def test_the_advice_for_checkpoints_is_not_what_the_program_does(
    name: str, calls: int, epochs: int, advice: str
) -> None:
    case = case_with(RunPart("steps", "fit", 5.0, 300), RunPart("checkpoint", name, 9.0, calls))
    assert case.run is not None
    (item,) = found(dataclasses.replace(case, run=dataclasses.replace(case.run, epochs=epochs)), "checkpoint-bound")
    assert item.fixes[-1].advice.startswith(advice)


def test_what_is_done_once_for_a_fit_cannot_be_done_every_few_epochs() -> None:
    (item,) = found(case_with(RunPart("callback", "Draw.on_train_end", 9.0, 1)), "slow-callback")
    assert "epochs" not in item.fixes[-1].advice
    (item,) = found(case_with(RunPart("callback", "Time_batch_and_train_loop.on_epoch_end", 9.0, 3)), "slow-callback")
    assert item.fixes[-1].advice.startswith("Do this every few epochs")


def test_an_exit_is_long_only_against_what_the_import_took() -> None:
    slow_machine = case_with(RunPart("exit", "", 8.0), seconds=40.0)
    assert found(slow_machine, "late-exit") == []
    lines = (RunPart("line", "", 6.0, where=Where("train.py", 3)),)
    (item,) = found(case_with(RunPart("exit", "", 8.0, parts=lines), seconds=40.0), "late-exit")
    assert item.where == Where("train.py", 3)


@pytest.mark.parametrize(("value", "words"), [(6.0, "most of it"), (4.0, "the largest part of it")])
def test_a_line_with_less_than_half_is_not_told_as_most(tmp_path: Path, value: float, words: str) -> None:
    program = str(tmp_path / "train.py")
    line = RunPart("line", "", value, where=Where(program, 3))
    others = tuple(RunPart("line", "", (9.0 - value) / 2, where=Where(program, number)) for number in (2, 4))
    (between,) = found(in_loop(tmp_path, RunPart("program", "", 9.0, parts=(line, *others))), "between-epochs")
    (exit_of,) = found(case_with(RunPart("exit", "", 10.0, parts=(line,))), "late-exit")
    (start,) = found(case_with(RunPart("before", "", 10.0, parts=(line,))), "slow-start")
    assert all(words in item.summary.lower() for item in (exit_of, start, between))


def test_traces_are_long_only_against_what_the_import_took() -> None:
    """On a machine that others use, both take several times as long."""
    own = Where("train.py", 3)
    assert found(case_with(RunPart("tracing", "step", 8.0, 2, own), seconds=40.0), "compile-bound") == []
    assert len(found(case_with(RunPart("tracing", "step", 18.0, 2, own), seconds=40.0), "compile-bound")) == 1


def test_what_keras_traces_by_itself_is_a_finding_where_it_takes_very_long() -> None:
    assert found(case_with(RunPart("tracing", "one_step_on_iterator", 7.0, 2), seconds=20.0), "compile-bound") == []
    assert (
        len(found(case_with(RunPart("tracing", "one_step_on_iterator", 78.0, 2), seconds=108.0), "compile-bound")) == 1
    )


def test_a_score_on_predictions_is_told_from_pictures() -> None:
    predicted = RunPart("prediction", "predict", 2.0, 3)
    score = RunPart("line", "numpy", 3.0, where=Where("train.py", 20))
    callback = RunPart("callback", "Auc.on_epoch_end", 5.2, 3, Where("train.py", 17), (predicted, score))
    drawing = dataclasses.replace(callback, parts=(predicted, dataclasses.replace(score, name="matplotlib")))
    assert [len(found(case_with(callback), name)) for name in ("host-metrics", "slow-callback")] == [1, 0]
    assert [len(found(case_with(drawing), name)) for name in ("host-metrics", "slow-callback")] == [0, 1]


FIGURE = """
import matplotlib.pyplot as plt
def draw(epoch):
    plt.{call}
"""


@pytest.mark.parametrize(
    ("call", "package", "levers"),
    [
        ("plt.savefig('a.png')", "PIL", ["background-figures", None]),
        ("plt.imshow(epoch)", "matplotlib", [None]),
        ("save(epoch)", "matplotlib", ["background-figures", None]),
        ("save(epoch)", "numpy", [None]),
    ],
)
def test_a_callback_that_saves_figures_names_the_cure_for_it(
    tmp_path: Path, call: str, package: str, levers: list[str | None]
) -> None:
    program = tmp_path / "train.py"
    program.write_text(FIGURE.format(call="savefig('a.png')"))
    line = RunPart("line", package, 4.0, where=Where(str(program), 4, code=call))
    case = case_with(RunPart("callback", "Gallery.on_epoch_end", 5.2, 3, Where(str(program), 3), (line,)))
    (item,) = found(case, "slow-callback")
    assert [fix.lever for fix in item.fixes] == levers
    assert drawing_seconds(case) == (4.0 if len(levers) == 2 else 0)


@pytest.mark.parametrize(
    ("text", "why"),
    [
        (FIGURE.format(call="savefig('a.png')"), None),
        (FIGURE.format(call="show()"), "the program saves no figures"),
        (
            FIGURE.format(call="savefig('a.png')") + "gif = imageio.imread('a.png')",
            "may read its own pictures (imread)",
        ),
    ],
)
def test_a_program_that_reads_its_pictures_draws_them_itself(tmp_path: Path, text: str, why: str | None) -> None:
    program = tmp_path / "train.py"
    program.write_text(text)
    told = find_cure("background-figures").spec.skip(
        Case("run", program=Program(("python", str(program)), str(tmp_path)))
    )
    assert told == why or (why is not None and told is not None and told.endswith(why))


@pytest.mark.parametrize(
    ("calls", "predicted", "causes"),
    [
        (200, 4.9, ["predict-in-loop"]),
        (200, 2.0, ["predict-in-loop", "slow-callback"]),
        (3, 4.9, ["slow-callback"]),  # what the callback does, and no cure of such calls would help
    ],
)
def test_a_callback_that_predicts_row_by_row_is_named_at_that_line(
    calls: int, predicted: float, causes: list[str]
) -> None:
    rows = RunPart("prediction", "predict", predicted, calls, Where("train.py", 20))
    case = case_with(RunPart("callback", "F1.on_epoch_end", 5.2, 4, Where("train.py", 17), (rows,)))
    call = KerasCall("predict", calls, 1000 * predicted, calls, 2.0, single=calls, where=rows.where)
    fit = KerasCall("fit", 1, 9000.0, 600, 4.0, single=0, where=Where("train.py", 30))
    case = dataclasses.replace(case, evidence=(fit, call, StepStack("fit", (), where=fit.where)))
    named = {name: found(case, name) for name in ("predict-in-loop", "slow-callback", "host-metrics")}
    assert [name for name, items in named.items() if items] == causes
    assert all(item.of == "run" for items in named.values() for item in items)


LOOP = """for epoch in range(9):
    action = policy(state)
    note(action)
    for batch in data:
        train(batch)
"""


def in_loop(directory: Path, *parts: RunPart) -> Case:
    """A run whose steps are made in the fifth line."""
    program = directory / "train.py"
    program.write_text(LOOP)
    where = Where(str(program), 5)
    case = case_with(*parts)
    assert case.steps is not None
    stack = StepStack("tape", (where,), where=where)
    return dataclasses.replace(case, steps=dataclasses.replace(case.steps, where=where), evidence=(stack,))


def test_a_policy_that_plays_between_epochs_is_part_of_the_training(tmp_path: Path) -> None:
    for package, expected in (("tensorflow", 0), ("keras", 0), ("matplotlib", 1)):
        line = RunPart("line", package, 9.0, where=Where(str(tmp_path / "train.py"), 2))
        assert len(found(in_loop(tmp_path, RunPart("program", "", 9.0, parts=(line,))), "between-epochs")) == expected


VALIDATION = """\
def validate():
    for batch in test:
        check(batch)


for epoch in range(3):
    for batch in data:
        step(batch)
    {inside}
{after}
"""


@pytest.mark.parametrize(("inside", "after", "expected"), [("validate()", "", 1), ("pass", "validate()", 0)])
def test_a_loop_of_validation_is_repeated_with_the_epochs(
    tmp_path: Path, inside: str, after: str, expected: int
) -> None:
    program = tmp_path / "train.py"
    program.write_text(VALIDATION.format(inside=inside, after=after))
    step, check, call = (Where(str(program), line) for line in (8, 3, 9 if inside == "validate()" else 10))
    line = RunPart("line", "tensorflow", 6.0, where=check, via=(call,))
    part = RunPart("validation", "loop", 6.0, where=Where(str(program), 2), parts=(line,))
    case = case_with(RunPart("steps", "train-function", 5.0, 300), part)
    stack = StepStack("train-function", (Frame(str(program), 8, "<module>", 1),), where=step)
    assert len(found(dataclasses.replace(case, evidence=(stack,)), "validation-bound")) == expected


def test_the_first_step_of_an_eager_loop_is_no_start(tmp_path: Path) -> None:
    built = RunPart("line", "keras", 8.0, where=Where("model.py", 3), via=(Where(str(tmp_path / "train.py"), 5),))
    parsed = RunPart("line", "", 3.0, where=Where("data.py", 3))
    assert found(in_loop(tmp_path, RunPart("before", "", 8.2, parts=(built,))), "slow-start") == []
    (one,) = found(in_loop(tmp_path, RunPart("before", "", 11.2, parts=(built, parsed))), "slow-start")
    assert one.cost_ms == pytest.approx(3200)
    assert one.where == parsed.where


def test_the_start_of_a_gpu_is_no_fault_of_the_program() -> None:
    built = RunPart("line", "tensorflow", 4.7, where=Where("train.py", 14))
    parsed = RunPart("line", "", 3.0, where=Where("data.py", 3))
    alone = dataclasses.replace(case_with(RunPart("before", "", 4.8, parts=(built,))), environment={}, devices=())
    (one,) = found(alone, "slow-start")
    assert one.where == built.where
    gpu = {"tensorflow": {"devices": ["/physical_device:GPU:0"]}}
    assert found(dataclasses.replace(alone, environment=gpu), "slow-start") == []
    both = dataclasses.replace(case_with(RunPart("before", "", 7.8, parts=(built, parsed))), environment=gpu)
    (other,) = found(both, "slow-start")
    assert other.where == parsed.where
    assert other.cost_ms == pytest.approx(3100)


@pytest.mark.parametrize(("per_step", "line"), [(0.16, 5), (1.0, 2)])
def test_an_eager_step_is_at_a_tape_that_its_steps_have(per_step: float, line: int, tmp_path: Path) -> None:
    """A notebook often trains something small by hand before it trains what takes its time."""
    program = tmp_path / "train.py"
    program.write_text(
        "for x in few:\n    with tf.GradientTape() as tape:\n        tape.gradient(loss(x), w)\n"
        "for x in data:\n    optimizer.apply_gradients(zip(gradients(x), w))\n"
    )
    tape = EagerTape(per_step, (Frame(str(program), 3, "<module>", 1),))
    step = StepStack("apply", (Frame(str(program), 5, "<module>", 1),))
    (one,) = found(dataclasses.replace(case_with(), evidence=(step, tape)), "eager-step")
    assert one.where is not None
    assert one.where.line == line


def test_functions_that_a_pipeline_is_made_with_cost_no_step() -> None:
    case = sample_case()
    made = FunctionsMade(10, per_step=0.5, trace_ms=3000.0, name="wrapped", traces=10, where=Where("train.py", 19))
    assert found(dataclasses.replace(case, evidence=(made,)), "function-per-call") == []
    inside = Tracing(8.0, steps_that_trace=150, steps=300)
    assert len(found(dataclasses.replace(case, evidence=(made, inside)), "function-per-call")) == 1


@pytest.mark.parametrize(
    ("body", "expected"),
    [
        ("    return model(x)", 0),
        ("    for _ in range(400):\n        x = layer(x)\n    return x", 1),
        ("    for _ in tf.range(400):\n        x = layer(x)\n    return x", 0),
        ("    return unrolled(x)\n\ndef unrolled(x):\n    while x.n:\n        x = layer(x)\n    return x", 1),
    ],
)
def test_a_long_trace_is_a_finding_where_a_loop_makes_it_long(tmp_path: Path, body: str, expected: int) -> None:
    program = tmp_path / "train.py"
    program.write_text(f"@tf.function\ndef step(x):\n{body}\n")
    part = RunPart("tracing", "step", 18.0, 2, Where(str(program), 1))
    assert len(found(case_with(part, seconds=40.0), "compile-bound")) == expected


def test_an_unrolled_loop_is_named_by_its_line_in_seconds_of_the_run(tmp_path: Path) -> None:
    """What it costs is the trace, once: a longer run pays no more of it."""
    program = tmp_path / "train.py"
    program.write_text(
        "def cell(x):\n    return tf.tanh(x @ w)\n\n@tf.function\ndef step(x):\n"
        "    for _ in range(400):\n        x = cell(x[:, 1:])\n    return x\n"
    )

    def repeated(line: int, copies: int, ops: int) -> RepeatedOps:
        return RepeatedOps(copies, "MatMul", ops, "step", 2000, where=Where(str(program), line))

    lines = (repeated(7, 400, 400), repeated(2, 400, 1200), repeated(8, 20, 100))
    part = RunPart("tracing", "step", 6.0, 1, Where(str(program), 4))
    case = dataclasses.replace(case_with(part, seconds=30.0), evidence=lines, ops=(), functions=())
    (loop,) = found(case, "unrolled-loop")
    assert (loop.of, loop.where.line if loop.where else None) == ("run", 6)
    assert loop.cost_ms == pytest.approx(6000 * 1600 / 2000)
    short = dataclasses.replace(case, run=dataclasses.replace(case.run, seconds=300.0))
    assert found(short, "unrolled-loop") == []
