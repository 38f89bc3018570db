"""How often `flatout compare` calls two runs of the same program different, and how often it finds a planted slowdown.

Real runs, each a process of its own, in turn: A, A with 15 % of its step added (Python spins that long in each step),
A again, and so on. A side has `RUNS` runs: the slower ones are compared with the As beside them, and of the As around
there every other one with the rest. A/A bar: no alarm in 95 % of the pairs; planted bar: an alarm in 95 %. The alarm is
that of `--max-regression 5%`. A run waits until the machine is idle, and one during which something else used the cores
is made again: what is asked here is not what a busy machine does. With KEEP the runs are kept in that directory, and
a later start goes on behind them.

    PAIRS=40 RUNS=8 STEPS=1000 KEEP=DIRECTORY python benchmarks/compare.py [fit] [loop] [eager]
"""

from __future__ import annotations

import itertools
import math
import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from statistics import fmean

from flatout.compare.case_selection import load_run
from flatout.compare.comparison import Comparison, compare
from flatout.store.run_summary import Run

PAIRS = int(os.environ.get("PAIRS", "40"))
RUNS = int(os.environ.get("RUNS", "8"))
KEEP = os.environ.get("KEEP")
PLANTED = 0.15
BUSY = 0.05
"""Share of the cores from which a machine counts as busy with something else."""
TRIES = 5
ALLOWED = 0.05

COMMON = """
import os, time
import keras, numpy as np, tensorflow as tf
keras.utils.set_random_seed(1)
STEPS, EXTRA = int(os.environ.get("STEPS", "1000")), float(os.environ.get("EXTRA_MS", "0")) / 1e3
def spin():
    end = time.perf_counter() + EXTRA
    while time.perf_counter() < end:
        pass
model = keras.Sequential([keras.layers.Input((32, 32, 3)), keras.layers.Conv2D(24, 3, activation="relu"),
    keras.layers.Conv2D(24, 3, strides=2, activation="relu"), keras.layers.GlobalAveragePooling2D(),
    keras.layers.Dense(10)])
loss = keras.losses.SparseCategoricalCrossentropy(from_logits=True)
x = np.random.rand(1024, 32, 32, 3).astype("float32"); y = np.random.randint(0, 10, 1024)
data = tf.data.Dataset.from_tensor_slices((x, y)).repeat().batch(32)
"""
PROGRAMS = {
    "fit": COMMON
    + """
class Spin(keras.callbacks.Callback):
    def on_train_batch_begin(self, batch, logs=None):
        spin()
model.compile("adam", loss)
model.fit(data, steps_per_epoch=STEPS, epochs=1, verbose=0, callbacks=[Spin()])
""",
    "loop": COMMON
    + """
optimizer = keras.optimizers.SGD(0.01)
@tf.function
def step(images, labels):
    with tf.GradientTape() as tape:
        value = loss(labels, model(images, training=True))
    optimizer.apply_gradients(zip(tape.gradient(value, model.trainable_variables), model.trainable_variables))
    return value
for images, labels in data.take(STEPS):
    spin()
    step(images, labels)
""",
    "eager": COMMON
    + """
optimizer = keras.optimizers.SGD(0.01)
for images, labels in data.take(STEPS // 2):
    spin()
    with tf.GradientTape() as tape:
        value = loss(labels, model(images, training=True))
    optimizer.apply_gradients(zip(tape.gradient(value, model.trainable_variables), model.trainable_variables))
""",
}


