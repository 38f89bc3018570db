"""The levers of the input against the bare program: the same elements and losses, and less work where it is counted."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from levered import ran
from observed import write

from flatout.cures import in_order
from flatout.observe.settings import ObserveSettings
from flatout.trial.settings import ChildSettings

pytestmark = pytest.mark.slow

REPORT = """
    import collections, dataclasses, gc, json, os, sys
    import numpy as np
    import tensorflow as tf
    import keras

    results = {}
    calls = collections.Counter()

    def values(dataset, epochs=2):
        return [
            [[leaf.numpy().tolist() for leaf in tf.nest.flatten(element)] for element in dataset]
            for _ in range(epochs)
        ]

    def counted(name, value):
        calls[name] += 1
        return value

    def injections():
        from flatout.cures._injections import Injections
        return next((found for found in gc.get_objects() if isinstance(found, Injections)), None)

    def finish():
        levers = injections() if sys.argv[2] == "levers" else None
        answer = {"results": results, "calls": dict(calls)}  # a cache makes a second pass where it is asked
        answer["ready"] = levers.ready if levers else None  # it may add notes
        reports = levers.report() if levers else {}
        answer["levers"] = {name: dataclasses.asdict(report) for name, report in reports.items()}
        with open(sys.argv[1], "w") as out:
            json.dump(answer, out, default=lambda value: value.decode())
"""

OVERFLOW = """
    from flatout.pipeline import caching

    def texts(number):
        return tf.numpy_function(lambda value: counted("texts", b"x" * 1000), [number], tf.string), number

    source = tf.data.Dataset.range(10).map(texts)
    for name, limit in (("tight", 3500), ("wide", 10**6)):
        cached = caching.Cached(source, limit)
        numbers = [int(number) for _ in range(2) for _, number in cached.dataset]
        results[name] = [numbers, cached.overflown, cached.passes, calls.pop("texts")]
        results[f"{name} differs"] = cached.differs(60)
        calls.pop("texts")

    # one element of a pass of 160 is drawn anew in the second
    def augmented(number):
        return tf.numpy_function(lambda value: np.random.rand() if value == 100 else 0.0, [number], tf.float64)

    once = iter(range(160))
    for name, source in (
        ("drawn once", tf.data.Dataset.range(160).map(augmented)),
        ("turned", tf.data.Dataset.range(160).map(lambda n: tf.numpy_function(lambda v: next(turned), [n], np.int64))),
        ("read once", tf.data.Dataset.from_generator(lambda: once, output_signature=tf.TensorSpec((), tf.int64))),
    ):
        turned = iter([*range(160), *range(159, -1, -1)] * 3)
        cached = caching.Cached(source, 10**6)
        cached_elements = list(cached.dataset)
        results[f"{name} differs"] = cached.differs(60)
