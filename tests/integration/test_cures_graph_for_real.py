"""Levers of the host, of computing and of the runtime, injected into small programs: what they change, and that the
numbers stay. Each process runs several programs, forked from one that has imported TensorFlow (`forked.py`).
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import forked
import pytest
from levered import outcome
from observed import write

pytestmark = pytest.mark.slow

# ── steps that run eagerly ───────────────────────────────────────────────────────────────────────────────────────

EAGER = """
import functools
import numpy as np
import tensorflow as tf
from tensorflow import keras
from told import tell

rng = np.random.default_rng(0)
data = [(tf.constant(rng.standard_normal((n, 6)), tf.float32), rng.standard_normal((n, 1))) for n in [8] * 6 + [5]]
results = {}


def network():
    keras.utils.set_random_seed(3)
    return keras.Sequential([keras.Input((6,)), keras.layers.Dense(8, activation="tanh"), keras.layers.Dense(1)])


def timed(function):
    @functools.wraps(function)
    def inner(*args, **kwargs):
        return function(*args, **kwargs)

    return inner


@timed
def plain(model, optimizer, x, y, *, scale=1.0):  # objects and numbers as arguments, numpy targets, a decorator
    with tf.GradientTape() as tape:
        loss = tf.reduce_mean(tf.square(model(x, training=True) - y)) * scale
    gradients = tape.gradient(loss, model.trainable_variables)
    optimizer.apply_gradients(zip(gradients, model.trainable_variables))
    return {"loss": float(loss), "rows": len(y), "none": None}


for name in ("first", "second"):
    model, optimizer = network(), keras.optimizers.Adam(0.01)
    rows = [plain(model, optimizer, x, y, scale=1.0 - 0.1 * i) for i, (x, y) in enumerate(data)]
    assert all(type(row["loss"]) is float and type(row["rows"]) is int and row["none"] is None for row in rows)
    results[name] = [row["loss"] for row in rows]


class Base:
    def rate(self):
        return 1.0


class Trainer(Base):
    def __init__(self):
        self.model, self.optimizer, self.weight = network(), keras.optimizers.SGD(0.1), 1.0

    def step(self, x, y):  # super(), and a Python number of the object that changes
        with tf.GradientTape() as tape:
            loss = tf.reduce_mean(tf.abs(self.model(x) - y)) * self.weight * super().rate()
        variables = self.model.trainable_variables
        self.optimizer.apply_gradients(zip(tape.gradient(loss, variables), variables))
        return loss


trainer = Trainer()
step = trainer.step  # bound before anything is exchanged
results["method"] = []
for weight in (1.0, 0.5):
    trainer.weight = weight
    results["method"] += [float(step(x, y)) for x, y in data]


def make_step(model, optimizer):
    def nested(iterator):  # takes its data itself, until there is none
        x, y = next(iterator)
        with tf.GradientTape() as tape:
            loss = tf.reduce_mean(tf.square(model(x) - y))
        optimizer.apply_gradients(zip(tape.gradient(loss, model.trainable_variables), model.trainable_variables))
        return loss

    return nested


def until_the_end(function, iterator):
    losses = []
    while True:
        try:
            losses.append(float(function(iterator)))
        except StopIteration:
            return losses


pairs = (np.stack([x[:5] for x, _ in data]), np.stack([y[:5] for _, y in data]).astype("float32"))
dataset = tf.data.Dataset.from_tensor_slices(pairs)
results["nested"] = until_the_end(make_step(network(), keras.optimizers.SGD(0.1)), iter(dataset))

history = []


def appends(model, optimizer, x, y):  # a trace would append once
    with tf.GradientTape() as tape:
        loss = tf.reduce_mean(tf.square(model(x) - y))
    optimizer.apply_gradients(zip(tape.gradient(loss, model.trainable_variables), model.trainable_variables))
    history.append(float(loss))


model, optimizer = network(), keras.optimizers.SGD(0.1)
for x, y in data:
    appends(model, optimizer, x, y)
results["appends"] = history


def pulls(model, optimizer, x, y):  # no graph has .numpy()
    with tf.GradientTape() as tape:
        loss = tf.reduce_mean(tf.square(model(x) - y))
    optimizer.apply_gradients(zip(tape.gradient(loss, model.trainable_variables), model.trainable_variables))
    return loss.numpy() if loss.numpy() > 0 else 0.0


