"""`tune --prove` with runs that are made up: what is said of them, and what becomes of Ctrl-C."""

from __future__ import annotations

import io
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from test_measure_parity_whole import run

from flatout.measure.parity import Numbers
from flatout.model.case import Case, Proof
from flatout.observe.levers import LeverReport
from flatout.report.progress import Progress
from flatout.report.proof_text import told
from flatout.trial.child_process import Ended, Launch
from flatout.tune import proof
from flatout.tune.proof import Followed, Proving

STEPS = 160


class Child:
    """Stands for a trial: it makes steps and has no process."""

    ended = 0

    def __init__(self) -> None:
        self.levers = {"function=train.py:3": LeverReport(1, ("train_step at train.py:3 is traced",), "")}

    def end(self) -> None:
        Child.ended += 1


class Made(Followed):
    """A run whose numbers are known beforehand, shown as far as it has come."""

    whole: Callable[[], Numbers] = staticmethod(run)

    def warm_up(self) -> None:
        self.steps = 8

    def advance(self, steps: int) -> None:
        self.steps = min(self.steps + steps, STEPS)
        self.ended = self.steps == STEPS

    def numbers(self) -> Numbers:
        found = self.whole()
        return replace(
            found,
            weights={count: one for count, one in found.weights.items() if count <= self.steps},
            states={count: one for count, one in found.states.items() if count <= self.steps},
            series={name: {s: v for s, v in one.items() if s <= self.steps} for name, one in found.series.items()},
            made=self.steps,
            ended=self.ended,
        )


@pytest.fixture
def prove(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[..., tuple[Proof, str]]:
    def proved(
        trial: dict[str, Any], *, perturbed: float = 1e-4, since: int = 1, at: Callable[[], None] = lambda: None
    ) -> Any:
        def start(launch: Launch, directory: Path, watchdog: object) -> Made:
            one = Made(Child())  # type: ignore[arg-type]
            shaken = {"seed": 5, "noise": perturbed, "since": since}
            changes = shaken if launch.perturbed else trial if launch.levers else {}
            one.whole = lambda: (at(), run(**changes))[1]  # type: ignore[func-returns-value]
            return one

        monkeypatch.setattr(proof.Followed, "start", start)
        text = io.StringIO()
        levers = ("function=train.py:3",)
        launch, stream = Launch(("python", "train.py")), Progress(float("inf"), stream=text)
        proving = Proving(launch, replace(launch, levers=levers), levers, tmp_path, None, stream, STEPS)  # type: ignore[arg-type]
        Child.ended = 0
        found = proving.run()
        assert Child.ended == len(proving.runs)
        return found, text.getvalue()

    return proved


def test_what_is_the_same_is_followed_to_the_end(prove: Any) -> None:
    found, said = prove({})
    assert (found.outcome, found.parity, found.whole) == ("same", "exact", True)
    assert (found.steps, found.epochs, found.variables) == (STEPS, 2, 3)
    assert "step 40, about 0:00 left: losses of 40 steps" in said
    (line,) = told(found)
    assert "the same over 160 steps, 2 epochs, all 3 variables, to the end of the program" in line
    assert Case.from_json(Case("tune", proof=found).to_json()).proof == found


def test_rounding_is_no_difference(prove: Any) -> None:
    found, said = prove({"noise": 2e-3, "seed": 3}, perturbed=1e-3)
    assert (found.outcome, found.parity) == ("same", "reassociated")
    assert "some roundings apart" in said
    assert "the same up to rounding" in told(found)[0]


def test_what_rounding_makes_is_seen_to_the_end_where_the_program_ends_within_a_turn(
    prove: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The last turn of a run is not counted: its program ends before it answers."""
    numbers = Made.numbers

    def ends(self: Made, steps: int) -> None:
        self.ended = self.steps + steps >= STEPS
        self.steps += 0 if self.ended else steps

    def to_the_end(self: Made) -> Numbers:
        counted, self.steps = self.steps, STEPS if self.ended else self.steps
        found, self.steps = numbers(self), counted
        return found

    monkeypatch.setattr(Made, "advance", ends)
    monkeypatch.setattr(Made, "numbers", to_the_end)
    monkeypatch.setattr(proof, "FIRST_BLOCK", STEPS)
    found, said = prove({"noise": 2e-3, "seed": 3, "since": 60}, perturbed=1e-3, since=60)
    assert "some roundings apart" in said
    assert (found.outcome, found.parity, found.steps) == ("same", "reassociated", STEPS)


def test_the_first_difference_is_named_and_ends_it(prove: Any) -> None:
    found, _ = prove({"loss": 1e-2, "since": 50})
    assert (found.outcome, found.first_step, found.first_thing) == ("differs", 50, "tape target")
    assert found.steps < STEPS
    first, second = told(found)
    assert "First difference seen: tape target, step 50." in first
    assert "train_step at train.py:3 is traced" in second


@pytest.mark.parametrize(
    ("report", "why"),
    [
        (LeverReport(1, (), "the step is traced no longer"), "function=train.py:3 gave up: the step is traced no"),
        (LeverReport(0), "function=train.py:3 changed nothing"),
        (LeverReport(0, (), "ImportError: x"), "function=train.py:3 could not be installed: ImportError: x"),
    ],
)
def test_a_lever_that_is_not_at_work_proves_nothing(
    prove: Any, monkeypatch: pytest.MonkeyPatch, report: LeverReport, why: str
) -> None:
    init = Child.__init__

    def idle(self: Child) -> None:
        init(self)
        self.levers = {"function=train.py:3": report}

    monkeypatch.setattr(Child, "__init__", idle)
    found, _ = prove({})
    assert found.outcome == "not-shown"
    assert found.compared.startswith(why)


def test_a_program_that_fails_by_itself_is_no_difference_of_the_cure(
    prove: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    advance, followed = Made.advance, []

    def fails(self: Made, steps: int) -> None:
        followed.append(self)
        if self is followed[0]:
            self.ended, self.failed = True, "the program failed: OSError"
        else:
            advance(self, steps)

    monkeypatch.setattr(Made, "advance", fails)
    found, _ = prove({})
    assert (found.outcome, found.compared) == ("not-shown", "as it is, the program failed: OSError")


def test_a_run_that_was_killed_while_it_stood_still_has_failed() -> None:
    class Killed:
        ended_well = False

        def go(self, *args: int) -> None:
            raise Ended("the program failed: exit code -9")

    one = Followed(Killed())  # type: ignore[arg-type]
    one.advance(8)
    assert (one.ended, one.failed) == (True, "the program failed: exit code -9")


def test_an_interrupt_keeps_what_was_compared(prove: Any) -> None:
    looks = iter(range(5))

    def at() -> None:
        if next(looks, None) is None:
            raise KeyboardInterrupt

    found, _ = prove({}, at=at)
    assert found.interrupted
    assert found.outcome == "same"
    assert 0 < found.steps < STEPS
    assert "the end was not reached" in told(found)[0]
    assert "Interrupted" in told(found)[0]


def test_a_run_that_is_interrupted_while_it_warms_up_is_ended_too(prove: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    def interrupted(self: Made) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(Made, "warm_up", interrupted)
    found, _ = prove({})
    assert found.interrupted
    assert Child.ended == 1
