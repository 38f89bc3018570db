"""Whole runs of the original and of the changed program, with runs that are made up."""

from __future__ import annotations

import json
import sys
import time
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from flatout.measure.pairs import ratio_of_few
from flatout.model.case import Interval
from flatout.process.watchdog import Watchdog
from flatout.trial import whole_run
from flatout.trial.child.whole import FILE
from flatout.trial.child_process import Launch
from flatout.trial.whole_run import Run
from flatout.tune.clock import Clock
from flatout.tune.confirmation import _deadline
from flatout.tune.fresh_processes import FreshProcesses
from flatout.tune.whole_runs import FURTHER, MOST_PAIRS, Fallen, GaveUp, Saving, Unseen, measure

SAVING = Saving(0.010, Interval(5.0, 4.0, 6.0))
"""A step takes 10 ms, and took 50."""


def runner(changed: list[Run], original: list[Run]):
    left = {True: list(changed), False: list(original)}

    def run(which: bool, seconds: float) -> Run:
        assert seconds > 0
        return left[which].pop(0) if len(left[which]) > 1 else left[which][0]

    return run


def soon(seconds: float) -> float:
    return time.monotonic() + seconds


def test_pairs_give_the_ratio_of_the_whole_run():
    found = measure(runner([Run(8.7, 0, 300)], [Run(20.4, 0, 300)]), SAVING, soon(1000), patched=True)
    assert (found.pairs, found.complete, found.estimated) == (MOST_PAIRS, True, False)
    assert found.speedup is not None
    assert found.speedup.ratio == pytest.approx(2.34, abs=0.01)
    assert 2.0 < found.speedup.low < 2.3 < 2.4 < found.speedup.high < 2.7
    assert (found.before_seconds, found.after_seconds) == (pytest.approx(20.4), pytest.approx(8.7))


def test_imports_are_in_the_ratio_and_beside_it():
    found = measure(runner([Run(14.0, 0, 300, 4.0)], [Run(24.0, 0, 300, 4.0)]), SAVING, soon(1000), patched=True)
    assert found.speedup is not None
    assert found.after_imports is not None
    assert found.speedup.ratio == pytest.approx(24 / 14)
    assert found.after_imports.ratio == pytest.approx(2.0)
    guess = measure(runner([Run(44.0, 0, 1000, 4.0)], []), SAVING, soon(1), patched=True)
    assert guess.after_imports is not None
    assert guess.after_imports.ratio == pytest.approx(2.0)


def test_no_change_is_faster_or_slower_by_what_imports_differ_by():
    """One import took two seconds longer than all others, by chance."""
    changes = [Run(9.0, 0, 300, 7.0), Run(7.0, 0, 300, 5.0), Run(7.0, 0, 300, 5.0)]
    found = measure(runner(changes, [Run(11.0, 0, 300, 5.0)]), SAVING, soon(40), patched=True)
    assert found.pairs == MOST_PAIRS
    imports = (7 + 5 * 5) / 6
    assert found.speedup.ratio == pytest.approx((6 + imports) / (2 + imports))
    assert (found.before_seconds, found.after_seconds) == (pytest.approx(6 + imports), pytest.approx(2 + imports))


def test_ten_times_as_many_steps_pay_once_for_what_is_done_once():
    before, after = Run(30.0, 0, 300, looping=20.0), Run(20.0, 0, 300, looping=10.0)
    assert measure(runner([after], [before]), SAVING, soon(1000), patched=True).tenfold == pytest.approx(210 / 110)
    guess = measure(runner([Run(24.0, 0, 100, looping=1.0)], []), SAVING, soon(1), patched=True)
    assert guess.tenfold == pytest.approx((24 + 9 + 40) / (24 + 9))  # 100 steps took 50 ms, and take 10
    assert measure(runner([Run(20.0, 0)], [Run(30.0, 0)]), SAVING, soon(1000), patched=True).tenfold is None