"""

PIPELINES = """
    keras.utils.set_random_seed(3)
    rows = np.arange(80, dtype="float32").reshape(40, 2)

    def python(name):
        def call(row):
            row = tf.numpy_function(lambda value: counted(name, value * 2), [row], tf.float32)
            row.set_shape([2])
            return row, tf.reduce_sum(row)
        return call

    # a shuffle that draws its own seed, then what the program draws afterwards
    shuffled = tf.data.Dataset.from_tensor_slices(rows).map(python("shuffled")).shuffle(40).batch(6)
    results["shuffled"] = values(shuffled, 3)
    results["length"] = len(shuffled)
    results["drawn"] = [float(tf.random.uniform([])), float(np.random.rand())]
    layer = keras.layers.Dense(2)
    layer.build((None, 2))
    results["weights"] = layer.kernel.numpy().tolist()

    # repeated without end, and of unknown length
    endless = tf.data.Dataset.from_tensor_slices(rows).map(python("endless")).filter(lambda row, total: total > 30)
    endless = endless.repeat().batch(5).take(20)
    results["endless"] = values(endless)

    # a generator
    def numbers():
        for number in range(7):
            yield counted("generator", number)

    generated = tf.data.Dataset.from_generator(numbers, output_signature=tf.TensorSpec((), tf.int64)).batch(3)
    results["generated"] = values(generated, 3)

    # maps before a batch: tuples, dictionaries, several in a row, a remainder, none
    mean = rows.mean(axis=0)
    scaled = tf.data.Dataset.from_tensor_slices((rows, np.arange(40))).shuffle(40)
    scaled = scaled.map(lambda row, label: (row - mean, label)).map(lambda row, label: (row * 2, label + 1)).batch(6)
    results["scaled"] = values(scaled)
    mixed = tf.data.Dataset.from_tensor_slices({"row": rows, "name": [f"n{i}" for i in range(40)]})
    mixed = mixed.map(lambda item: {"sum": tf.reduce_sum(item["row"]), "name": item["name"] + "!"})
    results["mixed"] = values(mixed.batch(7, drop_remainder=True))
    # in the batches that are compared the largest of all rows is that of each row, later it is not
    alike = tf.data.Dataset.from_tensor_slices(np.concatenate([np.tile(rows[:1] + 1, (24, 1)), rows + 1]))
    results["alike"] = values(alike.map(lambda row: row / tf.reduce_max(row)).batch(8))
    # rows of different length: the first map cannot work on a batch, the one behind it can
    uneven = tf.data.Dataset.range(1, 9).map(lambda n: tf.range(n)).map(lambda row: tf.reduce_sum(row))
    results["uneven"] = values(uneven.map(lambda total: total * 2).batch(3))
    ragged = tf.data.Dataset.range(1, 9).map(lambda n: tf.range(n)).padded_batch(4)
    results["ragged"] = values(ragged)

    # options that tie a pipeline down, a prefetch that does nothing
    options = tf.data.Options()
    options.autotune.enabled = False
    tied = tf.data.Dataset.range(10).map(lambda n: n * 2).batch(4).with_options(options)
    results["tied"] = values(tied)
    small = tf.data.Dataset.range(10).map(lambda n: n * 3).prefetch(1)
    results["small"] = values(small)

    # iterated inside a tf.function, and reduced
    def increased(number):
        return tf.numpy_function(lambda value: counted("inside", value + 1), [number], tf.int64)

    inside = tf.data.Dataset.range(6).map(increased)

    @tf.function
    def total():
        result = tf.constant(0, tf.int64)
        for number in inside:
            result += number
        return result

    results["inside"] = [int(total()) for _ in range(3)]
    results["reduced"] = int(inside.reduce(tf.constant(0, tf.int64), lambda a, b: a + b))

    # a new pipeline in each epoch, on a stage that stays
    base = tf.data.Dataset.range(5).map(lambda n: tf.numpy_function(lambda v: counted("base", v), [n], tf.int64))
    results["anew"] = [values(base.shuffle(5, seed=epoch).batch(2), 1) for epoch in range(3)]

    # only looked at, and left half-way: a cache must wait for neither
    looked = tf.data.Dataset.range(9).map(lambda n: tf.numpy_function(lambda v: v, [n], tf.int64))
    results["looked"] = int(next(iter(looked)))

    # zipped and concatenated branches
    left = tf.data.Dataset.range(4).map(lambda n: tf.numpy_function(lambda v: counted("left", v), [n], tf.int64))
    zipped = tf.data.Dataset.zip((left, tf.data.Dataset.range(4))).concatenate(tf.data.Dataset.zip((left, left)))
    results["zipped"] = values(zipped.shuffle(8, seed=1).batch(3), 3)

    model = keras.Sequential([keras.Input((2,)), keras.layers.Dense(1)])
    model.compile(keras.optimizers.SGD(1e-5), "mse")
    results["losses"] = model.fit(shuffled, epochs=3, verbose=0).history["loss"]
    results["arrays"] = model.fit(rows, rows.sum(axis=1), batch_size=8, epochs=2, verbose=0).history["loss"]
    results["evaluated"] = model.evaluate(shuffled.take(2), verbose=0)  # the shuffle is the one that fit has used
    results["again"] = model.fit(shuffled, epochs=1, verbose=0).history["loss"]

    import tf_keras

    tf_keras.utils.set_random_seed(3)
    legacy = tf_keras.Sequential([tf_keras.layers.Dense(1, input_shape=(2,))])
    legacy.compile(tf_keras.optimizers.SGD(1e-5), "mse")
    results["legacy"] = legacy.fit(shuffled, epochs=2, verbose=0).history["loss"]
    finish()
