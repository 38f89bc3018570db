"""Races between real processes that hold real gates; the programs only sleep, so no TensorFlow is needed."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import textwrap
import time
from dataclasses import replace
from pathlib import Path

import pytest

from flatout.measure.processors import STARVED
from flatout.measure.race import Exit, Rules, TimeLimit
from flatout.measure.race.rules import LONGER_WHERE_DISTURBED
from flatout.process.watchdog import Watchdog
from flatout.trial.child_process import Launch
from flatout.tune import race as race_module
from flatout.tune import starter as starter_module
from flatout.tune.contestant import Block, Contestant
from flatout.tune.race import Race
from flatout.tune.starter import Starter
from waiting import until

races = pytest.mark.slow

PROGRAM = """
import sys, time
pause, steps, how = float(sys.argv[1]), int(sys.argv[2]), sys.argv[3]
observer = next(finder.observer for finder in sys.meta_path if hasattr(finder, "observer"))
def probe():
    return observer.streams.make("fit", "steps", "sleeps")
stream = probe()
for step in range(steps):
    began = time.perf_counter()
    time.sleep(pause)  # what a step takes
    if how == "idle" and step == 0:
        observer.injections.levers[0][0].note("the batches differ")
    if how == "epochs" and step % 10 == 0:
        observer.trial.epochs += 1
        time.sleep(0.1)  # the slow beginning of an epoch
    if how == "raises" and step == 3:
        raise ValueError("no luck")
    if how == "hangs" and step == 3:
        time.sleep(1000)  # hangs until it is ended
    if how == "grows" and step == 3:
        hoard = [b"x" * 1000] * 30_000_000
        time.sleep(2)  # holds the memory until it is noticed
    observer.ticks.tick(stream, began, time.perf_counter())