model, optimizer = network(), keras.optimizers.SGD(0.1)
results["pulls"] = [float(pulls(model, optimizer, x, y)) for x, y in data]



class Holder:  # answers to whatever it is asked in its own way
    scale = 1.0

    @property
    def dtype(self):
        raise RuntimeError("not now")


def odd(model, optimizer, x, y, holder):  # nothing sorts the keys of what it gives back
    with tf.GradientTape() as tape:
        loss = tf.reduce_mean(tf.square(model(x) - y)) * holder.scale
    optimizer.apply_gradients(zip(tape.gradient(loss, model.trainable_variables), model.trainable_variables))
    return {1: loss, "rows": len(y)}


model, optimizer, holder = network(), keras.optimizers.SGD(0.1), Holder()
results["odd"] = [float(odd(model, optimizer, x, y, holder)[1]) for x, y in data]

# the module itself is the step
model, optimizer, loss_function = network(), keras.optimizers.Adam(0.01), keras.losses.MeanSquaredError()
results["module"] = []
for x, y in data:
    with tf.GradientTape() as tape:
        loss = loss_function(y, model(x, training=True))
    optimizer.apply_gradients(zip(tape.gradient(loss, model.trainable_variables), model.trainable_variables))
    results["module"].append(float(loss))
results["iterations"] = [int(optimizer.iterations)]


class Recurrent(keras.Model):
    def __init__(self):
        super().__init__()
        self.inner, self.head, self.scale = keras.layers.GRU(5, return_state=True), keras.layers.Dense(6), 1.0

    def call(self, values, state=None, give_state=False, training=None):
        last, new = self.inner(values, initial_state=state, training=training)
        out = self.head(last) * self.scale
        return (out, new) if give_state else out


keras.utils.set_random_seed(4)
model, optimizer = Recurrent(), keras.optimizers.Adam(0.01)
results["before and after training"] = []
for x, _ in data * 2:  # trained in one way, used in others
    with tf.GradientTape() as tape:
        loss = tf.reduce_mean(tf.square(model(x[:, None, :], training=True) - x))
    optimizer.apply_gradients(zip(tape.gradient(loss, model.trainable_variables), model.trainable_variables))
    results["before and after training"].append(float(loss))
state = None
for length in (1, 1, 1, 2, 3):
    answer, state = model(data[0][0][:, None, :] * np.ones((1, length, 1), "float32"), state=state, give_state=True)
    results["before and after training"].append(float(tf.reduce_sum(answer)))
for scale in (1.0, 1.0, 1.0, 3.0):
    model.scale = scale
    results["before and after training"].append(float(tf.reduce_sum(model(data[0][0][:, None, :], training=False))))
model = network()
results["another head"] = []
for turn in range(6):
    if turn == 3:
        model.pop()
        model.add(keras.layers.Dense(1, kernel_initializer="ones"))
    results["another head"].append(float(tf.reduce_sum(model(data[0][0]))))
tell(results)
"""


@pytest.fixture(scope="module")
def eager(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Path, dict[str, Any]]:
    directory = tmp_path_factory.mktemp("eager")
    program = write(directory, EAGER)
    return directory, program, outcome(directory, program)


def same(ours: dict[str, Any], bare: dict[str, Any], tolerance: float = 1e-5) -> None:
    assert set(ours["results"]) == set(bare["results"])
    for name, numbers in bare["results"].items():
        assert ours["results"][name] == pytest.approx(numbers, rel=tolerance, abs=tolerance), name


def test_eager_functions_are_traced_or_left_as_they_are(eager: tuple[Path, Path, dict[str, Any]]) -> None:
    directory, program, bare = eager
    names = ("plain", "step", "nested", "appends", "pulls", "odd")
    lines = {name: EAGER[: EAGER.index(f"def {name}(")].count("\n") + 1 for name in names}
    ours = outcome(directory, program, *(f"function={program}:{line}" for line in lines.values()))
    same(ours, bare)
    changed = {name: ours["changes"][f"function=program.py:{line}"] for name, line in lines.items()}
    assert changed["plain"] >= 8, "of 14 calls with two sets of objects"
    assert changed["step"] >= 8, "of 14 calls with two weights"
    assert changed["nested"] >= 4
    assert changed["appends"] == changed["pulls"] == changed["odd"] == 0
    assert ours["traces"]["plain"] < 10, "a number that changes is not traced for each value"
    assert any("appends" in note and "history.append" in note for note in ours["notes"])
    assert any("pulls" in note and "numpy" in note for note in ours["notes"])


def test_parts_of_an_eager_step_are_traced(eager: tuple[Path, Path, dict[str, Any]]) -> None:
    directory, program, bare = eager
    ours = outcome(directory, program, "function=parts")
    same(ours, bare)
    parts = {"calls of models are traced", "calls of losses are traced", "updates of optimizers are traced"}
    assert parts <= set(ours["notes"])
    assert ours["changes"]["function=parts"] > 40


# ── graphs that are not used well ────────────────────────────────────────────────────────────────────────────────

GRAPHS = """
import numpy as np
import tensorflow as tf
import tf_keras
from tensorflow import keras
from told import tell

