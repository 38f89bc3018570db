"""What programs compute, written down in children: runs alike are exact, right changes pass, wrong ones fail.

Processes run the same small programs, none of which seeds anything: twice as they are, and once with a right and a
wrong change to each. The first is started anew, the others are forked from one that has imported TensorFlow, as trials.
"""

from __future__ import annotations

import textwrap
from pathlib import Path

import forked
import pytest
from observed import bare, environment, write

from flatout.measure.parity import Numbers, compare

START = """
import os, sys
from flatout.observe import installing, observer, recorder, settings
from flatout.trial.child import perturbed, pinned, seeds
from flatout.trial.child.values import Values, hooks

OUT = sys.argv[1]
watch = observer.Observer(recorder.Recorder(OUT), settings.ObserveSettings(trace=False, sample=False))
variant = {"pinned": [pinned.PROBE], "shaken": [perturbed.probe_of(None)]}.get(sys.argv[4], [])
values = Values(OUT)
watch.more_probes += [seeds.PROBE, hooks.probe_of(values), *variant]
seeds.install(0)
if sys.argv[4] == "pinned": pinned.install(0)
sys.meta_path.insert(0, installing.ProbeInstaller(watch))
installing.install_in_imported_packages(watch)
best, steps = 0, 0

def at_step(stream, end, n):
    global best, steps
    if stream.rank < best: return
    if stream.rank > best: best, steps = stream.rank, 0
    steps += n
    if values.wanted: values.tick(updates() or steps)

def updates():  # as the gate counts
    counts = [getattr(one, "iterations", None) for one in watch.trial.optimizers.values()]
    return sum(int(count.numpy()) for count in counts) if all(hasattr(count, "numpy") for count in counts) else 0

watch.trial.at_step = at_step
"""