"""


def run(directory: Path, source: str, *levers: str) -> dict[str, Any]:
    directory.mkdir(exist_ok=True)
    program, answer = write(directory, source), directory / "answer.json"
    settings = ChildSettings(str(directory), ObserveSettings(trace=False), levers=in_order(levers)) if levers else None
    code, _, errors = ran(program, directory, settings, {}, str(answer), "levers" if levers else "bare")
    assert code == 0, errors
    failed = (
        [line for line in (directory / "facts.jsonl").read_text().splitlines() if "lever-failed" in line]
        if levers
        else []
    )
    assert not failed
    return dict(json.loads(answer.read_text()))


@pytest.fixture(scope="module")
def bare(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    return run(tmp_path_factory.mktemp("bare"), REPORT + OVERFLOW + PIPELINES)


@pytest.fixture(scope="module")
def cached(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    return run(tmp_path_factory.mktemp("cached"), REPORT + PIPELINES, "cache")


@pytest.fixture(scope="module")
def combined(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    levers = ("prefetch", "threadpool=4", "vectorize-map", "autotune")
    return run(tmp_path_factory.mktemp("combined"), REPORT + PIPELINES, *levers)


def notes(answer: dict[str, Any], lever: str) -> str:
    return "\n".join(answer["levers"][lever]["notes"])


def test_a_cache_beyond_its_limit_still_gives_every_element(bare):
    # four calls to fill it, and all ten in each pass for what it does not hold
    assert bare["results"]["tight"] == [[*range(10), *range(10)], True, 2, 4 + 10 + 10]
    assert bare["results"]["wide"] == [[*range(10), *range(10)], False, 2, 10]


def test_elements_of_a_second_pass_are_held_against_a_cache(bare):
    results = bare["results"]
    assert results["tight differs"] == results["wide differs"] == ""
    assert results["drawn once differs"] == "element 100 has other values"
    assert results["turned differs"] == "element 0 has other values"
    assert results["read once differs"] == "it ends after 0 elements"


def test_a_cache_of_python_that_draws_has_failed(others):
    assert "differs from the first" in others["levers"]["cache"]["failed"]


def same(answer: dict[str, Any], bare: dict[str, Any]) -> None:
    for name, found in answer["results"].items():
        assert found == bare["results"][name], name


def test_a_cache_changes_no_element_no_loss_and_no_random_number(bare, cached):
    same(cached, bare)


def test_a_cache_runs_the_programs_functions_once_per_element(bare, cached):
    assert bare["calls"]["generator"] == 21
    assert cached["calls"] == {"shuffled": 40, "endless": 40, "generator": 7, "inside": 6, "base": 5, "left": 12}
    assert cached["levers"]["cache"]["changes"] > 0


def test_prefetch_threads_tuning_and_whole_batches_change_nothing_that_the_program_sees(bare, combined):
    same(combined, bare)
    assert {name for name, report in combined["levers"].items() if not report["changes"]} == set()


def test_a_cache_is_ready_once_the_program_has_read_its_data(cached):
    assert cached["ready"] is True


def test_maps_work_on_whole_batches_only_where_that_was_compared(combined):
    changed = combined["levers"]["vectorize-map"]["changes"]
    # scaled, mixed, alike, uneven and tied; not what Python has made
    assert changed == 5, notes(combined, "vectorize-map")


OTHERS = """
    keras.utils.set_random_seed(1)

    # half-way again and again
    parts = tf.data.Dataset.range(9).map(lambda n: tf.numpy_function(lambda v: v, [n], tf.int64))
    for _ in range(6):
        for number in parts:
            if number == 3:
                break

    # Python that draws in each pass, filled: a cache would freeze it
    drawn = tf.data.Dataset.range(20).map(lambda n: tf.numpy_function(lambda v: np.random.rand(), [n], tf.float64))
    results["drawn"] = values(drawn, 2)

    # maps that are left serial
    def noisy(number):
        return tf.cast(number, tf.float32) + tf.random.uniform([])

    random = tf.data.Dataset.range(50).map(noisy).batch(10)
    results["random"] = values(random, 1)[0]
    results["whole parts"] = [int(part) for batch in results["random"] for part in batch[0]]
    single = tf.data.Dataset.range(5).map(lambda n: n + 1, num_parallel_calls=1)
    results["single"] = values(single, 1)

    # batches made by Python, for Keras
    import tf_keras

    def fitted(package, base, kind):
        class Rows(base):
            def __init__(self):
                super().__init__()
                self.order = list(range(6))

            def __len__(self):
                return 6

            def __getitem__(self, index):
                counted(f"{package.__name__} {kind}", None)
                rows = np.arange(8, dtype="float32").reshape(4, 2) / 8 + self.order[index] / 10
                if kind == "random":
                    rows += np.random.rand()
                return rows, rows.sum(axis=1)

            def on_epoch_end(self):
                if kind == "turned":
                    self.order.reverse()

        def made():
            model = package.Sequential([package.Input((2,)), package.layers.Dense(1, kernel_initializer="ones")])
            model.compile(package.optimizers.SGD(0.1), "mse")
            return model

        losses = made().fit(Rows(), epochs=5, verbose=0, shuffle=False).history["loss"]
        model, data, expected = made(), Rows(), []
        for _ in range(5):
            model.reset_metrics()
            for index in range(6):
                batch = Rows.__getitem__(data, index)
                loss = model.train_on_batch(*batch, **({} if package is keras else {"reset_metrics": False}))
            expected.append(float(loss))
            data.on_epoch_end()
        results[f"{package.__name__} {kind}"] = [losses, expected]

    for package, base in ((keras, keras.utils.PyDataset), (tf_keras, tf_keras.utils.Sequence)):
        for kind in ("same", "random", "turned"):
            fitted(package, base, kind)
    finish()
