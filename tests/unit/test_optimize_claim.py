"""Which finalist is handed over, and what is said of it. Only the clock and the processes of the contestants are made
up: the race, the checks of the claim and the verdict are those of a run."""

from __future__ import annotations

import dataclasses
import re
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from flatout.measure.race import Race, Rules
from flatout.model.errors import InvalidOption
from flatout.optimize import case, claim
from flatout.optimize.candidates import BASELINE, Candidate
from flatout.optimize.checks import AccuracyBudget, CheckResult
from flatout.optimize.claim import Finals
from flatout.optimize.contestant import Block, Contestant
from flatout.optimize.optimizer import Outcome, expect_direction
from flatout.optimize.request import OptimizeRequest
from flatout.optimize.tried import Tried
from flatout.process.worker import WorkFailed
from flatout.routes import find
from flatout.subject import Subject, Tensor

SUBJECT = Subject(Path("."), "model.keras", "keras", (Tensor("x", "float32", (None, 4), (4,)),), ())


class Paced(Contestant):
    """Its calls take a known time. It dies in its `dies_in`-th process."""

    milliseconds = 1.0
    dies_in = 0
    opened = 0
    noise: Any = None

    def time_calls(self, at_least: int) -> Block:
        times = self.milliseconds / 1e3 * self.noise.lognormal(0, 0.01, size=3)
        return Block(times.tolist(), 3, self.milliseconds / 1e3)


def paced(name: str, milliseconds: float, *, dies_in: int = 0, later: float = 0.0, size: int = 100) -> Paced:
    """`later`: the time of a call from its second process on."""
    route = find(BASELINE if name == BASELINE else "litert-fp32")
    one = Paced(Candidate(route, Path(name), title=name, size_bytes=size, settings=({},)), {}, 1)
    one.candidate.checked = CheckResult("", 1.0, samples=100, bound=0.0)
    one.candidate.traits = (milliseconds, dies_in, later)  # type: ignore[attr-defined]
    one.candidate.opened = 0  # type: ignore[attr-defined]
    return started(one)


def started(one: Paced) -> Paced:
    candidate: Any = one.candidate
    one.milliseconds, one.dies_in, later = candidate.traits
    if later and candidate.opened >= 2:
        one.milliseconds = later
    one.noise = np.random.default_rng(len(candidate.name) + candidate.opened)
    return one


class Builder:
    """Opens contestants by counting; what it is told to refuse fails its strict check."""

    open_seconds = 0.0
    subject = SUBJECT

    def __init__(self, refused: tuple[str, ...] = ()) -> None:
        self.refused = refused

    def open(self, one: Any) -> None:
        one.candidate.opened += 1
        if one.candidate.opened == one.candidate.traits[1]:
            raise WorkFailed("failed", "its process crashed with SIGSEGV")
        started(one)
        one.worker = SimpleNamespace(end=lambda: None)

    def check(self, one: Any, strictly: bool, seconds: float) -> list[Any]:
        if one.candidate.name in self.refused:
            problem = "accuracy is 0.99, the original's 1, but 100 samples are too few: any drop is possible"
            one.candidate.checked = CheckResult(problem, 1.0, samples=100, unshown=True)
            one.candidate.drop("failed", f"check: {problem}")
        return [np.zeros(4)]


