"""Programs that draw random numbers, run with pinned ones: a right change passes, a wrong one is refused.

One process runs all programs of `tests/programs/drawing.py` in all ways of writing them.
"""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest
from observed import environment

from flatout.measure.parity import Numbers, compare

PROGRAMS = Path(__file__).parents[1] / "programs"
CHANGES = {
    "coder": "right_traced right_compiled wrong_without_noise wrong_one_draw wrong_scaled wrong_skipping",
    "adversaries": "right_traced right_compiled wrong_same_noise",
    "dropping": "right_many right_compiled wrong_rate",
    "dropping_by_hand": "right_traced right_looped wrong_shorter",
    "feeding": "right_traced wrong_one_draw",
    "exploring": "right_traced wrong_greedy",
    "augmenting": "right_parallel wrong_cached",
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


@pytest.fixture(scope="module")
def runs(tmp_path_factory: pytest.TempPathFactory) -> Path:
    home = tmp_path_factory.mktemp("pinned")
    program = home / "start.py"
    program.write_text(START)
    wanted = [f"{name}-{change}" for name, changes in CHANGES.items() for change in ("plain", *changes.split())]
    done = subprocess.run(
        [sys.executable, str(program), str(home / "out"), str(PROGRAMS), ",".join(wanted)],
        cwd=home,
        env=environment(PYTHONHASHSEED="0"),
        capture_output=True,
        text=True,
        timeout=600,
    )
    assert done.returncode == 0, done.stderr[-4000:]
    return home / "out"


CASES = [(name, change) for name, changes in CHANGES.items() for change in changes.split()]


@pytest.mark.slow
@pytest.mark.parametrize(("name", "change"), CASES)
def test_a_right_change_passes_and_a_wrong_one_is_refused(runs: Path, name: str, change: str) -> None:
    plain, changed = (Numbers.load(runs / f"{name}-{one}" / "numbers.npz") for one in ("plain", change))
    found = compare(plain, changed, promise="reassociated")
    assert "weights" in found.sentence or "update" in found.sentence, "nothing but losses was compared"
    assert (found.verdict in ("exact", "reassociated")) == change.startswith("right"), found