def test_one_pair_where_there_is_time_for_no_more():
    found = measure(runner([Run(30.0, 0, 300)], [Run(42.0, 0, 300)]), SAVING, soon(45), patched=True)
    assert (found.pairs, found.estimated) == (1, False)


def test_pairs_that_differ_much_are_followed_by_more_where_there_is_plenty_of_time():
    originals = [Run(seconds, 0, 300) for seconds in (20.0, 30.0, 24.0, 26.0, 25.0, 25.0, 25.0)]
    found = measure(runner([Run(10.0, 0, 300)], originals), SAVING, soon(1000), patched=True)
    assert found.pairs == MOST_PAIRS + FURTHER
    assert found.speedup is not None
    assert found.speedup.ratio == pytest.approx(2.48, abs=0.02), "of all pairs"
    assert measure(runner([Run(10.0, 0, 300)], originals), SAVING, soon(120), patched=True).pairs == MOST_PAIRS
    even = [Run(seconds, 0, 300) for seconds in (25.0, 25.5, 24.8)]
    assert measure(runner([Run(10.0, 0, 300)], even), SAVING, soon(1000), patched=True).pairs == MOST_PAIRS


def test_the_first_pair_of_a_short_program_comes_before_cures_of_the_run_and_the_end_of_the_budget():
    runs = [Run(8.0, 0, 100)], [Run(12.0, 0, 100)]
    assert measure(runner(*runs), SAVING, soon(-5), patched=True, latest=soon(-1)).pairs == 1
    runs = [Run(60.0, 0, 100)], [Run(90.0, 0, 100)]
    assert measure(runner(*runs), SAVING, soon(20), patched=True, latest=soon(100)).pairs == 1
    assert measure(runner(*runs), SAVING, soon(20), patched=True).estimated


def test_a_long_program_is_estimated_and_says_so():
    found = measure(runner([Run(40.0, 0, 1000)], []), SAVING, soon(1), patched=True)
    assert (found.pairs, found.estimated, found.complete) == (0, True, True)
    assert found.before_seconds == pytest.approx(80.0), "1000 steps save 40 ms each"
    assert found.speedup is not None
    assert found.speedup.ratio == pytest.approx(2.0)
    assert found.speedup.low < 1.75
    assert found.speedup.high > 2.25
    cut = measure(runner([Run(45.0, None, 1000)], []), SAVING, soon(1), patched=True)
    assert (cut.estimated, cut.complete) == (True, False)
    assert cut.speedup is not None
    assert cut.speedup.high == pytest.approx(6.0), "the rest of it may be nothing but steps"
    assert cut.note == "stopped after 45 s and 1000 steps, as the time was up"


def test_no_run_is_estimated_to_gain_more_than_its_steps():
    """The first steps, which were raced, may be the slow ones."""
    for importing in (0.0, 4.0):
        guess = measure(runner([Run(8.0, 0, 1000, importing, looping=3.0)], []), SAVING, soon(1), patched=True)
        assert guess.estimated
        assert guess.speedup is not None
        assert guess.after_imports is not None
        assert guess.after_imports.ratio == pytest.approx(5.0)
        assert guess.speedup.ratio == pytest.approx((8.0 + 4 * (8.0 - importing)) / 8.0)


def test_a_crash_after_training_makes_the_claim_fall():
    with pytest.raises(Fallen, match="IndexError: pop from empty list"):
        measure(
            runner([Run(9.0, 1, 300, last_line="IndexError: pop from empty list")], [Run(20.0, 0, 300)]),
            SAVING,
            soon(99),
            True,
        )
    with pytest.raises(Fallen, match="exit code 3"):
        measure(runner([Run(9.0, 3, 300)], [Run(20.0, 0, 300)]), SAVING, soon(99), True)


