"""What observing costs: the same steps bare, observed, and inside the trace window, interleaved in one process.

All three sides share one process, one model and one data set; the patches are taken out and put back between blocks of
steps, in shuffled order. The ratio of a round is that of the medians of its blocks; the interval is the sign test's.
Bars: at most 3 % outside the window, at most 10 % inside.
"""

from __future__ import annotations

import os
import random
import statistics
import sys
import tempfile
import time
from collections.abc import Callable

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "2")
ROUNDS = int(os.environ.get("ROUNDS", "15"))


def main() -> None:
    from flatout.measure.interval import paired_ratio
    from flatout.observe import child, private_names
    from flatout.observe.observer import Observer
    from flatout.observe.recorder import Recorder

    directory = tempfile.mkdtemp(prefix="flatout-overhead-")
    observer = Observer(Recorder(directory), {"trace": True})
    import keras
    import tensorflow as tf

    child.install(observer, "tensorflow", tf)
    child.install(observer, "keras", keras)
    observer.window.wants_ticks = False  # opened by hand below

    def bare() -> None:
        private_names.switch(False)
        observer.paused = True

    def observed() -> None:
        private_names.switch(True)
        observer.paused = False

    print(f"{'program':28s} {'step ms':>8s}   observed, outside the window      inside the window   ({ROUNDS} rounds)")
    worst = {"outside": 0.0, "inside": 0.0}
    only = sys.argv[1:]
    for name, make in PROGRAMS.items():
        if only and name not in only:
            continue
        block = make(tf, keras)
        bare()
        block()
        observed()
        block()
        times: dict[str, list[float]] = {"bare": [], "outside": [], "inside": []}
        for _ in range(ROUNDS):
            for side in random.sample(list(times), 3):
                (bare if side == "bare" else observed)()
                window = observer.window
                if side == "inside":
                    window._windows = 0
                    window.wants_ticks = True
                    stream = next(iter(observer.streams.values()))
                    window.open(stream)
                    window._steps = -(10**9)  # stays open for the whole block
                    window._opened = 1e18
                times[side].append(statistics.median(block()))
                if side == "inside":
                    window.on_close.clear()
                    window.close("measured")
                    window.wants_ticks = False
        row = f"{name:28s} {statistics.median(times['bare']) * 1e3:8.3f}   "
        for side in ("outside", "inside"):
            found = paired_ratio(times[side], times["bare"])
            worst[side] = max(worst[side], found.ratio)
            row += f"{found.ratio - 1:+7.2%} [{found.low - 1:+.2%}, {found.high - 1:+.2%}]   "
        print(row, flush=True)
    print(
        f"worst median: {worst['outside'] - 1:+.1%} outside (bar +3 %), {worst['inside'] - 1:+.1%} inside (bar +10 %)"
    )


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
    "fit, tiny": _fit(32, 8, 120),
    "traced loop, 8 ms": _loop(1024, 128, True, 30),
    "traced loop, tiny": _loop(32, 8, True, 200),
    "eager loop": _loop(128, 32, False, 12),
    "session, 8 ms": _session(1024, 128, 30),
    "inference call, 2 ms": _inference(1024, 64, 60),
}

if __name__ == "__main__":
    main()
