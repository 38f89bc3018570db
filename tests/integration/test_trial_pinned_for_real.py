"""Programs that draw random numbers, run with pinned ones: a right change passes, a wrong one is refused.

One process runs programs of `tests/programs/drawing.py` in their ways of writing them, forked from one that has
imported TensorFlow. The ways that only `scripts/test --all` runs share another one.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import forked
import pytest
from observed import write

from flatout.measure.parity import Numbers, compare

PROGRAMS = Path(__file__).parents[1] / "programs"
USUAL = {
    "coder": "right_compiled wrong_without_noise wrong_one_draw",
    "adversaries": "right_traced wrong_same_noise",
    "dropping": "right_many wrong_rate",
    "feeding": "right_traced wrong_one_draw",
    "exploring": "right_traced wrong_greedy",
    "augmenting": "right_parallel wrong_cached",
}
OTHERS = {
    "coder": "right_traced wrong_scaled wrong_skipping",
    "adversaries": "right_compiled",
    "dropping": "right_compiled",
    "dropping_by_hand": "right_traced right_looped wrong_shorter",
}

START = """
import os, random, sys
from flatout.observe import installing, observer, recorder, settings
from flatout.trial.child import pinned, seeds
from flatout.trial.child.values import Values, hooks

OUT, PROGRAMS, WANTED = sys.argv[1:]
os.makedirs(OUT)
watch = observer.Observer(recorder.Recorder(OUT), settings.ObserveSettings(trace=False, sample=False))
values = Values(OUT, dense=True)
watch.more_probes += [seeds.PROBE, pinned.PROBE, hooks.probe_of(values)]
seeds.install(0)
pinned.install(0)
sys.meta_path.insert(0, installing.ProbeInstaller(watch))
installing.install_in_imported_packages(watch)
best, steps = 0, 0

def at_step(stream, end, n):  # as the gate counts
    global best, steps
    if stream.rank < best: return
    if stream.rank > best: best, steps = stream.rank, 0
    steps += n
    made = sum(int(one.iterations.numpy()) for one in watch.trial.optimizers.values())
    if values.wanted: values.tick(made or steps, (best, made > 0))

watch.trial.at_step = at_step
sys.path.insert(0, PROGRAMS)
import keras, numpy, tensorflow as tf
import drawing

for wanted in WANTED.split(","):
    name, change = wanted.split("-")
    random.seed(0); numpy.random.seed(0); tf.random.set_seed(0); keras.utils.clear_session(); seeds._requests.clear()
    best = steps = watch._follower._best = 0
    watch.trial.optimizers.clear()
    os.makedirs(f"{OUT}/{wanted}")
    values.begin(f"{OUT}/{wanted}")
    getattr(drawing, name)(change)
    values.write()
"""


def ran(home: Path, changes: Mapping[str, str]) -> Path:
    wanted = [f"{name}-{change}" for name, ways in changes.items() for change in ("plain", *ways.split())]
    out = home / "out"
    code, _, errors = forked.run(write(home, START), str(out), str(PROGRAMS), ",".join(wanted), directory=home)
    assert code == 0, errors[-4000:]
    return out


@pytest.fixture(scope="module")
def usual(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return ran(tmp_path_factory.mktemp("pinned"), USUAL)


@pytest.fixture(scope="module")
def others(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return ran(tmp_path_factory.mktemp("others"), OTHERS)


def cases(changes: Mapping[str, str]) -> list[tuple[str, str]]:
    return [(name, change) for name, ways in changes.items() for change in ways.split()]


@pytest.mark.slow
@pytest.mark.parametrize(("name", "change"), cases(USUAL))
def test_a_right_change_passes_and_a_wrong_one_is_refused(usual: Path, name: str, change: str) -> None:
    holds(usual, name, change)


@pytest.mark.slow
@pytest.mark.exhaustive
@pytest.mark.parametrize(("name", "change"), cases(OTHERS))
def test_other_ways_of_writing_them(others: Path, name: str, change: str) -> None:
    holds(others, name, change)


def holds(runs: Path, name: str, change: str) -> None:
    plain, changed = (Numbers.load(runs / f"{name}-{one}" / "numbers.npz") for one in ("plain", change))
    found = compare(plain, changed, promise="reassociated")
    assert "weights" in found.sentence or "update" in found.sentence, "nothing but losses was compared"
    assert (found.verdict in ("exact", "reassociated")) == change.startswith("right"), found
