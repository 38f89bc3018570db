"""What observing costs: the same steps bare, observed, and inside the trace window, interleaved.

Four processes live side by side and hold the same model: two bare ones, one observed without a trace, one observed with
a trace window over each block, no longer than the window of a real run. One runs at a time, a block of steps by token,
in shuffled order. The ratio of a round is that of the medians of its blocks; the interval is the sign test's. Two
processes of the same program differ by some percent from start to end, so the processes are started anew several times.
The second bare process shows what the method itself cannot tell apart.
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

ROUNDS = int(os.environ.get("ROUNDS", "10"))
GENERATIONS = int(os.environ.get("GENERATIONS", "4"))
"""How often all processes are started anew; each generation runs all rounds."""
SIDES = {
    "bare": None,
    "bare again": None,
    "outside": {"trace": False},
    "inside": {"trace": True, "window_start": 10**9, "window_steps": 10**9, "window_seconds": 1e9},
}


def main() -> None:
    from flatout.measure.interval import paired_ratio

    print(f"medians of {GENERATIONS} × {ROUNDS} rounds, against the bare program")
    print(f"{'program':24s} {'step ms':>8s}  {'bare again':26s}{'outside the window':26s}inside")
    worst = {"outside": -1.0, "inside": -1.0}
    for name in sys.argv[1:] or PROGRAMS:
        times: dict[str, list[float]] = {side: [] for side in SIDES}
        for _ in range(GENERATIONS):
            measure(name, times)
        row = f"{name:24s} {statistics.median(times['bare']) * 1e3:8.3f}  "
        for side in ("bare again", "outside", "inside"):
            found = paired_ratio(times[side], times["bare"])
            row += f"{f'{found.ratio - 1:+.1%} [{found.low - 1:+.1%}, {found.high - 1:+.1%}]':26s}"
            if side in worst:
                worst[side] = max(worst[side], found.ratio - 1)
        print(row, flush=True)
    print(f"worst median: {worst['outside']:+.1%} outside (bar +3 %), {worst['inside']:+.1%} inside (bar +10 %)")


def measure(name: str, times: dict[str, list[float]]) -> None:
    """One generation: a process for each side, and its rounds."""
    with tempfile.TemporaryDirectory() as directory:
        workers = {side: start(name, side, directory) for side in SIDES}
        for _ in range(ROUNDS):
            for side in random.sample(list(SIDES), len(SIDES)):
                times[side].append(block_of(workers[side]))
        for worker in workers.values():
            worker.kill()
            worker.wait()


def start(name: str, side: str, directory: str) -> subprocess.Popen[str]:
    from flatout.observe.launcher import environment_for

    environment = {**os.environ, "TF_CPP_MIN_LOG_LEVEL": "3"}
    settings = SIDES[side]
    if settings is not None:
        place = os.path.join(directory, side)
        os.mkdir(place)
        environment = environment_for({"directory": place, **settings}, environment)
    command = [sys.executable, __file__, "--worker", name]
    worker = subprocess.Popen(
        command, env=environment, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True
    )
    for _ in range(2):  # traces, allocations
        block_of(worker)
    return worker


def block_of(worker: subprocess.Popen[str]) -> float:
    assert worker.stdin is not None
    assert worker.stdout is not None
    worker.stdin.write("\n")
    worker.stdin.flush()
    for line in worker.stdout:
        if line.startswith("median "):
            return float(json.loads(line.split()[1]))
    raise RuntimeError("a worker has died")


def work(name: str) -> None:
    import keras
    import tensorflow as tf

    block = PROGRAMS[name](tf, keras)
    for _ in sys.stdin:
        with window_over_block():
            times = block()
        print("median", statistics.median(times), flush=True)


@contextlib.contextmanager
def window_over_block() -> Iterator[None]:
    """In the process that traces, a window of its own for each block: a trace that never ends would cost more."""
    observer = next((finder.observer for finder in sys.meta_path if hasattr(finder, "observer")), None)
    if observer is None or not observer.settings["trace"] or not observer.streams:
        yield
        return
    window, streams = observer.window, observer.streams.values()
    window.opened_times, window.wants_ticks = 0, True
    window.open(max(streams, key=lambda stream: (stream.priority, stream.last)))
    yield
    window.close("the block has ended")


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
    "fit, 8 ms": _fit(1024, 128, 30),
    "fit, tiny": _fit(32, 8, 300),
    "traced loop, 8 ms": _loop(1024, 128, True, 30),
    "traced loop, tiny": _loop(32, 8, True, 300),
    "eager loop": _loop(128, 32, False, 12),
    "session, 8 ms": _session(1024, 128, 30),
    "inference call, 2 ms": _inference(1024, 64, 60),
}

if __name__ == "__main__":
    work(sys.argv[2]) if sys.argv[1:2] == ["--worker"] else main()