def main() -> None:
    wanted = sys.argv[1:] or list(PROGRAMS)
    share = [PAIRS // len(wanted) + (number < PAIRS % len(wanted)) for number in range(len(wanted))]
    alarms = found = 0
    print(f"{'program':8s} {'pair':>4s}  {'step':>8s}  {'A against A':47s} {'planted 15 %':47s}", flush=True)
    for name, pairs in zip(wanted, share, strict=True):
        with tempfile.TemporaryDirectory() as directory:
            program = Path(directory) / f"{name}.py"
            program.write_text(PROGRAMS[name])
            plain, slower = kept(name)
            if len(plain) == len(slower):
                plain.append(observe(program))
            for pair in range(pairs):
                while len(plain) < (pair + 2) * RUNS:
                    slower.append(observe(program, PLANTED * fmean(run.median_ms for run in plain[-RUNS:])))
                    plain.append(observe(program))
                around = plain[pair * RUNS : (pair + 2) * RUNS]
                beside = slower[pair * RUNS : (pair + 1) * RUNS]
                same, planted = compare(around[::2], around[1::2], ALLOWED), compare(around[:RUNS], beside, ALLOWED)
                alarms, found = alarms + same.regressed, found + planted.regressed
                print(f"{name:8s} {pair:4d}  {around[0].median_ms:5.1f} ms  {told(same)} {told(planted)}", flush=True)
    total = sum(share)
    print(f"A/A: no alarm in {total - alarms} of {total} ({1 - alarms / total:.1%}; bar 95 %)")
    print(f"planted: found in {found} of {total} ({found / total:.1%}; bar 95 %)")
    sys.exit(alarms > 0.05 * total or found < 0.95 * total)


def told(found: Comparison) -> str:
    share = found.step.share
    if share is None:
        return f"{'too few steps':44s}"
    mark = "alarm" if found.regressed else found.step.outcome
    raw = math.prod(run.median_ms for run in found.after) / math.prod(run.median_ms for run in found.before)
    told = f"{share.ratio:+6.1%} [{share.low:+6.1%}, {share.high:+6.1%}] {mark:6s}"
    return f"{told} ({raw ** (1 / RUNS) - 1:+6.1%} raw)   "


def observe(program: Path, extra_ms: float = 0.0) -> Run:
    """One real run on a calm machine."""
    for _ in range(TRIES):
        wait_until_idle()
        case = observe_once(program, extra_ms)
        run = load_run(case)
        if (run.others or 0.0) <= BUSY:
            break
    if KEEP:
        Path(KEEP).mkdir(parents=True, exist_ok=True)
        Path(KEEP, f"{run.name}-{extra_ms:.2f}.json").write_bytes(case.read_bytes())
    return run


def kept(name: str) -> tuple[list[Run], list[Run]]:
    """The runs of an earlier start, as they are and slowed down; their names tell when they were made."""
    files = sorted(Path(KEEP).glob(f"{name}-*.json")) if KEEP else []
    plain = [load_run(file) for file in files if file.stem.endswith("-0.00")]
    slower = [load_run(file) for file in files if not file.stem.endswith("-0.00")]
    return plain, slower[: len(plain)]


def wait_until_idle() -> None:
    def idle() -> tuple[float, float]:
        fields = [int(word) for word in Path("/proc/stat").read_text().split("\n", 1)[0].split()[1:]]
        return fields[3] + fields[4], sum(fields[:8])

    for second in itertools.count():
        if second == 10:
            print("waiting until the machine is idle", file=sys.stderr, flush=True)
        before = idle()
        time.sleep(1.0)
        after = idle()
        if (after[0] - before[0]) >= (1 - BUSY) * (after[1] - before[1]):
            return


def observe_once(program: Path, extra_ms: float) -> Path:
    """As a user would; the case that this left."""
    environment = {**os.environ, "TF_CPP_MIN_LOG_LEVEL": "3", "EXTRA_MS": str(extra_ms)}
    command = [sys.executable, "-m", "flatout", "run", "-q", str(program)]
    done = subprocess.run(command, cwd=program.parent, env=environment, capture_output=True, text=True)
    case = program.parent / ".flatout" / "latest" / "case.json"
    if done.returncode or not case.exists():
        raise RuntimeError(done.stderr[-2000:])
    return case


if __name__ == "__main__":
    main()