PROGRAMS = """
import random
import numpy as np, tensorflow as tf, keras, tf_keras
v1 = tf.compat.v1

def net(layers, regularizer=None):
    return [layers.Dense(32, "relu", kernel_regularizer=regularizer), layers.Dropout(0.2), layers.Dense(3)]

def points(count=640):
    rng = np.random.default_rng()
    x = rng.normal(size=(count, 8)).astype("float32")
    return x, (x.sum(1) > 0).astype("int32") + (x[:, 0] > 1)

def fresh(change): fit(change)

def fit(change):
    x, y = points()
    model = keras.Sequential([keras.layers.Input((8,)), *net(keras.layers)])
    rate = 2e-3 if change == "wrong" else 1e-3
    model.compile(keras.optimizers.Adam(rate), keras.losses.SparseCategoricalCrossentropy(from_logits=True),
                  steps_per_execution=4 if change == "right" else 1)
    model.fit(x, y, batch_size=32, epochs=1, verbose=0)

def uneven(change, of=keras):  # 7 batches an epoch, 4 of them a call: the second call has 3
    x, y = points(100)
    model = of.Sequential([of.layers.Input((8,)), of.layers.Dense(32, "relu"), of.layers.Dense(3)])
    loss = of.losses.SparseCategoricalCrossentropy(from_logits=True)
    rate = 0.1 if change == "wrong" else 0.05
    model.compile(of.optimizers.SGD(rate), loss, steps_per_execution=4 if change == "right" else 1)
    model.fit(x, y, batch_size=16, epochs=3, shuffle=False, verbose=0)

def uneven_legacy(change): uneven(change, tf_keras)

def loop(change, function=None, drop=0, same=False, returns=True):
    x, y = points()
    model = keras.Sequential([keras.layers.Input((8,)), keras.layers.Dense(32, "relu"), keras.layers.Dense(3)])
    optimizer = keras.optimizers.SGD(0.1, momentum=0.9)
    optimizer.build(model.trainable_variables)
    measure = keras.losses.SparseCategoricalCrossentropy(from_logits=True)

    def train(a, b):
        with tf.GradientTape() as tape:
            loss = measure(b, model(a, training=True))
        gradients = tape.gradient(loss, model.trainable_variables)
        optimizer.apply_gradients(zip(gradients, model.trainable_variables))
        return loss if returns else None

    if function is not None: train = tf.function(train, **function)
    dataset = tf.data.Dataset.from_tensor_slices((x, y)).shuffle(640).batch(32)
    for a, b in dataset.take(1).repeat(20) if same else dataset:
        train(a[drop:], b[drop:])

def eager(change): loop(change, function={} if change == "right" else None, same=change == "wrong")
def traced(change): loop(change, function={"jit_compile": change == "right"}, drop=1 if change == "wrong" else 0)
def hidden(change): loop(change, function={}, drop=2 if change == "wrong" else 0, returns=False)

def sensitive(change):  # gradients that are nearly zero, and an optimizer that divides by them
    x = np.random.default_rng().random((64, 8, 8, 8), dtype="float32")
    here = inner = keras.Input((8, 8, 8))
    for _ in range(3):
        here = keras.layers.Conv2D(8, 3, padding="same", use_bias=False)(here)
        here = keras.layers.ReLU()(keras.layers.BatchNormalization()(here))
    model = keras.Model(inner, keras.layers.Dense(4)(keras.layers.GlobalAveragePooling2D()(here)))
    loss = keras.losses.SparseCategoricalCrossentropy(from_logits=True)
    rate = 2e-3 if change == "wrong" else 1e-3
    model.compile(keras.optimizers.Adam(rate), loss, jit_compile=change == "right")
    model.fit(x, np.random.default_rng().integers(0, 4, 64), batch_size=8, shuffle=False, verbose=0)

def predict(change):
    x, _ = points()
    model = keras.Sequential([keras.layers.Input((8,)), *net(keras.layers)])
    if change == "wrong": model.layers[0].kernel.assign(model.layers[0].kernel * 1.1)
    if change == "plain": return model.predict(x, batch_size=32, verbose=0)
    for start in range(0, 640, 64): model.predict_on_batch(x[start : start + 64])

def call(change):
    x, _ = points()
    x = x + tf.random.Generator.from_non_deterministic_state().normal(x.shape).numpy()
    model = keras.Sequential([keras.layers.Input((8,)), *net(keras.layers)])
    for start in range(0, 640, 32): model(x[start : start + 32] * (1.1 if change == "wrong" else 1))

def noisy(change, of=keras, regularization=None):
    x, y = points()
    layers = of.layers
    model = of.Sequential([layers.Input((8,)), layers.GaussianNoise(1.0), layers.Dense(32, "relu"), layers.Dropout(0.5),
                           layers.GaussianDropout(0.5), layers.AlphaDropout(0.4 if change == "wrong" else 0.5),
                           layers.Dense(3)])
    model.compile(of.optimizers.Adam(1e-3), of.losses.SparseCategoricalCrossentropy(from_logits=True),
                  jit_compile=change == "right")
    model.fit(x, y, batch_size=32, epochs=1, verbose=0)

def noisy_legacy(change): noisy(change, tf_keras)

def legacy(change):
    x, y = points()
    regularizer = None if change == "wrong" else tf_keras.regularizers.L2(1e-2)
    model = tf_keras.Sequential([tf_keras.layers.Input((8,)), *net(tf_keras.layers, regularizer)])
    model.compile(tf_keras.optimizers.Adam(1e-3), tf_keras.losses.SparseCategoricalCrossentropy(from_logits=True))
    model.fit(x, y, batch_size=32, epochs=1, verbose=0)

def session(change, fetch=True, resource=True):
    x, y = points()
    with tf.Graph().as_default(), v1.Session() as sess:
        a, b = v1.placeholder(tf.float32, (None, 8)), v1.placeholder(tf.int32, (None,))
        w = v1.get_variable("w", (8, 3), use_resource=resource)
        loss = tf.reduce_mean(tf.nn.sparse_softmax_cross_entropy_with_logits(labels=b, logits=a @ w))
        loss = loss * (2 if change == "wrong" else 1)
        step = v1.train.AdamOptimizer(1e-2).minimize(loss)
        sess.run(v1.global_variables_initializer())
        for start in range(0, 640, 32):
            feed = {a: x[start : start + 32], b: y[start : start + 32]}
            sess.run([step, loss] if fetch else step, feed)

def blind_session(change, resource=True):
    session("", fetch=False, resource=resource) if change != "wrong" else wrong_blind_session(resource)
def blind_reference_session(change): blind_session(change, resource=False)
def wrong_blind_session(resource):
    real, v1.train.AdamOptimizer = v1.train.AdamOptimizer, lambda rate: v1.train.GradientDescentOptimizer(rate)
    try: session("", fetch=False, resource=resource)
    finally: v1.train.AdamOptimizer = real

for name in sys.argv[3].split(","):
    for change in sys.argv[2].split(","):
        if name != "fresh":  # that one starts from what `seeds` has set
            random.seed(0); np.random.seed(0); tf.random.set_seed(0); seeds._requests.clear()
            keras.utils.clear_session()
        best = steps = watch._follower._best = 0
        watch.trial.optimizers.clear()
        os.makedirs(f"{OUT}/{name}-{change}")
        values.begin(f"{OUT}/{name}-{change}")
        globals()[name](change)
        values.write()
"""