def test_a_further_run_that_does_not_end_makes_the_claim_fall():
    with pytest.raises(Fallen, match="a further run had not ended after 60 s, where the first one took 9 s"):
        measure(runner([Run(9.0, 0, 300), Run(60.0, None, 100)], [Run(20.0, 0, 300)]), SAVING, soon(999), True)


def test_a_program_that_fails_by_itself_may_fail_with_the_patch_too():
    last = "ModuleNotFoundError: No module named 'plots'"
    found = measure(
        runner([Run(9.0, 1, 300, last_line=last)], [Run(18.0, 1, 300, last_line=last)]), SAVING, soon(999), True
    )
    assert found.speedup is not None
    assert found.speedup.ratio == pytest.approx(2.0)
    assert found.note == "both end with exit code 1"


def test_a_lever_that_gives_up_in_a_program_that_fails_by_itself_is_no_claim():
    bad = Run(9.0, 1, 300, last_line="OSError: no space", gave_up="cache gave up: a second pass differs")
    original = Run(18.0, 1, 300, last_line="OSError: no space")
    with pytest.raises(GaveUp, match="a second pass differs"):
        measure(runner([bad], [original]), SAVING, soon(999), True)
    with pytest.raises(GaveUp, match="a second pass differs"):
        measure(runner([replace(bad, gave_up=""), bad], [original]), SAVING, soon(999), True)
    with pytest.raises(Fallen, match="no space") as fallen:
        measure(runner([bad], [replace(original, exit_code=0)]), SAVING, soon(999), True)
    assert not isinstance(fallen.value, GaveUp), "that it fails where it did not is what matters"


def test_an_error_may_name_another_number():
    found = Run(3.0, 1, 10, last_line="TimeoutError: no answer within 10.5 s from <Queue at 0x7f3a>")
    assert found.ends_like(replace(found, last_line="TimeoutError: no answer within 9.1 s from <Queue at 0x55d0>"))
    assert not found.ends_like(replace(found, last_line="TimeoutError: no answer"))


def test_where_the_original_was_not_seen_to_end_nothing_is_said_of_its_end():
    runs = runner([Run(3.0, 1, 10, last_line="OSError: no space")], [Run(60.0, None, 400)])
    with pytest.raises(Unseen, match="no space"):
        measure(runs, None, soon(300), patched=True)


def test_the_interval_of_few_pairs():
    one, two = ratio_of_few([20.0], [10.0]), ratio_of_few([20.0, 20.0], [10.0, 10.0])
    assert one.ratio == pytest.approx(2.0)
    assert one.low < two.low < 2.0 < two.high < one.high
    noisy = ratio_of_few([20.0, 30.0], [10.0, 10.0])
    assert noisy.high / noisy.low > two.high / two.low
    varying = ratio_of_few([20.0, 20.0], [10.0, 10.0], [[300, 420], [310, 400]])
    assert varying.ratio == two.ratio
    assert varying.high / varying.low > two.high / two.low
    assert ratio_of_few([20.0, 20.0], [10.0, 10.0], [[500, 500], [300, 300]]) == two, (
        "what sides differ by is no chance"
    )


def test_the_best_of_several_changes_has_a_wider_interval():
    one, of_five = (ratio_of_few([20.0] * 3, [10.0] * 3, comparisons=count) for count in (1, 5))
    assert of_five.low < one.low < one.high < of_five.high
    runs = [Run(10.0, 0, 300)], [Run(20.0, 0, 300)]
    assert measure(runner(*runs), SAVING, soon(999), True, comparisons=5).speedup == of_five


def lengths(before: list[int], after: list[int], seconds: float = 1000):
    originals = [Run(30.0, 0, steps, looping=1.0, rank=80) for steps in before]
    changes = [Run(9.0, 0, steps, looping=1.0, rank=80) for steps in after]
    return measure(runner(changes, originals), SAVING, soon(seconds), True)