tf.config.run_functions_eagerly(True)
tf.debugging.enable_check_numerics()
results = {"switched off": [int(tf.config.functions_run_eagerly())]}
tf.config.run_functions_eagerly(False)
x = np.random.default_rng(1).standard_normal((96, 6)).astype("float32")
y = x[:, :1]

for package in (keras, tf_keras):
    package.utils.set_random_seed(5)
    layers = [package.layers.Dense(8, activation="tanh"), package.layers.Dense(1)]
    model = package.Sequential([package.Input((6,)), *layers])
    model.compile(optimizer="sgd", loss="mse", run_eagerly=True)
    history = model.fit(x, y, batch_size=8, epochs=2, shuffle=False, verbose=0)
    results[package.__name__] = history.history["loss"]
    results[package.__name__ + " predicts"] = [float(model.predict(x[:n], verbose=0).sum()) for n in (1, 1, 3, 3, 40)]

weights = tf.Variable(tf.ones((6, 1)))


@tf.function
def scaled(batch, rate):
    return tf.reduce_sum(batch @ weights) * rate


@tf.function
def counted(batch, times):  # needs its number: a list of that many
    return tf.add_n([tf.reduce_sum(batch)] * times)


@tf.function
def known(batch):  # needs its shape
    return tf.reshape(batch, (batch.shape[0] * batch.shape[1],))[:3]


results["numbers"] = [float(scaled(tf.constant(x[:4]), 0.1 * i)) for i in range(8)]
results["shapes"] = [float(scaled(tf.constant(x[:n]), 1.0)) for n in range(2, 10)]
results["counted"] = [float(counted(tf.constant(x[:4]), n)) for n in range(1, 7)]
results["known"] = [float(tf.reduce_sum(known(tf.constant(x[:n])))) for n in range(2, 7)]


class Maker:
    factor = 2.0

    def __init__(self):
        self.offset = 0.0

    def _remade(self, batch):
        return tf.reduce_sum(batch @ weights) * self.factor + self.offset

    def call(self, batch):
        return tf.function(self._remade)(batch)


