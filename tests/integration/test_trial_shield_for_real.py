"""The shield with TensorFlow: what the program saves can be loaded again, and the user's directory stays as it was."""

from __future__ import annotations

import os
import subprocess
import sys
import textwrap
from dataclasses import replace
from pathlib import Path

import pytest
from observed import environment

from flatout.process.fence.landlock import FIRST
from flatout.process.fence.means import NOTHING, Fence, decide, means

START = """
import sys
from flatout.trial.child import shield
from flatout.observe import observer, recorder, settings
watch = observer.Observer(recorder.Recorder({trial!r}), settings.ObserveSettings())
shield.install({trial!r}, held={held}, moves={moves})
import tensorflow
shield.on_tensorflow(watch, tensorflow)
"""

TF2 = """
    import glob, os, shutil
    import numpy as np, tensorflow as tf, keras
    HOME = os.getcwd()

    # gfile
    gfile = tf.io.gfile
    with gfile.GFile("notes.txt", "a") as f: f.write("more")
    assert gfile.GFile("notes.txt").read() == "realmore" and open("notes.txt").read() == "realmore"
    gfile.makedirs("runs/a/b"); gfile.makedirs("runs/a/b")
    gfile.GFile("runs/a/b/x.txt", "w").close()
    gfile.copy("notes.txt", "runs/copy.txt"); gfile.copy("notes.txt", "runs/copy.txt", overwrite=True)
    gfile.rename("runs/copy.txt", "runs/renamed.txt")
    assert sorted(gfile.listdir("runs")) == ["a", "renamed.txt"], gfile.listdir("runs")
    assert gfile.glob("runs/*.txt") == ["runs/renamed.txt"], gfile.glob("runs/*.txt")
    assert sorted(gfile.glob(HOME + "/*/*.txt")) == [
        HOME + "/" + name for name in ("data/a.txt", "other/c.txt", "runs/renamed.txt")]
    gfile.remove("data/a.txt")
    assert not gfile.exists("data/a.txt") and gfile.glob("data/*") == []
    try: gfile.remove("data/a.txt"); raise SystemExit("removed twice")
    except tf.errors.NotFoundError: pass
    gfile.rmtree("data"); assert not gfile.exists("data") and not gfile.isdir("data")
    gfile.mkdir("data"); assert gfile.listdir("data") == []

    # records, text and files that a graph reads
    os.makedirs("shards")
    for i in range(3):
        with tf.io.TFRecordWriter(f"shards/part-{i}.tfrecord") as writer: writer.write(b"record %d" % i)
        with open(f"shards/{i}.txt", "w") as f: f.write(f"text {i}")
    files = sorted(glob.glob("shards/*.tfrecord"))
    assert len(list(tf.data.TFRecordDataset(files))) == 3
    assert len(list(tf.data.TFRecordDataset(files, num_parallel_reads=2))) == 3
    found = [p.numpy() for p in tf.data.Dataset.list_files("shards/*.txt", shuffle=False)]
    assert found == [b"shards/0.txt", b"shards/1.txt", b"shards/2.txt"], found
    for paths in (found, [os.path.abspath(p) for p in found], ["./" + p.decode() for p in found]):
        read = [t.numpy() for t in tf.data.Dataset.from_tensor_slices(paths).map(tf.io.read_file)]
        assert read == [b"text 0", b"text 1", b"text 2"], read
    real = tf.data.Dataset.from_tensor_slices([HOME + "/other/c.txt", "other/c.txt"]).map(tf.io.read_file)
    assert [t.numpy() for t in real] == [b"c", b"c"]
    assert [line.numpy() for line in tf.data.TextLineDataset("shards/0.txt")] == [b"text 0"]
    tf.io.write_file("other/new.txt", "by an op"); assert tf.io.read_file("other/new.txt") == b"by an op"
    @tf.function
    def write(name): tf.io.write_file(name, "in a graph")
    write(tf.constant("graph.txt")); write(tf.constant(HOME + "/notes.txt"))
    list(tf.data.Dataset.range(3).cache("cached"))
    list(tf.data.Dataset.range(3).cache())
    tf.data.Dataset.range(3).save("saved_dataset")
    assert [int(x) for x in tf.data.Dataset.load("saved_dataset")] == [0, 1, 2]
    open("words.txt", "w").write("a\\nb\\n")
    table = tf.lookup.StaticHashTable(tf.lookup.TextFileInitializer(
        "words.txt", tf.string, tf.lookup.TextFileIndex.WHOLE_LINE,
        tf.int64, tf.lookup.TextFileIndex.LINE_NUMBER), -1)
    assert int(table.lookup(tf.constant("b"))) == 1

    # training with all that writes
    model = keras.Sequential([keras.layers.Input((4,)), keras.layers.Dense(2)])
    model.compile("adam", "mse")
    x, y = np.random.rand(64, 4).astype("float32"), np.random.rand(64, 2).astype("float32")
    C = keras.callbacks
    model.fit(x, y, epochs=2, verbose=0, callbacks=[
        C.ModelCheckpoint("best.keras"), C.ModelCheckpoint("w/{epoch}.weights.h5", save_weights_only=True),
        C.CSVLogger("log.csv"), C.BackupAndRestore("backup")])
    assert len(open("log.csv").readlines()) == 3 and os.path.exists("w/2.weights.h5")
    assert np.array_equal(keras.models.load_model("best.keras").get_weights()[0], model.get_weights()[0])
    model.save("whole.h5"); keras.models.load_model("whole.h5", compile=False)
    model.load_weights("w/2.weights.h5")
    model.export("exported", verbose=False); served = tf.saved_model.load("exported"); served.serve(x[:1])
    tf.saved_model.save(tf.Module(), "module"); tf.saved_model.load("module")

    variable = tf.Variable(1.0)
    checkpoint = tf.train.Checkpoint(v=variable)
    manager = tf.train.CheckpointManager(checkpoint, "checkpoints", max_to_keep=1)
    for value in (2.0, 3.0):
        variable.assign(value); path = manager.save()
    variable.assign(0.0)
    assert path == tf.train.latest_checkpoint("checkpoints") == "checkpoints/ckpt-2", path
    assert len(glob.glob("checkpoints/*.index")) == 1
    checkpoint.restore(path).assert_consumed(); assert float(variable) == 3.0
    assert tf.train.load_variable("checkpoints", "v/.ATTRIBUTES/VARIABLE_VALUE") == 3.0
    path = checkpoint.write(HOME + "/absolute/one"); checkpoint.read(path)

    writer = tf.summary.create_file_writer("summaries/deep")
    with writer.as_default(): tf.summary.write("loss", 1.0, step=1)
    writer.close()
    events = glob.glob("summaries/deep/*"); assert len(events) == 1
    assert len(list(tf.compat.v1.train.summary_iterator(events[0]))) >= 2

    tf.profiler.experimental.start("profile"); model(x); tf.profiler.experimental.stop()
    assert glob.glob("profile/plugins/profile/*/*.xplane.pb")

    # TF1
    with tf.Graph().as_default(), tf.compat.v1.Session() as session:
        v1 = tf.compat.v1.get_variable("v1", initializer=5.0, use_resource=True)
        saver = tf.compat.v1.train.Saver()
        session.run(v1.initializer)
        path = saver.save(session, "old/model", global_step=7); assert path == "old/model-7", path
        session.run(v1.assign(1.0))
        saver.restore(session, path); assert session.run(v1) == 5.0
        saver.restore(session, tf.compat.v1.train.latest_checkpoint("old"))
        events = tf.compat.v1.summary.FileWriter("old/events", session.graph); events.close()
        assert os.listdir("old/events")
    print("all was written and read")
"""


