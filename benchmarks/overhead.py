"""What observing costs: the same steps bare, observed, and inside the trace window, interleaved in one process.

Two processes of the same program differ by some percent from start to end, and so do two seconds of a shared machine:
more than what is looked for. So the program lives in one process, and flatout's probes are put in before a short block
of steps and taken out after it, in shuffled order: bare, bare again, observed outside the window. The window needs
longer blocks, as long as a window of a real run, and has bare ones of the same length beside it. The ratio of a round
is that of the medians of its blocks; the interval is the sign test's. All of it is done in several processes, one after
the other. The second bare block shows what the method itself cannot tell apart.
Bars: at most 3 % outside the window, at most 10 % inside.
"""

from __future__ import annotations

import contextlib
import json
import os
import random
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator

ROUNDS = int(os.environ.get("ROUNDS", "60"))
WINDOWS = int(os.environ.get("WINDOWS", "30"))
BLOCKS_OF_A_WINDOW = 5
GENERATIONS = int(os.environ.get("GENERATIONS", "3"))
"""How many processes; each runs all rounds."""
BARE, OUTSIDE, INSIDE = None, False, True
"""Observed? And with a trace?"""
SIDES = {"bare": BARE, "bare again": BARE, "outside": OUTSIDE}
LONG_SIDES = {"bare, long": BARE, "inside": INSIDE}
BESIDE = {"bare again": "bare", "outside": "bare", "inside": "bare, long"}


def main() -> None:
    from flatout.measure.interval import paired_ratio

    print(f"medians of {GENERATIONS} × {ROUNDS} rounds and {GENERATIONS} × {WINDOWS} windows, against the bare program")
    print(f"{'program':24s} {'step ms':>8s}  {'bare again':26s}{'outside the window':26s}inside")
    worst = {"outside": -1.0, "inside": -1.0}
    for name in sys.argv[1:] or PROGRAMS:
        times: dict[str, list[float]] = {}
        for _ in range(GENERATIONS):
            for side, medians in in_a_process(name).items():
                times.setdefault(side, []).extend(medians)
        row = f"{name:24s} {statistics.median(times['bare']) * 1e3:8.3f}  "
        for side, beside in BESIDE.items():
            found = paired_ratio(times[side], times[beside])
            row += f"{f'{found.ratio - 1:+.1%} [{found.low - 1:+.1%}, {found.high - 1:+.1%}]':26s}"
            if side in worst:
                worst[side] = max(worst[side], found.ratio - 1)
        print(row, flush=True)
    print(f"worst median: {worst['outside']:+.1%} outside (bar +3 %), {worst['inside']:+.1%} inside (bar +10 %)")


def in_a_process(name: str) -> dict[str, list[float]]:
    command = [sys.executable, __file__, "--worker", name]
    done = subprocess.run(command, env={**os.environ, "TF_CPP_MIN_LOG_LEVEL": "3"}, capture_output=True, text=True)
    if done.returncode:
        raise SystemExit(f"{name}: {done.stderr[-2000:]}")
    return dict(json.loads(done.stdout.splitlines()[-1]))