maker = Maker()
results["made"] = []
for call in range(9):
    maker.offset = float(call // 6)  # another number from the sixth call on: the old graph would not know
    results["made"].append(float(maker.call(tf.constant(x[:4]))))

tf.debugging.disable_check_numerics()  # XLA does not know its ops


@tf.function(jit_compile=True, reduce_retracing=True)
def compiled(batch):  # by XLA, for each shape anew
    return tf.reduce_sum(tf.tanh(batch @ weights))


results["by XLA"] = [int("XlaMustCompile" in str(compiled.get_concrete_function(x[:2]).function_def.attr))]
results["compiled"] = [float(compiled(tf.constant(x[:n]))) for n in range(2, 6)]
model = keras.Sequential([keras.Input((6,)), keras.layers.Dense(1, kernel_initializer="ones")])
model.compile(optimizer="sgd", loss="mse", jit_compile=True)
results["jit"] = model.fit(x, y, batch_size=32, epochs=2, shuffle=False, verbose=0).history["loss"]
tell(results)
"""


def test_graphs_are_used_again(tmp_path: Path) -> None:
    program = write(tmp_path, GRAPHS)
    bare = outcome(tmp_path, program)
    levers = (
        "no-run-eagerly",
        "no-debug",
        "relax-shapes",
        "reuse-functions",
        "steps-per-execution=4",
        "direct-predict",
        "no-xla",
    )
    ours = outcome(tmp_path, program, *levers)
    assert (bare["results"].pop("switched off"), ours["results"].pop("switched off")) == ([1], [0])
    assert (bare["results"].pop("by XLA"), ours["results"].pop("by XLA")) == ([1], [0])
    same(ours, bare)
    assert ours["changes"]["no-debug="] == 2
    assert ours["changes"]["no-run-eagerly="] >= 2, "Keras 3 and tf_keras"
    assert ours["changes"]["steps-per-execution=4"] == 3
    assert ours["changes"]["no-xla="] >= 2, "a function, a model, and what tf_keras has compiled for itself"
    assert ours["traces"]["scaled"] <= 6, "eight numbers and eight shapes"
    assert ours["traces"]["_remade"] <= 8, (
        "nine makings; the first two, and two after the number has changed, are traced"
    )
    assert any("counted needs its Python numbers" in note for note in ours["notes"])
    assert any("known needs its shapes" in note for note in ours["notes"])
    assert ours["changes"]["direct-predict="] == 5, "40 rows of two batches go together"
    assert ours["streams"]["predict"] >= 4


# ── computing ────────────────────────────────────────────────────────────────────────────────────────────────────

COMPUTING = """
import numpy as np
import tensorflow as tf
from tensorflow import keras
from told import tell

keras.backend.set_floatx("float64")
results = {"floatx": [keras.backend.floatx() == "float64"]}
keras.backend.set_floatx("float32")
x = np.random.default_rng(2).standard_normal((64, 6)).astype("float32")
y = x[:, :1]
seen = []


class Odd(keras.layers.Layer):  # no compiler for graphs takes strings
    def call(self, x):
        return x + 0.0 * tf.cast(tf.strings.length(tf.strings.as_string(x)), x.dtype)


def network(*layers):
    keras.utils.set_random_seed(7)
    model = keras.Sequential([keras.Input((6,)), *layers, keras.layers.Dense(8, "tanh"), keras.layers.Dense(1)])
    model.compile(optimizer=keras.optimizers.SGD(0.1), loss="mse", jit_compile=False)
    return model


model = network()
results["fit"] = model.fit(x, y, batch_size=16, epochs=2, shuffle=False, verbose=0).history["loss"]
results["iterations"] = [int(model.optimizer.iterations)]
results["policy"] = [model.layers[0].dtype_policy.name]
results["accumulates"] = [model.optimizer.gradient_accumulation_steps]
results["jit"] = [model.jit_compile]
odd = network(Odd())
odd.fit(x, y, batch_size=16, epochs=2, shuffle=False, verbose=0)
results["odd"] = [odd.jit_compile]

keras.backend.clear_session()
model, optimizer = network(), keras.optimizers.SGD(0.1)


@tf.function
def step(batch, target):
    with tf.GradientTape() as tape:
        loss = tf.reduce_mean(tf.square(model(batch, training=True) - target))
    optimizer.apply_gradients(zip(tape.gradient(loss, model.trainable_variables), model.trainable_variables))
    return loss


results["loop"] = []
for batch, target in tf.data.Dataset.from_tensor_slices((x, y)).batch(16).repeat(2):
    results["loop"].append(float(step(batch, target)))
results["rows"] = [int(batch.shape[0])]
results["cleared"] = [model.layers[0].dtype_policy.name]
tell(results)
"""


def test_computing(tmp_path: Path) -> None:
    program = write(tmp_path, COMPUTING)
    bare = outcome(tmp_path, program)["results"]
    assert (bare["floatx"], bare["policy"], bare["jit"], bare["rows"]) == ([True], ["float32"], [False], [16])

    told = outcome(tmp_path, program, "xla")
    ours = told["results"]
    assert ours["fit"] == pytest.approx(bare["fit"], rel=1e-4)
    assert ours["loop"] == pytest.approx(bare["loop"], rel=1e-4)
    assert (ours["jit"], ours["odd"]) == ([True], [False])
    assert "step is compiled by XLA" in told["notes"]
    assert any("XLA does not compile the step" in note for note in told["notes"])

    told = outcome(tmp_path, program, "bf16", "batch-size=2", "threads=1", "onednn", "allocator=glibc-keep")
    ours = told["results"]
    assert (ours["policy"], ours["cleared"]) == (["mixed_bfloat16"], ["mixed_bfloat16"])
    assert (ours["rows"], ours["iterations"]) == ([32], [bare["iterations"][0] // 2])
    assert ours["fit"][1] < ours["fit"][0] != bare["fit"][0]
    assert all(changes >= 1 for changes in told["changes"].values()), told["changes"]

    told = outcome(tmp_path, program, "accumulate=4", "float32")
    ours = told["results"]
    assert ours["floatx"] == [False]
    assert (ours["accumulates"], ours["rows"]) == ([4], [4])
    assert ours["iterations"] == bare["iterations"], "as many updates, of as many samples"
    assert ours["fit"] == pytest.approx(bare["fit"], rel=0.05), "the same updates, but the loss is that of each part"

    told = outcome(tmp_path, program, "free-compute")
    # Eight steps each of two fits and a loop. Three are computed first; the loop needs one more to show that it trains.
    assert told["changes"]["free-compute="] == 5 + 5 + 4
    assert told["streams"]["fit"] == 16
    assert told["results"]["iterations"] == [3]
    assert len(set(told["results"]["loop"])) == 4


# ── edits that change how something is computed ──────────────────────────────────────────────────────────────────

WHOLE = """
import json, runpy, sys
import numpy as np
import tensorflow as tf

folder = sys.argv[1]
a, b = (tf.constant(np.random.default_rng(n).standard_normal((64, 8)), tf.float32) for n in (0, 1))
results = {}
for kind in ("in", "out"):
    step = runpy.run_path(f"{folder}/summed.{kind}.py")["step"]
    loss = runpy.run_path(f"{folder}/pairs.{kind}.py")["Task"]().loss
    pairs = tf.function(loss) if kind == "out" else loss  # the other goes over samples as eager tensors do
    graphs = [function.get_concrete_function(a, b).graph for function in (step, pairs) if function is not loss]
    kinds = [op.type for graph in graphs for op in graph.get_operations()]
    results[kind] = {
        "added": float(step(a, b)), "pairs": float(pairs(a, b)), "loops": sum("While" in name for name in kinds),
    }

# a batch in place of its samples
from tensorflow import keras
folder = sys.argv[2]
images, labels = tf.random.stateless_normal((8, 6), (1, 2)), tf.random.stateless_normal((8, 2), (3, 4))
keras.utils.set_random_seed(7)
model = keras.Sequential([keras.Input((6,)), keras.layers.Dense(5, "tanh"), keras.layers.Dense(2)])
start = model.get_weights()


def flat(value):
    return [float(number) for part in tf.nest.flatten(value) for number in np.ravel(part)]


def told(name, body):
    module = runpy.run_path(f"{folder}/{name}.{kind}.py")
    model.set_weights(start)
    results[kind][name] = flat([body(module), *model.get_weights()])


def sgd():
    return keras.optimizers.SGD(0.1)


for kind in ("in", "out"):
    told("gradients", lambda module: module["Learner"](model, sgd()).learn(images, labels))
    told("counted", lambda module: module["step"](model, keras.losses.MeanSquaredError(), sgd(), images, labels))
    told("summed", lambda module: module["totals"](model, images, labels))
    told("mapped", lambda module: module["gathered"](model, images, labels))
    told("answers", lambda module: module["answers"](model, images.numpy()))
print(json.dumps(results))
"""


def test_a_loop_over_samples_gives_the_same_as_the_whole(tmp_path: Path) -> None:
    edits = Path(__file__).parent.parent / "fixtures" / "edits"
    folders = [str(edits / name) for name in ("vectorize-loop", "whole-batch")]
    code, said, errors = forked.run(write(tmp_path, WHOLE), *folders, directory=tmp_path)
    assert code == 0, errors[-3000:]
    told = json.loads(said.splitlines()[-1])
    assert told["in"]["loops"] == 1
    assert told["out"]["loops"] == 0, "what falls back to a loop is no gain"
    for name in set(told["in"]) - {"loops"}:
        assert told["out"][name] == pytest.approx(told["in"][name], rel=1e-4, abs=1e-5)
