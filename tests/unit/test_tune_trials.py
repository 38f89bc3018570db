"""How a contestant that has left its race becomes a trial. The blocks are made up; no process is started."""

from __future__ import annotations

from pathlib import Path

import pytest

from flatout.measure import parity
from flatout.measure.race import Exit
from flatout.model.errors import InvalidOption, UnknownLever
from flatout.process.watchdog import Watchdog
from flatout.report.progress import Progress
from flatout.trial.child_process import Launch
from flatout.tune import trials as trials_module
from flatout.tune.clock import Clock
from flatout.tune.contestant import Block, Contestant
from flatout.tune.journal import Journal
from flatout.tune.race import Race
from flatout.tune.request import TuneRequest
from flatout.tune.starter import Starter
from flatout.tune.trials import Trials


@pytest.fixture
def trials(tmp_path: Path) -> Trials:
    return Trials(Journal(tmp_path), Progress(60.0, quiet=True), tmp_path, Clock(60.0))


@pytest.fixture
def watchdog():
    made = Watchdog()
    yield made
    made.close()


def having_run(step: float, rounds: int, levers: tuple[str, ...] = (), exit: Exit | None = None) -> Contestant:
    blocks = [Block([step] * 8, 8, 0.1) for _ in range(rounds)]
    return Contestant(Launch(()), "one", levers, blocks=list(blocks), exit=exit)


def race_of(tmp_path: Path, watchdog: Watchdog, rounds: int) -> Race:
    return Race([having_run(0.010, rounds) for _ in range(2)], Starter(tmp_path / "race", watchdog))


def test_a_lever_that_changes_nothing_is_left_out_and_is_no_trial(trials, tmp_path, watchdog):
    race = race_of(tmp_path, watchdog, 0)
    for stage in ("bound", "single"):
        one = having_run(0.01, 0, ("xla", "cache"), Exit("ended", "nothing to cache"))
        one.unchanged = True
        trials.keep_all(race, [one], stage)
        assert trials.skipped == ({"cache": "nothing to cache"} if stage == "single" else {})
    assert not trials.found


@pytest.mark.parametrize(
    ("step", "rounds", "nominated"),
    [(0.0094, 4, True), (0.0094, 3, False), (0.0099, 4, False), (0.005, 2, True), (0.005, 1, False), (0.003, 1, True)],
)
def test_what_looked_good_when_the_time_was_up_goes_on_to_the_confirmation(
    trials, tmp_path, watchdog, step, rounds, nominated
):
    race = race_of(tmp_path, watchdog, rounds)
    trial = trials.keep(race, having_run(step, rounds, ("cache",), Exit("finished")), "single")
    assert trial.undecided
    assert "in too few rounds for an interval" in trial.note
    assert trials.nominated == ({("cache",): pytest.approx(0.010 / step)} if nominated else {})
    assert bool(trials.promising) == (not nominated and step < 0.0095), "faster in each round, if only a few"
    assert trials.journal.known("single", ("cache",)) is None, "a resumed tune tries it again"


def test_a_failure_is_a_trial_that_is_written_down(trials, tmp_path, watchdog):
    one = having_run(0.01, 2, ("cache",), Exit("failed", "the program failed: MemoryError"))
    trial = trials.keep(race_of(tmp_path, watchdog, 2), one, "single")
    assert (trial.status, trial.rounds) == ("failed", 2)
    assert trial.note.startswith("the program failed: MemoryError")
    assert Journal(tmp_path).known("single", ("cache",)) == trial


def test_only_a_win_is_checked_for_equal_numbers(trials, tmp_path, watchdog, monkeypatch):
    compared = []

    def compare(baselines, one, starter, directory, seconds, *, over_seeds):
        compared.append(one)
        return trials_module.parity.parity.Parity("failed", 1.0, "losses differ by 1")

    monkeypatch.setattr(trials_module.parity, "compare", compare)
    race = race_of(tmp_path, watchdog, 8)
    slow, fast = (having_run(step, 8, ("cache",), Exit("decided")) for step in (0.020, 0.005))
    assert trials.keep(race, slow, "single").status == "lost"
    assert trials.keep(race, fast, "bound").status == "won"
    assert not compared
    trial = trials.keep(race, fast, "single")
    assert compared == [fast]
    assert (trial.status, trial.parity) == ("failed", "failed"), "fast and wrong is no win"
    assert not trials.any_single_won


def test_several_seeds_are_compared_of_the_fastest_and_wait_for_the_others(trials, tmp_path, watchdog, monkeypatch):
    asked = []

    def compare(baselines, one, starter, directory, seconds, *, over_seeds):
        asked.append((one.levers, over_seeds))
        if one.levers == ("cache",):
            return parity.Parity("failed", 1.0, "losses differ by 1")
        return parity.Parity("statistical", 0.0, "over 6 seeds") if over_seeds else trials_module.parity.WAITS

    monkeypatch.setattr(trials_module.parity, "compare", compare)
    steps = {("xla",): 0.005, ("cache",): 0.003, ("prefetch",): 0.004, ("threads=1",): 0.006}
    contestants = [having_run(step, 8, levers, Exit("decided")) for levers, step in steps.items()]
    trials.keep_all(race_of(tmp_path, watchdog, 8), contestants, "single")
    assert asked == [(("cache",), True), (("prefetch",), True), (("xla",), False), (("threads=1",), False)]
    assert {one.levers[0]: (one.status, one.parity) for one in trials.found} == {
        "cache": ("failed", "failed"),
        "prefetch": ("won", "statistical"),
        "xla": ("won", ""),
        "threads=1": ("won", ""),
    }
    assert [one.levers for one in trials.waiting(["xla", "prefetch"])] == [("xla",)]
    (waits,) = trials.waiting(["xla"])
    assert waits.note == "several seeds are compared only where this is to be claimed"
    asked.clear()
    found = trials.check(race_of(tmp_path, watchdog, 8), contestants[0], waits)
    assert asked == [(("xla",), True)], "it is asked for: it is known now that it matters"
    assert (found.parity, found.note) == ("statistical", "over 6 seeds")
    assert not trials.waiting(["xla"])


def test_a_request_with_names_that_do_not_exist_is_refused_before_anything_runs():
    TuneRequest("train.py", levers=("cache",), without=("xla",), allow=("semantic",)).check()
    with pytest.raises(UnknownLever):
        TuneRequest("train.py", levers=("cahce",)).check()
    with pytest.raises(InvalidOption, match="--allow takes precision or semantic, not exact"):
        TuneRequest("train.py", allow=("exact",)).check()