NAMES = ("fit", "uneven", "eager", "traced", "predict", "legacy", "session")
OTHERS = ("uneven_legacy", "hidden", "call", "blind_session", "blind_reference_session")
"""Run by `scripts/test --all` only."""
NOISY = ("noisy",)
OTHER_NOISY = ("noisy_legacy",)
TRAINING = ("sensitive", "fit", "traced")
OTHER_TRAINING = ("eager", "hidden", "legacy")


def ran(home: Path, names: tuple[str, ...], noisy: tuple[str, ...], training: tuple[str, ...]) -> Path:
    program = write(home, textwrap.dedent(START) + PROGRAMS)
    names = tuple(dict.fromkeys((*training, *names)))
    for run, changes, wanted in (
        ("one", "plain", names),
        ("first", "plain", ("fresh",)),
        ("two", "plain", ("fresh", *names)),
        ("changed", "right,wrong", names),
        ("pinned", "plain,right,wrong", noisy),
        ("shaken", "plain", training),
    ):
        (home / run).mkdir()
        words = [str(home / run), changes, ",".join(wanted), run]
        if run == "one":
            done = bare(home, program, *words, env=environment(PYTHONHASHSEED="0"))
            code, errors = done.returncode, done.stderr
        else:
            code, _, errors = forked.run(program, *words, directory=home)
        assert code == 0, errors[-4000:]
    return home


@pytest.fixture(scope="module")
def usual(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return ran(tmp_path_factory.mktemp("usual"), NAMES, NOISY, TRAINING)


@pytest.fixture(scope="module")
def others(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return ran(tmp_path_factory.mktemp("others"), OTHERS, OTHER_NOISY, OTHER_TRAINING)


@pytest.fixture
def runs(name: str, group: str, request: pytest.FixtureRequest) -> Path:
    found: Path = request.getfixturevalue(group)
    return found


def programs(usual: tuple[str, ...], others: tuple[str, ...]) -> pytest.MarkDecorator:
    rows = [pytest.param(name, "usual", id=name) for name in usual]
    rows += [pytest.param(name, "others", id=name, marks=pytest.mark.exhaustive) for name in others]
    return pytest.mark.parametrize(("name", "group"), rows)


def numbers(runs: Path, run: str, name: str) -> Numbers:
    return Numbers.load(runs / run / name / "numbers.npz")


@pytest.mark.slow
@programs(("fresh", *NAMES), OTHERS)
def test_two_runs_of_an_unseeded_program_are_exact(runs: Path, name: str, group: str) -> None:
    one = "first" if name == "fresh" else "one"  # after the same import: it begins with what that has drawn
    found = compare(numbers(runs, one, f"{name}-plain"), numbers(runs, "two", f"{name}-plain"))
    assert found.verdict == "exact", found


@pytest.mark.slow
@programs(NAMES, OTHERS)
def test_a_right_change_passes(runs: Path, name: str, group: str) -> None:
    one, two = numbers(runs, "one", f"{name}-plain"), numbers(runs, "two", f"{name}-plain")
    found = compare(one, numbers(runs, "changed", f"{name}-right"), two)
    assert found.verdict in ("exact", "reassociated"), found


@pytest.mark.slow
@programs(NAMES, OTHERS)
def test_a_wrong_change_fails(runs: Path, name: str, group: str) -> None:
    one, two = numbers(runs, "one", f"{name}-plain"), numbers(runs, "two", f"{name}-plain")
    found = compare(one, numbers(runs, "changed", f"{name}-wrong"), two, promise="reassociated")
    assert found.verdict == "failed", found


@pytest.mark.slow
@programs(NOISY, OTHER_NOISY)
def test_dropout_and_noise_are_the_same_in_pinned_runs(runs: Path, name: str, group: str) -> None:
    """XLA draws other masks: with them the numbers would have nothing in common."""
    plain, right, wrong = (numbers(runs, "pinned", f"{name}-{change}") for change in ("plain", "right", "wrong"))
    found = compare(plain, right)
    assert found.verdict in ("exact", "reassociated"), found
    found = compare(plain, wrong, promise="reassociated")
    assert found.verdict == "failed", found


@pytest.mark.slow
@programs(TRAINING, OTHER_TRAINING)
def test_weights_that_begin_some_roundings_apart_tell_what_rounding_does(runs: Path, name: str, group: str) -> None:
    one, two, shaken = (numbers(runs, run, f"{name}-plain") for run in ("one", "two", "shaken"))
    assert compare(one, shaken).verdict != "exact", "nothing was shaken"
    found = compare(one, numbers(runs, "changed", f"{name}-right"), two, shaken)
    assert found.verdict in ("exact", "reassociated"), found
    found = compare(one, numbers(runs, "changed", f"{name}-wrong"), two, shaken, promise="reassociated")
    assert found.verdict == "failed", found
