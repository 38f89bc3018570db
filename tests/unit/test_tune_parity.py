"""Which runs decide whether a contestant keeps the numbers: pinned ones, then roundings, then several seeds."""

from __future__ import annotations

import itertools
import json
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from flatout.measure.parity import Numbers
from flatout.model.case import Trial
from flatout.trial.child_process import Ended, Launch, Overdue
from flatout.tune import parity
from flatout.tune.conclusions import not_as_promised

BASE, TRIAL = Launch(("python", "train.py")), Launch(("python", "train.py"), levers=("function=parts",))


def numbers(
    seed: int = 0, loss: float = 1.0, noise: float = 0.0, places: tuple[str, ...] = ("draw()",), made: int = 0
) -> Numbers:
    draws = np.random.default_rng(seed)
    losses = {step: [loss * (2.0 - step / 40 + noise * draws.normal())] for step in range(1, 41)}
    return Numbers({}, {"tape target": losses}, places=frozenset(places), made=made, ended=made > 0)


class Runs:
    """Stands for the runs: what each would have computed."""

    def __init__(self, noise: float = 0.0, **of_trial: Any) -> None:
        self.noise, self.of_trial = noise, of_trial
        self.asked: list[tuple[str, int | None, bool]] = []

    def __call__(self, launch: Launch, mark: str) -> Numbers:
        side = "trial" if launch.levers else mark or "base"
        self.asked.append((side, launch.seed, launch.perturbed))
        return numbers(len(self.asked), noise=self.noise, **(self.of_trial if launch.levers else {}))


def compared(monkeypatch: pytest.MonkeyPatch, runs: Callable[[Launch, str], Numbers]) -> Any:
    monkeypatch.setattr(parity._Apart, "numbers", lambda apart, *wanted: [runs(*one) for one in wanted])
    return parity._Apart(Path(), None, BASE, TRIAL).compare(0)  # type: ignore[arg-type]


def test_pinned_runs_that_agree_decide(monkeypatch: pytest.MonkeyPatch) -> None:
    runs = Runs()
    found = compared(monkeypatch, runs)
    assert found.verdict == "exact"
    assert found.sentence.startswith("with the same random numbers in both, losses of 40 steps are the same")
    assert runs.asked == [("base", 0, False), ("trial", 0, False)]


def test_pinned_runs_that_differ_are_held_against_roundings(monkeypatch: pytest.MonkeyPatch) -> None:
    runs = Runs(loss=1.1)
    assert compared(monkeypatch, runs).verdict == "failed"
    assert [asked[0] for asked in runs.asked] == ["base", "trial", "twin", "base"]
    assert runs.asked[-1][2], "none was perturbed"


def test_a_program_that_differs_from_itself_is_compared_over_seeds(monkeypatch: pytest.MonkeyPatch) -> None:
    runs = Runs(noise=0.05)
    found = compared(monkeypatch, runs)
    assert found.verdict == "statistical"
    assert "over 6 seeds" in found.sentence
    assert {seed for side, seed, _ in runs.asked if side == "trial"} == {0, 1, 2, 3, 4, 5, 6}
    assert all(perturbed for _, seed, perturbed in runs.asked if seed), "a program may seed itself"
    assert compared(monkeypatch, Runs(noise=0.05, loss=1.2)).verdict == "failed"


def test_several_seeds_wait_until_they_are_asked_for(monkeypatch: pytest.MonkeyPatch) -> None:
    def found(**of_trial: Any) -> tuple[Any, Runs]:
        runs = Runs(**of_trial)
        monkeypatch.setattr(parity._Apart, "numbers", lambda apart, *wanted: [runs(*one) for one in wanted])
        return parity._Apart(Path(), None, BASE, TRIAL, over_seeds=False).compare(0), runs  # type: ignore[arg-type]

    waits, runs = found(noise=0.05)
    assert waits is parity.WAITS
    assert {seed for _, seed, _ in runs.asked} == {0}
    assert found()[0].verdict == "exact"
    assert found(loss=1.1)[0].verdict == "failed"
    assert found(noise=0.05, places=("draw(x)",))[0] is parity.WAITS


