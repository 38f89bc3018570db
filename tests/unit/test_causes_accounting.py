"""Findings add up: one place once, the same milliseconds once, and shares of what is said."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from flatout.causes import catalogue
from flatout.causes._accounting import counted_once, listed_once, rank
from flatout.causes._diagnosis import _verdict
from flatout.model import queries
from flatout.model.case import Case, Finding, Pipeline, Program, Split, Stage, Steps, Where
from flatout.model.evidence.program import CpuUse, KerasCall
from flatout.model.evidence.steps import EpochStart, HostSync, StepStack, Tracing
from flatout.model.location import Frame
from flatout.model.observed import Device, Distribution
from flatout.observe.reading.recording import Recording
from flatout.observe.reading.steps import Stream, measure
from flatout.source.analysis.recurrences import is_recurrence

CAUSES = {name: cause.spec for name, cause in catalogue().items()}


def case_of(*evidence: object, input_ms: float = 0.0) -> Case:
    ms = Distribution(median=10.0, p10=9.0, p90=30.0, mean=14.0, low=8.0, high=90.0)
    steps = Steps(
        100, "batches of Keras fit", ms, kind="train", split_ms=Split(input=input_ms, compute=10 - input_ms), warmup=0
    )
    return Case(kind="run", program=Program(seconds=10.0), steps=steps, evidence=evidence)  # type: ignore[arg-type]


def found(cause: str, share: float, line: int = 1, of: str = "step") -> Finding:
    whole = 10.0 if of == "step" else 10_000.0
    return Finding(cause, f"{cause}.", Where("train.py", line), cost_ms=share * whole, cost_share=share, of=of)  # type: ignore[arg-type]


def test_a_share_is_of_the_median_step_and_what_comes_now_and_then() -> None:
    assert queries.share(case_of(), 5.0) == 0.5
    assert queries.share(case_of(EpochStart(2.5), Tracing(7.5, 10, 100)), 5.0) == 0.25
    # Where most steps trace, the median has it already.
    assert queries.share(case_of(Tracing(7.5, 90, 100)), 5.0) == 0.5


def test_no_cause_costs_more_than_the_step() -> None:
    (one,) = queries.finding("host-sync", case_of(), "", cost_ms=1000.0, where=None)
    assert (one.cost_ms, one.cost_share) == (10.0, 1.0)


@pytest.mark.parametrize(
    ("summary", "inside"),
    [
        ("Python works for 3.0 ms.", "Python works for 3.0 ms."),
        ("XLA compiled 5 times.", "XLA compiled 5 times."),
        ("TensorFlow took it.", "TensorFlow took it."),
        ("A step computes.", "a step computes."),
        ("The step waits.", "the step waits."),
        ("`step` was traced.", "`step` was traced."),
    ],
)
def test_names_keep_their_capital_in_the_verdict(summary: str, inside: str) -> None:
    case = replace(case_of(), findings=(Finding("step-overhead", summary, cost_ms=5.0, cost_share=0.5),))
    assert _verdict(case).startswith(f"50% of each step goes to step-overhead: {inside}")
    assert _verdict(replace(case, steps=None)) == f"No step was seen, but {inside}"


def test_a_place_is_listed_once() -> None:
    items = [found("oversized-buffer", 0.2), found("oversized-buffer", 0.3), found("oversized-buffer", 0.1, line=2)]
    assert [item.cost_share for item in listed_once(items)] == [0.3, 0.1]


def test_shares_do_not_add_up_past_the_whole() -> None:
    items = counted_once([found("eager-step", 0.7), found("host-sync", 0.5, 2)], case_of(), CAUSES)
    assert [item.cost_share for item in items] == pytest.approx([0.7, 0.3])
    assert [item.counted_before for item in items] == pytest.approx([0.0, 0.2])
    assert items[1].cost_ms == pytest.approx(3.0)
    assert items[1].full_share == pytest.approx(0.5)


def test_a_wait_for_input_is_counted_once() -> None:
    items = counted_once([found("late-batch", 0.3), found("uncached-prefix", 0.3, 2)], case_of(input_ms=3.0), CAUSES)
    assert [item.cost_share for item in items] == pytest.approx([0.3, 0.0])
    assert items[1].counted_before == pytest.approx(0.3)


def test_what_costs_the_run_is_ranked_by_what_it_costs_the_run() -> None:
    case = case_of()  # its steps are 14 % of the run
    items = [found("eager-step", 0.5), found("predict-in-loop", 0.1, 2, of="run")]
    assert [item.cause for item in sorted(items, key=lambda item: rank(item, case, CAUSES))] == [
        "predict-in-loop",
        "eager-step",
    ]


def test_pulls_that_are_in_no_usual_step_are_no_finding() -> None:
    line = Where("train.py", 3, function="evaluate")
    every = HostSync(4.0, per_step=2.0, calls=200, bytes_per_step=4.0, usual=2.0, where=line)
    aside = HostSync(4.0, per_step=2.0, calls=200, bytes_per_step=4.0, usual=0.0, where=line)
    look = catalogue()["host-sync"].spec.detectors[""]
    assert [item.cost_ms for item in look(case_of(every))] == [4.0]
    assert list(look(case_of(aside))) == []


def test_the_first_steps_of_a_further_fit_are_warm_up() -> None:
    """Two models are fitted, for two epochs of ten steps each; the first step of each traces for a second."""
    rows: list[list[float]] = []
    facts: dict[str, list[dict[str, Any]]] = {"epoch": [], "trace": []}
    now = traced = 0.0
    for epoch in (0, 1, 0, 1):
        now += 0.001  # what lies between two epochs
        facts["epoch"].append({"number": epoch, "at": now})
        for step in range(10):
            slow = 1.0 if epoch == step == 0 else 0.0
            start, now, traced = now, now + 0.01 + slow, traced + slow
            if slow:
                facts["trace"].append({"outermost": True, "ms": 1000 * slow, "at": now - 0.005})
            rows.append([0, 1, start, now, 0.0, traced, 0.0, 0.0])
    recording = Recording(Path(), facts)
    stream = Stream(0, "fit", "fit", [], {}, np.array(rows), 40)
    measured = measure(recording, stream)
    assert [index for index in range(40) if not measured.steady[index]] == [0, 20]


@pytest.mark.parametrize(
    ("body", "carries"),
    [
        ("state = cell(x[t], state)", True),
        ("output, state = cell(x[t], state)", True),
        ("self.state = cell(x[t], self.state)", True),
        ("total += x[t]", False),
        ("total = total + x[t]", False),
        ("result = result.write(t, f(x[t]))", False),
        ("row = x[t]\n        results.append(row * 2)", False),
        ("total += f(total)", True),
    ],
)
def test_loops_that_carry_a_state(tmp_path: Path, body: str, carries: bool) -> None:
    file = tmp_path / "loop.py"
    file.write_text(f"def call(self, x, state):\n    for t in tf.range(9):\n        {body}\n    return state\n")
    assert is_recurrence(str(file), 3) is carries


def test_python_of_a_pipeline_costs_the_core_that_computing_lacks():
    """Measured: 24 ms a step of which 18 compute, 12 ms without the generator."""
    stage = Stage("FlatMap", "FlatMap", ms=24.0, stateful="python")

    def case(used: float, devices: tuple[Device, ...] = ()) -> Case:
        return Case(
            "run",
            steps=Steps(100, "", Distribution(24.0, 20.0, 30.0), split_ms=Split(compute=18.0, input=2.0)),
            pipelines=(Pipeline("pipeline", None, (stage,)),),
            evidence=(CpuUse(used, cores=2),),
            devices=devices,
        )

    assert queries.crowded_ms(case(1.6)) == pytest.approx(9.0)
    assert queries.crowded_ms(case(1.0)) == 0.0, "a core is free"
    assert queries.crowded_ms(case(1.9, (Device("GPU:0", "gpu"),))) == 0.0


@pytest.mark.parametrize(("steps", "calls", "named"), [(100, 8, True), (100, 7, False), (6, 6, True), (3, 3, False)])
def test_a_call_in_each_of_a_few_slow_steps_is_a_call_in_a_loop(steps, calls, named):
    case = case_of(KerasCall("predict", calls=calls, ms=100.0 * calls, batches=calls, where=Where("agent.py", 7)))
    assert case.steps is not None
    case = replace(case, steps=replace(case.steps, count=steps))
    assert bool(list(CAUSES["predict-in-loop"].in_run(case))) == named


@pytest.mark.parametrize(("line", "calls", "named"), [(4, 4, True), (4, 3, False), (5, 4, False)])
def test_a_few_calls_in_a_loop_without_steps_are_the_beginning_of_many(tmp_path: Path, line, calls, named):
    """A scouting run ends soon after it has come to the validation: 4 of its 32 batches were predicted."""
    file = tmp_path / "train.py"
    file.write_text(
        "for epoch in range(9):\n    step(x)\n    for rows in valid:\n        model.predict(rows)\n    look()\n"
    )
    seen = KerasCall("predict", calls=calls, ms=60.0 * calls, batches=calls, single=calls, where=Where(str(file), line))
    stack = StepStack("function", (Frame(str(file), 2, "<module>", 1),))
    found = list(CAUSES["predict-in-loop"].in_run(case_of(seen, stack)))
    assert [one.of for one in found] == ["run"] * named, "they lie between the steps"


@pytest.mark.parametrize(
    ("batches", "single", "advice"),
    [(20, 20, "the same update"), (20, 12, "the same update"), (33, 12, "in batches of batch_size")],
)
def test_rows_of_several_batches_are_no_single_update(batches, single, advice):
    """An agent that fits its episodes: those of more than 32 moves are several updates."""
    seen = KerasCall("fit", calls=20, ms=1000.0, batches=batches, batch_ms=1, single=single, where=Where("agent.py", 7))
    case = case_of(seen)
    assert case.steps is not None
    (found,) = CAUSES["predict-in-loop"].in_run(replace(case, steps=replace(case.steps, count=batches)))
    assert advice in found.fixes[0].advice
    assert (found.fixes[0].lever == "direct-fit") == (single == 20)