"""


@pytest.fixture(autouse=True)
def short_blocks(monkeypatch: pytest.MonkeyPatch) -> None:
    """Sleeps are as exact in short blocks as in long ones."""
    monkeypatch.setattr(starter_module, "BLOCK_SECONDS", 0.1)
    monkeypatch.setattr(race_module, "BLOCK_SECONDS", 0.1)


@pytest.fixture
def program(tmp_path: Path) -> Path:
    path = tmp_path / "sleeps.py"
    path.write_text(PROGRAM)
    return path


@pytest.fixture
def watchdog():
    made = Watchdog()
    yield made
    made.close()


def contestant(program: Path, pause: float, steps: int = 100_000, how: str = "well", title: str = "one") -> Contestant:
    return Contestant(Launch((sys.executable, str(program), str(pause), str(steps), how)), title)


def race_of(tmp_path: Path, watchdog: Watchdog, program: Path, pause: float = 0.015, steps: int = 100_000) -> Race:
    baselines = [contestant(program, pause, steps, title="a"), contestant(program, pause, steps, title="b")]
    race = Race(baselines, Starter(tmp_path / "race", watchdog))
    race.starter.start(baselines)
    return race


def run(race: Race, *contestants: Contestant, rounds: int, comparisons: int = 1) -> None:
    race.run(contestants, Rules(rounds=rounds, comparisons=comparisons), TimeLimit(time.monotonic() + 240))


def status(one: Contestant) -> str:
    assert one.verdict is not None
    return one.verdict.status


@races
def test_a_lever_that_changes_nothing_says_why(tmp_path, watchdog, program):
    race = race_of(tmp_path, watchdog, program)
    idle, silent = (contestant(program, 0.01, how=how) for how in ("idle", "well"))
    for one in (idle, silent):
        one.launch = replace(one.launch, levers=("keep-batches",))
    race.starter.start([idle, silent])
    assert (idle.unchanged, idle.note) == (True, "the batches differ")
    assert (silent.unchanged, silent.note) == (True, "it found nothing to change in this program")
    assert not idle.active
    assert not silent.active
    edited = contestant(program, 0.01)
    other = tmp_path / "other.py"
    other.write_text("")
    edited.launch = replace(edited.launch, levers=("keep-batches",), sources=((str(other), str(other)),))
    race.starter.start([edited])
    assert edited.active, "what is edited is changed, whatever is injected on top"
    race.close()


@pytest.mark.alone
def test_a_faster_program_wins_and_an_equal_one_does_not(tmp_path, watchdog, program):
    race = race_of(tmp_path, watchdog, program)
    fast, equal, slow = (contestant(program, pause) for pause in (0.002, 0.015, 0.08))
    race.starter.start([fast, equal, slow])
    run(race, fast, equal, slow, rounds=12, comparisons=3)
    assert status(fast) == "won"
    assert status(equal) in ("noise", "lost")  # never a win; the sleeps themselves are not more exact than that
    assert status(slow) == "lost"
    verdict = race.verdict(fast)
    assert verdict.speedup is not None
    assert verdict.speedup.low <= verdict.speedup.ratio <= verdict.speedup.high
    race.close()


@pytest.mark.parametrize(
    ("step", "rounds", "over"),
    [
        ([0.2] * 8, 1, True),  # slow beyond all measure: it would take the time of the others
        ([0.05] * 8, 1, False),
        ([0.05] * 8, 2, True),
        ([0.02] * 8, 3, False),
        ([0.02] * 8, 4, True),
        ([*[0.015] * 7, 5.0], 1, False),  # one long step: a trace, a checkpoint
    ],
)
def test_what_is_slower_by_far_is_given_up_the_sooner_the_slower_it_is(tmp_path, watchdog, step, rounds, over):
    def having_run(times: list[float]) -> Contestant:
        return Contestant(Launch(()), "one", blocks=[Block(times, 8, 0.1) for _ in range(rounds)])

    race = Race([having_run([0.015] * 8) for _ in range(2)], Starter(tmp_path, watchdog))
    race.rules = Rules("narrow", comparisons=3)
    one = having_run(step)
    race._decide([one])
    assert (one.verdict is not None) is over
    if one.verdict is not None:
        assert one.verdict.status == "lost"


@pytest.mark.alone
def test_rounds_in_which_something_else_has_the_processors_use_up_none(tmp_path, watchdog, program):
    race = race_of(tmp_path, watchdog, program)
    one = contestant(program, 0.015)
    race.starter.start([one])
    busy = [subprocess.Popen([sys.executable, "-c", "while True: pass"]) for _ in range(os.cpu_count() or 1)]
    try:
        run(race, one, rounds=2)
    finally:
        for process in busy:
            process.kill()
            process.wait()
    assert race.round == LONGER_WHERE_DISTURBED * 2
    assert min(race.taken) >= STARVED
    race.close()


FILLS = """
import sys, threading, time
pause = float(sys.argv[1])
observer = next(finder.observer for finder in sys.meta_path if hasattr(finder, "observer"))
def probe():
    return observer.streams.make("fit", "steps", "fills")
stream, ready = probe(), threading.Semaphore(0)
def fill():
    while True:
        time.sleep(pause)  # what a batch takes
        ready.release()
threading.Thread(target=fill, daemon=True).start()
for step in range(100_000):
    began = time.perf_counter()
    ready.acquire()
    observer.ticks.tick(stream, began, time.perf_counter())