@pytest.fixture(autouse=True)
def made_up(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(claim, "_fresh", lambda one: started(Paced(one.candidate, one.setting, one.batch)))
    monkeypatch.setattr(claim, "deliver", lambda one, answers, builder, made, with_any_length: "")


def screened(*contestants: Paced) -> Race[Contestant]:
    heat: Race[Contestant] = Race([paced(BASELINE, 10.0)])
    heat.run(contestants, Rules("behind", 9))
    return heat


def decided(heat: Race[Contestant], builder: Builder | None = None, **request: Any) -> tuple[Any, Outcome]:
    wanted = OptimizeRequest("model.keras", seconds=100, **request)
    progress: Any = SimpleNamespace(say=lambda text: None, show=lambda view: None)
    finals = Finals(heat.baselines[0], builder or Builder(), wanted, Path("target"), float("inf"), progress)  # type: ignore[arg-type]
    finals.decide(claim.ranked([heat], wanted.objective))
    candidates = [one.candidate for one in (*heat.baselines, *heat.contestants)]
    outcome = Outcome(SUBJECT, AccuracyBudget(), None, [], candidates, heats=[heat], claim=finals.claim)
    return finals.claim, outcome


def said(outcome: Outcome, **request: Any) -> str:
    return case.verdict(outcome, OptimizeRequest("model.keras", seconds=100, **request), ("optimize", "model.keras"))


def claims(outcome: Outcome) -> dict[str, Any]:
    return {one.levers[0]: one for one in case._claim_trials(outcome)}


def test_the_fastest_stands() -> None:
    made, outcome = decided(screened(paced("fast", 2.0), paced("next", 2.2)))
    assert made.winner.name == "fast"
    assert made.speedup.low < 5.0 < made.speedup.high
    assert said(outcome).startswith("fast: 5")


@pytest.mark.parametrize("process", [1, 2, 3, 4])
def test_what_dies_when_it_is_started_anew_is_dropped_and_the_next_is_handed_over(process: int) -> None:
    """For the strict check, or for one of the groups of rounds that the claim is made of."""
    made, outcome = decided(screened(paced("fast", 2.0, dies_in=process), paced("next", 2.2)))
    assert made.winner.name == "next"
    assert made.speedup.low < 10 / 2.2 < made.speedup.high
    assert "SIGSEGV" in next(one for one in outcome.candidates if one.name == "fast").note
    lost = claims(outcome).get("fast")
    assert lost is None or (lost.status, lost.speedup) == ("failed", None)


def test_a_loader_that_fails_is_no_winner_and_its_race_no_result(monkeypatch: pytest.MonkeyPatch) -> None:
    broken = {"fast": "loader: its numbers are off by 1.0e-01"}
    monkeypatch.setattr(claim, "deliver", lambda one, *others, **more: broken.get(one.name, ""))
    made, outcome = decided(screened(paced("fast", 2.0), paced("next", 2.2)))
    assert made.winner.name == "next"
    found = claims(outcome)
    assert (found["fast"].status, found["fast"].speedup, found["fast"].parity) == ("failed", None, "failed")
    assert found["fast"].note == broken["fast"]


def test_those_that_were_no_finalists_come_next_and_the_model_itself_is_the_last(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    broken = {"fast", "near", "nearer"}
    monkeypatch.setattr(claim, "deliver", lambda one, *others, **more: "loader: no" if one.name in broken else "")
    heat = screened(paced("fast", 2.0), paced("near", 2.01), paced("nearer", 2.02), paced("slow", 5.0))
    made, _ = decided(heat)
    assert made.winner.name == "slow"
    assert made.speedup.low < 2.0 < made.speedup.high
    broken.add("slow")
    made, outcome = decided(screened(paced("fast", 2.0), paced("slow", 5.0)))
    assert made.winner.candidate.is_model_itself
    assert made.speedup is None, "it is not faster than itself"
    assert said(outcome).startswith("Nothing that passed its checks is faster: the artefact is the model itself")
    broken.add(BASELINE)
    made, outcome = decided(screened(paced("fast", 2.0)))
    assert made.winner is None
    assert said(outcome).startswith(
        "No route passed its checks, the model itself neither (loader: no): there is no artefact, keep serving"
    )


def test_what_is_slower_in_other_processes_is_not_handed_over() -> None:
    made, outcome = decided(screened(paced("fast", 2.0, later=40.0), paced("next", 4.0)))
    assert made.winner.name == "next"
    assert claims(outcome)["fast"].status == "lost"


def test_what_looked_faster_and_could_not_be_shown_to_be_accurate_is_told() -> None:
    _, outcome = decided(screened(paced("fast", 2.0), paced("next", 4.0)), Builder(refused=("fast",)))
    text = said(outcome)
    assert text.startswith("next: ")
    assert "fast looked faster and is not handed over: accuracy is 0.99" in text
    _, outcome = decided(screened(paced("fast", 2.0)), Builder(refused=("fast",)))
    assert "Nothing that passed its checks is faster" in said(outcome)
    assert "fast looked faster and is not handed over" in said(outcome)


def test_a_layout_that_cannot_be_written_is_no_winner(monkeypatch: pytest.MonkeyPatch) -> None:
    unwritten = {"fast": "what was written answers otherwise"}
    monkeypatch.setattr(
        claim, "deliver_layout", lambda layout, one, *others: ("", unwritten[one.name]) if one.name in unwritten
        else ("tritonserver", "")
    )  # fmt: skip
    made, outcome = decided(screened(paced("fast", 2.0), paced("next", 2.2)), layout="triton")
    assert (made.winner.name, made.served) == ("next", "tritonserver")
    unwritten |= {BASELINE: "no backend", "next": "neither"}
    made, outcome = decided(screened(paced("fast", 2.0), paced("next", 2.2)), layout="triton")
    assert made.served == ""
    assert "is the model itself, as a SavedModel. The artefact was not written for Triton: no backend." in said(outcome)


def test_the_rounds_of_a_claim_have_the_look_at_the_inputs_that_the_loader_has(monkeypatch: pytest.MonkeyPatch) -> None:
    def deliver(one: Contestant, *others: Any, **more: Any) -> str:
        one.candidate.finite_only = not one.candidate.is_model_itself
        return ""

    monkeypatch.setattr(claim, "deliver", deliver)
    made, _ = decided(screened(paced("alone", 2.0)))
    assert made.winner.counts_from == claim.ROUNDS
    calls = sum(len(block.times) for block in made.winner.blocks[made.winner.counts_from :] if block)
    assert len(made.winner.call_times()) == calls


def test_the_size_is_that_of_all_files_and_said_in_its_own_words() -> None:
    made, outcome = decided(screened(paced("small", 20.0, size=10)), objective="size")
    assert made.winner.name == "small"
    assert re.search(r" 0\.(50|5|49)\d* times as fast as tf.function", said(outcome, objective="size"))
    made.size_bytes = 4096
    assert "4 KiB on disk instead of 0 KiB" in said(outcome, objective="size")
    _, outcome = decided(screened(paced("large", 2.0, size=1000)), objective="size")
    assert said(outcome, objective="size").startswith("Nothing that passed its checks is smaller")


def test_an_artefact_that_cannot_be_written_is_withdrawn() -> None:
    made, outcome = decided(screened(paced("fast", 2.0)))
    made.withdraw("the artefact could not be written: no space left")
    assert said(outcome).startswith("Nothing was handed over: the artefact could not be written: no space left.")
    assert case._claim_trials(outcome) == []


def test_a_batch_beside_one_is_told() -> None:
    _, outcome = decided(screened(paced("fast", 2.0)))
    assert "at batch" not in said(outcome)
    outcome.subject = dataclasses.replace(SUBJECT, batches=(1, 8))
    assert " at batch 1" in said(outcome)


def test_what_broke_in_the_race_is_not_told_as_short_of_time() -> None:
    heat = screened(paced("fast", 2.0))
    broken = paced("broken", 2.0)
    broken.fail(WorkFailed("failed", "its process crashed"))
    heat.contestants.append(broken)
    outcome = Outcome(SUBJECT, AccuracyBudget(), None, [], [one.candidate for one in heat.contestants], heats=[heat])
    assert Tried.of(outcome) == Tried(2, 1, ())


def test_a_compressed_form_is_another_model() -> None:
    one = Candidate(find("litert-fp32"), Path("made"), given=Path("small.tflite"), ours=True)
    assert one.equivalence == "semantic"
    assert dataclasses.replace(one, ours=False).equivalence == ""
    assert dataclasses.replace(one, given=None).equivalence == "reassociated"


# ── the direction of the metric ──────────────────────────────────────────────────────────────────────────────────────


def test_a_direction_that_was_guessed_wrong_is_refused() -> None:
    worse = [0.94, 0.95, 0.96, 0.95, 0.93]
    with pytest.raises(InvalidOption, match="By its name higher would be better; by these numbers lower is"):
        expect_direction(AccuracyBudget(0.01, "mine:wer"), 0.1, worse)
    expect_direction(AccuracyBudget(0.01, "mine:wer", lower_is_better=True), 0.1, worse)
    with pytest.raises(InvalidOption, match="Say --higher-is-better"):
        expect_direction(AccuracyBudget(0.01, "mine:without_errors", lower_is_better=True), 0.9, [0.1, 0.12, 0.09, 0.1])


def test_a_model_that_has_learned_nothing_is_no_reason() -> None:
    chance = [0.11, 0.09, 0.1, 0.12, 0.08, 0.1]
    for value in (0.07, 0.13):
        for lower in (False, True):
            expect_direction(AccuracyBudget(0.01, "mine", lower_is_better=lower), value, chance)
    expect_direction(AccuracyBudget(0.01, "mine"), 0.5, [0.5] * 8)
    expect_direction(AccuracyBudget(0.01, "mine"), 0.1, [0.9, 0.9])


@pytest.mark.parametrize("drop", [float("nan"), float("inf"), -0.1])
def test_the_largest_drop_is_a_number(drop: float) -> None:
    with pytest.raises(InvalidOption, match="largest drop of the metric is a number from 0 on"):
        OptimizeRequest("m.keras", max_drop=drop)


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({"samples": 0}, "number of held-out samples is a whole number from 1 on, not 0"),
        ({"samples": -5}, "not -5"),
        ({"samples": 10.5}, "not 10.5"),
        ({"batches": (1.5,)}, "Batch sizes are whole numbers from 1 on"),
        ({"batches": ("8",)}, "Batch sizes are whole numbers from 1 on"),
    ],
)
def test_numbers_that_no_command_line_lets_through(options: dict[str, Any], said: str) -> None:
    with pytest.raises(InvalidOption, match=said):
        OptimizeRequest("m.keras", **options)


def test_what_only_the_loader_refuses_is_told_where_a_server_is_given_the_files() -> None:
    made, outcome = decided(screened(paced("fast", 2.0)))
    made.served = "tritonserver --model-repository=here"

    def warned() -> list[str]:
        return [note.text for note in case._notes(outcome) if note.text.startswith("load.py")]

    assert warned() == []
    made.winner.candidate.finite_only = True
    (told,) = warned()
    assert told.startswith("load.py refuses samples with NaN or infinity. The server does not, and may answer")
    made.winner.candidate.sizes = (1, 3)
    assert "NaN or infinity and other numbers of samples at once than were tried. The server" in warned()[0]
    made.served = ""
    assert warned() == []