@pytest.mark.slow
@pytest.mark.parametrize("held_by", ["all", pytest.param("first-landlock", marks=pytest.mark.exhaustive), "python"])
def test_everything_that_tensorflow_writes_goes_elsewhere_and_comes_back(tmp_path: Path, held_by: str) -> None:
    home, trial = tmp_path / "project", tmp_path / "trial"
    first = Fence(landlock=min(means().landlock, FIRST))
    fences = {"all": decide(NOTHING), "first-landlock": first, "python": Fence()}
    fence = replace(fences[held_by], writable=(str(trial),))
    (trial / "tmp").mkdir(parents=True)
    for name, text in {"notes.txt": "real", "data/a.txt": "a", "other/c.txt": "c"}.items():
        (home / name).parent.mkdir(parents=True, exist_ok=True)
        (home / name).write_text(text)
    program = trial / "program.py"
    program.write_text(START.format(trial=str(trial), held=fence.held, moves=fence.moves) + textwrap.dedent(TF2))
    before = {path: (path.stat().st_mtime_ns, path.is_file() and path.read_bytes()) for path in home.rglob("*")}
    done = subprocess.run(
        fence.command([sys.executable, str(program)]),
        cwd=home,
        env=environment(TMPDIR=str(trial / "tmp")),
        capture_output=True,
        text=True,
        timeout=300,
    )
    assert done.returncode == 0, done.stderr[-4000:]
    assert "all was written and read" in done.stdout
    after = {path: (path.stat().st_mtime_ns, path.is_file() and path.read_bytes()) for path in home.rglob("*")}
    assert after == before
    assert os.listdir(trial / "files")
    assert "goes without" not in (trial / "facts.jsonl").read_text()