"""


@races
def test_a_pause_fills_no_buffers(tmp_path, watchdog):
    """A thread that makes a batch each 20 ms goes on in any pause that it is let: steps would be free after it."""
    program = tmp_path / "fills.py"
    program.write_text(FILLS)
    race = race_of(tmp_path, watchdog, program, pause=0.02)
    one = contestant(program, 0.02)
    race.starter.start([one])
    for held in (*race.baselines, one):
        until(lambda held=held: waits_for_batches(held))  # what was made before it was first held is used up
        held.child.hold()
    time.sleep(1.0)  # the pause that must not fill the buffers, in which all of the next batches could be made
    one.child.go(50)
    assert sum(one.child.block(60).times) > 0.3
    race.close()


def waits_for_batches(one: Contestant) -> bool:
    one.child.go(10)
    return sum(one.child.block(60).times) > 0.1


@races
def test_blocks_are_whole_epochs_where_these_are_short_and_begin_slowly(tmp_path, watchdog, program):
    """Nine steps of ten would be with or without the slow one, by chance."""
    race = race_of(tmp_path, watchdog, program, pause=0.005)
    race.baselines[0].launch = race.baselines[1].launch = contestant(program, 0.005, how="epochs").launch
    for one in race.baselines:
        one.close()
    other = contestant(program, 0.005, how="epochs")
    race.starter.start([*race.baselines, other])
    run(race, other, rounds=7)
    assert race.epoch == 10
    for one in (*race.baselines, other):
        for block in filter(None, one.blocks):
            kept = [i for i in block.starts if i > 0]
            assert len(block.times) % 10 == 1
            assert len(kept) == len(block.times) // 10
    race.close()


def test_epochs_that_begin_like_any_step_leave_blocks_alone():
    one = Contestant(Launch(()), "steady", epoch=10)
    one.blocks = [Block([0.010] * 8 + [0.014] + [0.010] * 8, 17, 0.1, starts=[8])]
    assert one.rhythm() == 0
    one.blocks = [Block([0.010] * 8 + [0.150] + [0.010] * 8, 17, 0.1, starts=[8])]
    assert one.rhythm() == 10


def test_rounds_by_which_something_was_decided_are_not_forgotten(tmp_path, watchdog):
    def costly(exit: Exit | None = None) -> Contestant:
        blocks = [Block([0.01] * 8 + [0.2], 9, 0.1, starts=[8])]
        return Contestant(Launch(()), "one", epoch=10, blocks=blocks, exit=exit)

    race = Race([costly(), costly()], Starter(tmp_path, watchdog))
    decided = costly(Exit("decided"))
    race.adjust([decided])
    assert race.epoch == 0
    assert all(decided.blocks)
    race.adjust([costly()])
    assert race.epoch == 10
    assert race.baselines[0].steps % 10 == 1
    assert not any(race.baselines[0].blocks)


def test_blocks_of_a_gpu_are_long_and_shorter_ones_before_them_are_forgotten(tmp_path, watchdog):
    def one() -> Contestant:
        return Contestant(Launch(()), "one", steps=3, blocks=[Block([0.04, 0.024, 0.042], 3, 0.1, queued=True)])

    race = Race([one(), one()], Starter(tmp_path, watchdog))
    contestant = one()
    race.contestants.append(contestant)
    race.adjust([contestant])
    assert not any(race.baselines[0].blocks)
    assert not any(contestant.blocks)
    assert contestant.steps >= race_module.QUEUED_CALLS
    race.baselines[0].blocks.append(Block([0.038] * 30, 30, 1.0, queued=True))
    race.adjust([contestant])
    assert any(race.baselines[0].blocks), "only once"


def test_where_steps_differ_all_count_the_same_ones_and_each_block_has_many(tmp_path, watchdog):
    def one(times: list[float]) -> Contestant:
        return Contestant(Launch(()), "one", steps=1, blocks=[Block(times, len(times), 0.1)])

    slow, fast = one([0.8, 0.004, 0.004, 0.9, 0.004, 0.004]), one([0.4, 0.004, 0.004, 0.45, 0.004, 0.004])
    race = Race([slow, one([0.8, 0.004, 0.004, 0.9, 0.004, 0.004])], Starter(tmp_path, watchdog), varies=True)
    race.adjust([fast])
    assert slow.steps == fast.steps >= race_module.MIXED_STEPS
    assert slow.dropped() == fast.dropped() == 1
    assert race.given_up == race_module.MIXED_GIVEN_UP, "one block of short steps is no reason to give up"


def test_a_lever_that_compiles_anew_in_each_block_is_as_slow_as_that():
    assert Block([0.007] * 15 + [12.0] + [0.007] * 15, 31, 0.1).per_step(1) == pytest.approx(0.407, abs=0.001)
    at_start = [Block([0.007, 12.0] + [0.007] * 29, 31, 0.1), Block([12.0] + [0.007] * 30, 31, 0.1)]
    assert [block.per_step(2) for block in at_start] == pytest.approx([0.421, 0.421], abs=0.001), "no pause explains it"
    assert Block([0.9] + [0.02] * 10, 11, 0.1).per_step(1) == pytest.approx(0.020), "a cold start is the pause's"
    queued = Block([12.0] + [0.02] * 10, 11, 0.1, queued=True)
    assert queued.per_step(1) == pytest.approx(1.22)


def test_calls_of_different_numbers_of_steps_are_weighed():
    assert Block([0.9, 0.04, 0.02], 14, 0.1, counts=[8, 4, 2]).per_step(1) == pytest.approx(0.010)


@races
def test_a_program_that_ends_is_started_again(tmp_path, watchdog, program):
    race = race_of(tmp_path, watchdog, program, steps=40)
    short = contestant(program, 0.002, steps=40)  # fewer than fifteen blocks, of three steps at least, take
    race.starter.start([short])
    run(race, short, rounds=15)
    assert short.starts > 1
    assert race.steps_of_program == 40
    assert sum(block is not None for block in short.blocks) >= 7
    race.close()


@races
def test_a_program_of_seven_steps_is_started_again_until_there_are_enough(tmp_path, watchdog, program):
    """A step is a step in whichever process."""
    baselines, fast = [contestant(program, 0.03, 7, title=name) for name in "ab"], contestant(program, 0.002, 7)
    for one in (*baselines, fast):
        one.launch = replace(one.launch, warm_steps=race_module.warm_steps_of(7))
    race = Race(baselines, Starter(tmp_path / "race", watchdog), steps_of_program=7, warm_steps=4)
    race.starter.start([*baselines, fast])
    run(race, fast, rounds=9)
    assert status(fast) == "won"
    assert fast.starts >= 7
    assert all(one.exit is None or one.exit.why == "decided" for one in (*baselines, fast))
    race.close()


@races
def test_slow_steps_are_raced_one_at_a_time(tmp_path, watchdog, program, monkeypatch):
    monkeypatch.setattr(race_module, "CALLS", ((0.05, 1), (0.0, 3)))
    monkeypatch.setattr(race_module, "LONGEST_BLOCK_SECONDS", 0.1)
    race = race_of(tmp_path, watchdog, program, pause=0.08)
    fast = contestant(program, 0.01)
    race.starter.start([fast])
    run(race, fast, rounds=9)
    assert status(fast) == "won"
    assert {len(block.times) for one in (*race.baselines, fast) for block in one.blocks if block} == {1}
    race.close()


@races
def test_a_program_that_ends_before_it_can_be_timed_with_a_lever_says_so(tmp_path, watchdog, program):
    race = race_of(tmp_path, watchdog, program)
    short = contestant(program, 0.01, steps=2)
    short.launch, short.levers = replace(short.launch, levers=("keep-batches",)), ("keep-batches",)
    race.starter.start([short])
    assert short.unchanged
    assert short.note == "the program ended after 2 steps, too few to time it"
    race.close()


@races
def test_a_program_that_turns_out_to_be_short_is_held_sooner(tmp_path, watchdog, program):
    """The scout had left before its end: with a lever it has ended before it was warm."""
    race = race_of(tmp_path, watchdog, program)
    race.shorten(4)
    short = contestant(program, 0.002, steps=4)
    short.launch = replace(short.launch, warm_steps=race.warm_steps)
    race.starter.start([short])
    assert short.active
    run(race, short, rounds=2)
    assert [one.launch.warm_steps for one in race.baselines] == [2, 2]
    assert race.baselines[0].done < 10, "they begin anew"
    race.close()


@races
def test_baselines_begin_anew_beside_those_that_begin(tmp_path, watchdog, program):
    race = race_of(tmp_path, watchdog, program)
    run(race, rounds=6)
    before = [one.done for one in race.baselines]
    race.rewind()
    run(race, rounds=1)
    assert [one.starts for one in race.baselines] == [2, 2]
    assert all(one.done < count for one, count in zip(race.baselines, before, strict=True))
    race.close()


@races
@pytest.mark.parametrize(
    ("how", "over", "word"), [("raises", "failed", "ValueError: no luck"), ("hangs", "timeout", "no answer")]
)
def test_a_trial_that_misbehaves_is_one_row(how, over, word, tmp_path, watchdog, program, monkeypatch):
    race = race_of(tmp_path, watchdog, program)
    bad, good = contestant(program, 0.05, how=how), contestant(program, 0.002)
    race.starter.start([good])
    race.starter.start_seconds = 4.0 if how == "hangs" else 60.0  # on a starved machine any start takes seconds
    race.starter.start([bad])
    assert bad.exit is not None
    assert bad.exit.why == over
    assert word in bad.note
    run(race, good, rounds=8)
    assert status(good) == "won"
    race.close()


@races
def test_a_trial_that_eats_memory_is_stopped(tmp_path, watchdog, program):
    race = race_of(tmp_path, watchdog, program)
    race.starter.memory_limit = 200 * 2**20
    hungry = contestant(program, 0.05, how="grows")
    race.starter.start([hungry])
    assert hungry.exit is not None
    assert hungry.exit.why == "timeout"
    assert "memory" in hungry.note
    race.close()


@races
def test_nothing_outlives_a_killed_coordinator(tmp_path, program):
    """kill -9 of the coordinator: its trials, held at their gates or running, are gone a moment later."""
    script = textwrap.dedent(f"""
        import signal, sys
        from pathlib import Path
        sys.path[:0] = {[str(Path(__file__).parent), str(Path(__file__).parents[1])]!r}
        from test_tune_race import contestant, race_of
        from flatout.process.watchdog import Watchdog
        race = race_of(Path({str(tmp_path)!r}), Watchdog(), Path({str(program)!r}))
        print(*(one.child.group for one in race.baselines), flush=True)
        race.baselines[0].child.go(1000000)
        signal.pause()
    """)
    coordinator = subprocess.Popen([sys.executable, "-c", script], stdout=subprocess.PIPE, text=True)
    assert coordinator.stdout is not None
    groups = [int(word) for word in coordinator.stdout.readline().split()]
    assert len(groups) == 2
    coordinator.send_signal(signal.SIGKILL)
    coordinator.wait()
    until(lambda: not any(map(alive, groups)), 10)


def alive(group: int) -> bool:
    try:
        os.killpg(group, 0)
    except ProcessLookupError:
        return False
    return True


def test_steps_that_live_on_full_buffers_are_dropped():
    one = Contestant(Launch(()), "buffered")
    one.blocks = [Block([0.001] * 4 + [0.010] * 12, 16, 0.1) for _ in range(5)]
    assert one.dropped() == 4
    assert one.unit_times() == pytest.approx([0.010] * 5)


def test_the_first_step_after_a_pause_is_always_dropped():
    one = Contestant(Launch(()), "steady")
    one.blocks = [Block([0.010] * 8, 8, 0.1) for _ in range(5)]
    assert one.dropped() == 1


def test_several_steps_in_a_call_count_as_several():
    one = Contestant(Launch(()), "sixteen at once")
    one.blocks = [Block([0.5, 0.16, 0.16], 48, 0.1)]
    assert one.unit_times() == pytest.approx([0.010])