def test_a_program_that_rounding_leads_elsewhere_is_compared_over_seeds_and_told_why(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def run(launch: Launch, mark: str) -> Numbers:
        found = numbers(noise=0.0, loss=1.0001 if launch.levers else 1.0)
        if launch.seed or not launch.perturbed:
            return found
        losses = {step: [value * (1 + 1e-6 * 2**step)] for step, (value,) in found.series["tape target"].items()}
        return replace(found, series={"tape target": losses})

    found = compared(monkeypatch, run)
    assert found.verdict == "statistical"
    why = "only 2 of 40 losses could be compared one by one, as rounding alone changes the others as much"
    assert found.sentence.startswith(f"{why}; over 6 seeds")


def test_two_seeds_run_at_a_time_where_one_side_is_known(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    asked: list[list[tuple[int | None, bool]]] = []

    def run(apart: Any, *wanted: Any) -> list[Numbers]:
        asked.append([(launch.seed, bool(launch.levers)) for launch, _ in wanted])
        return [numbers(launch.seed, noise=0.05) for launch, _ in wanted]

    monkeypatch.setattr(parity._Apart, "numbers", run)
    apart = parity._Apart(tmp_path, None, BASE, TRIAL)  # type: ignore[arg-type]
    for seed in (3, 4, 5):
        place = tmp_path / parity.key_of(replace(BASE, seed=seed, perturbed=True, kept=""))
        place.mkdir()
        (place / parity.FILE).touch()
        (place / parity.LEVERS).touch()
    ours, theirs = apart.seeds()
    assert [sorted({seed for seed, _ in turn}) for turn in asked] == [[1], [2], [3, 4], [5], [6]]  # type: ignore[type-var]
    assert len(ours) == len(theirs) == parity.SEEDS
    assert ours[2].series == theirs[2].series == numbers(3, noise=0.05).series


def test_draws_in_other_places_are_no_fault_and_draws_left_out_are(monkeypatch: pytest.MonkeyPatch) -> None:
    runs = Runs(noise=0.05, places=("draw(x)",))
    assert compared(monkeypatch, runs).verdict == "statistical"
    assert compared(monkeypatch, Runs(loss=1.1, places=())).verdict == "failed"


@pytest.mark.parametrize("places", [("draw()",), ("draw(x)",)], ids=["drawn alike", "drawn elsewhere"])
def test_fewer_steps_than_chance_explains_fail_before_seeds_are_compared(
    monkeypatch: pytest.MonkeyPatch, places: tuple[str, ...]
) -> None:
    """Several seeds are compared over first steps alone: there the program would agree."""

    def found(*, of_program: list[int], of_trial: int) -> Any:
        lengths, made = itertools.cycle(of_program), {}

        def run(launch: Launch, mark: str) -> Numbers:
            if launch.levers:
                return numbers(1, noise=0.05, made=of_trial, places=places)
            key = f"{launch}{mark}"
            made[key] = made.get(key) or next(lengths)
            return numbers(len(made) + 1, noise=0.05, made=made[key])

        return compared(monkeypatch, run)

    assert found(of_program=[160], of_trial=80).sentence == "the program makes 80 steps where it made 160"
    assert found(of_program=[160, 150, 165], of_trial=80).verdict == "failed"
    assert found(of_program=[160, 140, 165], of_trial=150).verdict in ("statistical", "unknown")


@pytest.mark.parametrize("facts", [{"changes": 0}, {"changes": 2, "failed": "traced no longer"}], ids=["idle", "lost"])
def test_a_run_without_its_lever_shows_nothing(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, facts: dict[str, Any]
) -> None:
    runs = Runs()
    monkeypatch.setattr(parity._Apart, "numbers", lambda apart, *wanted: [runs(*one) for one in wanted])
    apart = parity._Apart(tmp_path, None, BASE, TRIAL)  # type: ignore[arg-type]
    place = tmp_path / parity.key_of(TRIAL)
    place.mkdir()
    (place / parity.LEVERS).write_text(json.dumps({"function=parts": {"changes": 1, "notes": [], "failed": ""}}))
    assert apart.compare(0).verdict == "exact"  # type: ignore[union-attr]
    (place / parity.LEVERS).write_text(json.dumps({"function=parts": facts}))
    found = apart.compare(0)
    assert found is not None
    assert found.verdict == "unknown"
    assert "function=parts" in found.sentence


def test_a_run_that_was_interrupted_is_made_again(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    begun: list[Path] = []

    class Child:
        def __init__(self, launch: Launch, directory: Path, *of_starter: Any) -> None:
            self.directory, self.levers = directory, {}
            begun.append(directory)

        def warm(self, seconds: float) -> None:
            self.directory.mkdir(exist_ok=True)
            assert not (self.directory / parity.FILE).exists(), "what it computes is not mixed with the old one"
            (self.directory / parity.FILE).touch()  # it is written block by block
            if len(begun) == 1:
                raise KeyboardInterrupt
            raise Ended("the program ended")

        def end(self) -> None: ...

    monkeypatch.setattr(parity, "ChildProcess", Child)
    monkeypatch.setattr(parity, "_load", lambda directories: directories[0].name)
    starter: Any = SimpleNamespace(watchdog=None, fork_servers=None)
    with pytest.raises(KeyboardInterrupt):
        parity._Apart(tmp_path, starter, BASE, TRIAL).numbers((BASE, ""))
    for _ in range(2):
        assert parity._Apart(tmp_path, starter, BASE, TRIAL).numbers((BASE, "")) == [parity.key_of(BASE)]
    assert begun == [tmp_path / parity.key_of(BASE)] * 2, "once more, and then no more"


def test_a_run_that_time_has_cut_off_is_made_again_where_there_is_much_more(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """A tune that is resumed may have more time than the one before."""
    begun: list[float] = []
    ends = False

    class Child:
        def __init__(self, launch: Launch, directory: Path, *of_starter: Any) -> None:
            self.directory, self.levers = directory, {}

        def warm(self, seconds: float) -> None:
            begun.append(seconds)
            self.directory.mkdir(exist_ok=True)
            (self.directory / parity.FILE).touch()

        def go(self, steps: int) -> None: ...

        def block(self, seconds: float) -> None:
            raise Ended("its end") if ends else Overdue("no answer")

        def end(self) -> None: ...

    def run(seconds: float) -> None:
        starter: Any = SimpleNamespace(watchdog=None, fork_servers=None)
        parity._Apart(tmp_path, starter, BASE, TRIAL, seconds=seconds).numbers((BASE, ""))

    monkeypatch.setattr(parity, "ChildProcess", Child)
    monkeypatch.setattr(parity, "_load", lambda directories: directories[0].name)
    for seconds in (20.0, 10.0, 22.0, 60.0, 60.0):
        run(seconds)
    assert begun == [20.0, 60.0]
    ends = True
    for seconds in (300.0, 3_000.0):
        run(seconds)
    assert begun == [20.0, 60.0, 300.0], "it has come to its end"


def test_another_edit_in_the_same_file_is_another_run(tmp_path: Path) -> None:
    edited = tmp_path / "edited.py"
    launch = Launch(("python", "train.py"), sources=(("train.py", str(edited)),))
    keys = []
    for text in ("one", "two", "one"):
        edited.write_text(text)
        keys.append(parity.key_of(launch, ""))
    assert keys[0] == keys[2] != keys[1]
    assert parity.key_of(launch, "twin") != keys[0]


@pytest.mark.parametrize(("levers", "steps"), [(("cache",), 140), (("prefetch",), 40)])
def test_seeds_of_what_keeps_the_first_epoch_come_to_the_second(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, levers: tuple[str, ...], steps: int
) -> None:
    asked: list[tuple[str, int]] = []

    def run(apart: Any, *wanted: Any) -> list[Numbers]:
        found = []
        for _ in wanted:
            asked.append((apart.directory.name, apart.steps))
            found.append(replace(numbers(len(asked), noise=0.05, made=steps), epochs=(0, 100)))
        return found

    monkeypatch.setattr(parity._Apart, "numbers", run)
    trial = Launch(("python", "train.py"), levers=levers)
    apart = parity._Apart(tmp_path / "whole", None, BASE, trial, parity.ALL_STEPS)  # type: ignore[arg-type]
    found = apart.compare(0)
    assert found is not None
    assert asked[-1] == (parity.PINNED if steps == 40 else "pinned-140", steps)
    assert found.extent is not None
    assert found.extent.epochs == (2 if steps == 140 else 1)
    told = not_as_promised(Trial(levers, "won", equivalence="exact"), found)
    assert told == ""
    short = replace(found, extent=replace(found.extent, epochs=1))
    assert ("a second epoch" in not_as_promised(Trial(levers, "won", equivalence="exact"), short)) == (steps == 140)