"""


@pytest.fixture(scope="module")
def others(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    return run(tmp_path_factory.mktemp("others"), REPORT + OTHERS, "cache", "parallel-map", "keep-batches")


def test_a_cache_that_nobody_fills_does_not_hold_up_a_trial(others):
    assert others["ready"] is True
    assert "never reads its data to the end" in notes(others, "cache")


def test_serial_maps_make_several_calls_and_keep_the_order(others):
    assert others["results"]["whole parts"] == [*range(50)]
    assert others["results"]["single"] == [[[1], [2], [3], [4], [5]]]
    said = notes(others, "parallel-map")
    assert "(random)" in said
    assert "(python)" in said
    assert others["levers"]["parallel-map"]["changes"] == 4


@pytest.mark.parametrize("package", ["keras", "tf_keras"])
def test_batches_that_python_makes_are_kept_where_they_are_the_same_in_each_epoch(others, package):
    by_hand = 30
    assert others["calls"][f"{package} same"] - by_hand < 15, "6, 3 to compare, and looks ahead"
    assert others["calls"][f"{package} random"] - by_hand >= 30
    assert others["calls"][f"{package} turned"] - by_hand >= 30
    for kind in ("same", "turned"):
        losses, expected = others["results"][f"{package} {kind}"]
        assert losses == pytest.approx(expected, rel=1e-4), kind
    assert "differ from one epoch to the next" in notes(others, "keep-batches")
    assert others["levers"]["keep-batches"]["changes"] > 20


FREE = """
    keras.utils.set_random_seed(1)
    rows = np.arange(80, dtype="float32").reshape(40, 2)
    known = tf.data.Dataset.from_tensor_slices(rows).batch(6)
    results["known"] = values(known, 1)[0]
    unknown = tf.data.Dataset.range(11).filter(lambda n: n > 3).map(
        lambda n: tf.numpy_function(lambda v: counted("unknown", v), [n], tf.int64)
    )
    results["unknown"] = values(unknown, 3)
    results["endless"] = [int(n) for n, _ in zip(tf.data.Dataset.range(3).repeat(), range(7))]
    steps = []

    class Steps(keras.callbacks.Callback):
        def on_epoch_end(self, epoch, logs=None):
            steps.append(int(self.model.optimizer.iterations.numpy()))

    model = keras.Sequential([keras.Input((2,)), keras.layers.Dense(1)])
    model.compile(keras.optimizers.SGD(1e-5), "mse")
    model.fit(rows, rows.sum(axis=1), batch_size=9, epochs=2, verbose=0, callbacks=[Steps()])
    model.fit(known.map(lambda row: (row, row[:, 0])), epochs=2, verbose=0, callbacks=[Steps()])
    results["steps"] = steps
    finish()
"""


def test_free_input_gives_the_first_batch_as_often_as_the_program_would_have_read(tmp_path):
    found = run(tmp_path, REPORT + FREE, "free-input")
    first = [[[float(2 * row), float(2 * row + 1)] for row in range(6)]]
    assert found["results"]["known"] == [first] * 7
    assert found["results"]["unknown"] == [[[4]] * 7] * 3
    assert found["calls"]["unknown"] == 7
    assert found["results"]["endless"] == [0] * 7
    assert found["results"]["steps"] == [5, 10, 17, 24]