def work(name: str) -> None:
    """All rounds of one process: the medians of each side's blocks, as JSON on the last line."""
    import keras
    import tensorflow as tf

    block = PROGRAMS[name](tf, keras)
    times: dict[str, list[float]] = {side: [] for side in (*SIDES, *LONG_SIDES)}
    taken(block, INSIDE)  # whatever is made on first use is made here
    for number in range(ROUNDS):
        for side in random.sample(list(SIDES), len(SIDES)):
            times[side].append(taken(block, SIDES[side]))
        if number % (ROUNDS // WINDOWS) == 0:
            for side in random.sample(list(LONG_SIDES), len(LONG_SIDES)):
                times[side].append(taken(block, LONG_SIDES[side], BLOCKS_OF_A_WINDOW))
    print(json.dumps(times))


def taken(block: Callable[[], list[float]], trace: bool | None, blocks: int = 1) -> float:
    with tempfile.TemporaryDirectory() as directory, observed(directory, trace, block):
        block()  # putting a probe in makes Python forget what it had learnt of a class: a run pays for that once
        return statistics.median([seconds for _ in range(blocks) for seconds in block()])


@contextlib.contextmanager
def observed(directory: str, trace: bool | None, block: Callable[[], list[float]]) -> Iterator[None]:
    """As `flatout run` does it, from here to the end of the block; `trace` opens a window over it."""
    if trace is None:
        yield
        return
    from flatout.observe import private_names, window
    from flatout.observe.installing import finish, install_in_imported_packages
    from flatout.observe.observer import Observer
    from flatout.observe.recorder import Recorder
    from flatout.observe.settings import ObserveSettings

    window.FULL_SECONDS, window.LONGEST_SECONDS, window.MOST_STEPS = 1e9, 1e9, 10**9  # it stays as long as the block
    observer = Observer(Recorder(directory), ObserveSettings(window_start=10**9))
    observer.window.opened_times = 1  # outside the window is, mostly, after it
    install_in_imported_packages(observer)
    try:
        if trace:
            block()  # the window follows a stream of steps, so there has to be one
            observer.window.open(max(observer.streams.values(), key=lambda stream: (stream.rank, stream.last)))
            observer.look()
        yield
    finally:
        finish(observer)  # closes the window, stops the sampling
        private_names.restore()


def _timed(step: Callable[[], object], count: int) -> Callable[[], list[float]]:
    def block() -> list[float]:
        times = []
        for _ in range(count):
            start = time.perf_counter()
            step()
            times.append(time.perf_counter() - start)
        return times[2:]

    return block


def _model(keras: object, width: int, layers: int = 3) -> object:
    parts = [keras.layers.Dense(width, activation="relu") for _ in range(layers)]  # type: ignore[attr-defined]
    return keras.Sequential([keras.Input((width,)), *parts, keras.layers.Dense(10)])  # type: ignore[attr-defined]


def _loop(width: int, batch: int, traced: bool, count: int) -> Callable[..., Callable[[], list[float]]]:
    def make(tf: object, keras: object) -> Callable[[], list[float]]:
        model, optimizer = _model(keras, width), keras.optimizers.Adam()
        loss_of = keras.losses.SparseCategoricalCrossentropy(from_logits=True)
        data = (tf.random.normal((batch, width)), tf.random.uniform((batch,), maxval=10, dtype=tf.int32))
        batches = iter(tf.data.Dataset.from_tensors(data).repeat())

        def step(x, y):
            with tf.GradientTape() as tape:
                loss = loss_of(y, model(x, training=True))
            optimizer.apply_gradients(
                zip(tape.gradient(loss, model.trainable_variables), model.trainable_variables, strict=True)
            )
            return loss

        call = tf.function(step) if traced else step
        return _timed(lambda: call(*next(batches)), count)

    return make


def _fit(width: int, batch: int, count: int) -> Callable[..., Callable[[], list[float]]]:
    def make(tf: object, keras: object) -> Callable[[], list[float]]:
        model = _model(keras, width)
        model.compile("adam", keras.losses.SparseCategoricalCrossentropy(from_logits=True))
        data = (tf.random.normal((batch, width)), tf.random.uniform((batch,), maxval=10, dtype=tf.int32))
        dataset = tf.data.Dataset.from_tensors(data).repeat()

        class Clock(keras.callbacks.Callback):
            def on_train_begin(self, logs=None):
                self.ends = []

            def on_train_batch_end(self, batch, logs=None):
                self.ends.append(time.perf_counter())

        clock = Clock()

        def block() -> list[float]:
            model.fit(dataset, steps_per_epoch=count, epochs=1, verbose=0, callbacks=[clock])
            return [b - a for a, b in zip(clock.ends[2:], clock.ends[3:], strict=False)]

        return block

    return make


def _session(width: int, batch: int, count: int) -> Callable[..., Callable[[], list[float]]]:
    def make(tf: object, keras: object) -> Callable[[], list[float]]:
        v1 = tf.compat.v1
        graph = tf.Graph()
        with graph.as_default():
            x = tf.random.normal((batch, width))
            w = [v1.get_variable(f"w{i}", (width, width), use_resource=True) for i in range(3)]
            hidden = x
            for one in w:
                hidden = tf.nn.relu(tf.matmul(hidden, one))
            train = v1.train.AdamOptimizer().minimize(tf.reduce_mean(hidden**2))
            session = v1.Session(graph=graph)
            session.run(v1.global_variables_initializer())
        return _timed(lambda: session.run(train), count)

    return make


def _inference(width: int, batch: int, count: int) -> Callable[..., Callable[[], list[float]]]:
    def make(tf: object, keras: object) -> Callable[[], list[float]]:
        model = _model(keras, width)
        call = tf.function(lambda x: model(x, training=False))
        x = tf.random.normal((batch, width))
        return _timed(lambda: call(x), count)

    return make


PROGRAMS = {
    "fit, 8 ms": _fit(1024, 128, 12),
    "fit, tiny": _fit(32, 8, 60),
    "traced loop, 8 ms": _loop(1024, 128, True, 12),
    "traced loop, tiny": _loop(32, 8, True, 60),
    "eager loop": _loop(128, 32, False, 10),
    "session, 8 ms": _session(1024, 128, 12),
    "inference call, 2 ms": _inference(1024, 64, 30),
}

if __name__ == "__main__":
    work(sys.argv[2]) if sys.argv[1:2] == ["--worker"] else main()
