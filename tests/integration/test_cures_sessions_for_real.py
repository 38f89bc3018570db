"""Sessions of TensorFlow 1 with `prepared-runs` and `caller-thread`: every kind of run gives what it gave without them.

One program makes all the runs. It is run as it is, with the levers, and as the patch leaves it.
"""

from __future__ import annotations

import ast
from pathlib import Path
from typing import Any

import pytest
from levered import outcome

from flatout.cures.caller_thread.edit import edit as in_the_caller
from flatout.cures.prepared_runs.edit import edit as prepared
from flatout.model.case import Case, Program
from flatout.model.evidence.steps import StepStack

pytestmark = pytest.mark.slow

PROGRAM = """
import collections
import numpy as np
import tensorflow.compat.v1 as tf
from told import tell

tf.disable_eager_execution()
tf.set_random_seed(3)
x = tf.placeholder(tf.float32, [None, 3], name="x")
scale = tf.placeholder(tf.float32, [], name="scale")
flag = tf.placeholder(tf.bool)
count = tf.placeholder(tf.uint8)
text = tf.placeholder(tf.string)
free = tf.placeholder(tf.float32)
weights = tf.get_variable("weights", [3, 2], initializer=tf.constant_initializer(0.5))
made = tf.matmul(x, weights) * scale
loss = tf.reduce_mean(made)
train = tf.train.AdamOptimizer(0.1).minimize(loss)
noise = tf.random.uniform([2])
sparse = tf.sparse_placeholder(tf.float32)
dense = tf.sparse.to_dense(sparse)
chosen = tf.cond(flag, lambda: free + 1, lambda: free - 1)
joined = tf.strings.join([text, "!"])
Pair = collections.namedtuple("Pair", "a b")
rows = np.arange(6.0).reshape(2, 3)
fed = {x: rows, scale: 2.0}
results = []


def show(value):
    if isinstance(value, dict):
        return {key: show(item) for key, item in value.items()}
    if isinstance(value, (list, tuple)):
        return [type(value).__name__, *map(show, value)]
    return f"{type(value).__name__} {getattr(value, 'dtype', '')} {np.asarray(value).tolist()!r}"


def keep(run):
    try:
        results.append(show(run()))
    except Exception as error:
        results.append(f"{type(error).__name__}: {str(error)[:60]}")


def all_kinds(sess):
    keep(lambda: sess.run(train, fed))
    keep(lambda: sess.run([train, loss], feed_dict={x: rows.astype("float32"), scale: np.float64(3)}))
    keep(lambda: sess.run((loss, made, weights), {x: rows.tolist(), scale: 1}))
    keep(lambda: sess.run({"a": loss, "b": [made, (train,)]}, fed))
    keep(lambda: sess.run(Pair(loss, made), fed))
    keep(lambda: sess.run([loss, loss], fed))
    keep(lambda: sess.run([loss.name, made.name], fed))
    keep(lambda: sess.run(loss, {"x:0": rows, "scale:0": 0.5}))
    keep(lambda: sess.run([x, loss], fed))
    keep(lambda: sess.run(noise))
    keep(lambda: sess.run([]))
    keep(lambda: sess.run(dense, {sparse: tf.SparseTensorValue([[0, 1]], [2.0], [2, 2])}))
    keep(lambda: sess.run(dense, {sparse: ([[1, 1]], [2.0], [2, 2])}))
    keep(lambda: sess.run(chosen, {flag: True, free: [1.0, 2.0]}))
    keep(lambda: sess.run(chosen, {flag: np.bool_(False), free: np.ones((2, 2))}))
    keep(lambda: sess.run(joined, {text: "a"}))
    keep(lambda: sess.run(joined, {text: ["a", "b"]}))
    keep(lambda: sess.run(count, {count: 300}))
    keep(lambda: sess.run(count + 0, {count: 300}))
    keep(lambda: sess.run(free + 0, {free: 16777217}))
    keep(lambda: sess.run(loss, {x: rows[0], scale: 1.0}))
    keep(lambda: sess.run(loss, {x: rows}))
    keep(lambda: sess.run(loss, {x: [[1.0], [2.0, 3.0]], scale: 1.0}))
    keep(lambda: sess.run(loss, {x: tf.ones([2, 3]), scale: 1.0}))
    keep(lambda: sess.run(made, {x: rows, scale: 1.0, loss: 3.0}))
    keep(lambda: sess.run(None))
    keep(lambda: sess.run(3))
    keep(lambda: sess.run("nothing:0"))
    keep(lambda: loss.eval(fed, session=sess))
    keep(lambda: train.run(fed, session=sess))
    keep(lambda: sess.make_callable([loss, made], [x, scale])(rows, 4.0))
    metadata = tf.RunMetadata()
    options = tf.RunOptions(trace_level=tf.RunOptions.FULL_TRACE)
    keep(lambda: sess.run([loss], fed, options=options, run_metadata=metadata))
    results.append(len(metadata.step_stats.dev_stats) > 0)
    fetches = {"loss": loss}
    keep(lambda: sess.run(fetches, fed))
    fetches["made"] = made
    keep(lambda: sess.run(fetches, fed))
    keep(lambda: sess.run({"loss": loss}, fed))


with tf.Session() as sess:
    sess.run(tf.global_variables_initializer())
    for _ in range(3):
        all_kinds(sess)
    handle = sess.partial_run_setup([loss, made], [x, scale])
    keep(lambda: sess.partial_run(handle, loss, fed))
    saved = tf.get_session_handle(loss)
    keep(lambda: type(sess.run(saved, fed)).__name__)
    for turn in range(4):  # the graph grows
        keep(lambda: sess.run([loss * turn, loss], fed))
keep(lambda: sess.run(loss, fed))
second = tf.Session()
keep(lambda: second.run(loss, fed))
tell(results)
"""


def patched(directory: Path, source: str, path: Path) -> str:
    step = StepStack("session")
    case = Case(kind="run", program=Program(("python", str(path)), str(directory)), evidence=(step,))
    for edit in (in_the_caller, prepared):
        changed = edit(source, str(path), case, "")
        assert changed is not None
        source = changed
    ast.parse(source)
    return source


def test_every_kind_of_run_gives_the_same(tmp_path: Path) -> None:
    original, edited = tmp_path / "original.py", tmp_path / "edited.py"
    original.write_text(PROGRAM)
    edited.write_text(patched(tmp_path, PROGRAM, original))
    before = outcome(tmp_path, original)
    levered = outcome(tmp_path, original, "prepared-runs", "caller-thread")
    assert len(before["results"]) > 100
    assert levered["changes"]["prepared-runs="] >= 20
    assert levered["changes"]["caller-thread="] == 2
    assert levered["results"] == before["results"]
    assert "session" in levered["streams"]  # the probes still see the runs
    after: dict[str, Any] = outcome(tmp_path, edited)
    assert after["results"] == before["results"]