def test_runs_of_the_original_show_that_chance_makes_them_differ_in_length():
    found, steady = lengths([500, 300, 420], [330, 450, 470]), lengths([300], [300])
    assert found.note == "by chance its runs make between 300 and 500 steps"
    assert steady.note == ""
    assert found.speedup is not None
    assert steady.speedup is not None
    assert found.speedup.high > steady.speedup.high
    assert (found.tenfold, found.steps_before, steady.steps_before) == (None, 0, 300)


def test_a_change_that_makes_fewer_steps_is_no_chance():
    found = lengths([500], [300])
    assert found.note == "its runs make 300 steps, where they made 500"
    assert (found.steps, found.steps_before) == (300, 500)


@pytest.mark.parametrize(
    ("before", "after", "seconds"),
    [([500], [300], 60), ([500, 480, 490], [300], 1000), ([500, 510, 500], [300, 500, 400], 1000)],
    ids=["one pair", "less by chance", "the changed one alone"],
)
def test_where_nothing_shows_why_lengths_differ_there_is_no_ratio(before, after, seconds):
    found = lengths(before, after, seconds)
    assert found.speedup is None
    assert found.after_imports is None
    assert found.tenfold is None
    assert found.note.endswith("and nothing shows that chance makes so much")


PROGRAM = """
import sys
observer = next(finder.observer for finder in sys.meta_path if hasattr(finder, "observer"))
def probe():
    return observer.streams.make("fit", "steps", "steps")
stream = probe()
for step in range(20):
    observer.ticks.tick(stream, float(step), float(step + 1))
open("result.txt", "w").write("written")
if sys.argv[1:]:
    raise ValueError(sys.argv[1])
"""


@pytest.mark.parametrize("words", [[], ["no luck"]])
def test_a_run_is_shielded_counted_and_comes_to_its_end(tmp_path: Path, words: list[str]):
    program = tmp_path / "steps.py"
    program.write_text(PROGRAM)
    watchdog = Watchdog()
    try:
        found = whole_run.run(Launch((sys.executable, str(program), *words)), tmp_path / "run", watchdog, 60)
    finally:
        watchdog.close()
    assert (found.steps, found.exit_code) == (20, 1 if words else 0)
    assert json.loads((tmp_path / "run" / FILE).read_text())["own"] > 0, "what flatout took does not count"
    assert not Path("result.txt").exists()
    assert found.last_line == ("ValueError: no luck" if words else "")
    assert found.failed is bool(words)


def test_a_run_whose_time_is_up_is_stopped(tmp_path: Path):
    program = tmp_path / "waits.py"
    program.write_text("import signal; signal.pause()")
    watchdog = Watchdog()
    try:
        found = whole_run.run(Launch((sys.executable, str(program))), tmp_path / "run", watchdog, 0.5)
    finally:
        watchdog.close()
    assert not found.ended
    assert not found.failed


def test_processes_that_are_started_anew_leave_time_for_whole_runs():
    def groups(seconds: float) -> int:
        clock = Clock(480.0)
        clock.began -= 360.0
        context: Any = SimpleNamespace(clock=clock, seconds_of_program=seconds, races=[])
        race: Any = SimpleNamespace(rounds_of_group=lambda: 5, seconds_to_confirm=lambda finalists, groups: 25 * groups)
        return FreshProcesses(context, race)._groups(2, 0)

    assert groups(5.0) == 2
    assert groups(12.0) == 1


def test_confirming_leaves_time_for_whole_runs():
    def context(seconds: float | None, budget: float = 480.0) -> Any:
        clock = Clock(budget)
        clock.began -= budget / 2
        return SimpleNamespace(clock=clock, seconds_of_program=seconds)

    def left(seconds: float | None, budget: float = 480.0) -> float:
        given = context(seconds, budget)
        return round(given.clock.end - _deadline(given))

    assert left(5.0) == left(None) == round(0.45 * 240), "short runs take what is kept in any case"
    assert left(15.0) == 120, "three pairs, and comparing"
    assert left(60.0) == round(0.6 * 240), "never so much that nothing can be confirmed"
