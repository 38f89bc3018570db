"""The generated readers in a process with TensorFlow and without flatout, and a pipeline that becomes shards.

Two processes in all: one converts a pipeline, one runs every reader.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import textwrap
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from waiting import until

sys.path.insert(0, str(Path(__file__).parents[1] / "unit"))
from shards_made import converted, pictures, tree

from flatout.data.shards import tfrecord
from flatout.data.shards.sources import detection

pytestmark = pytest.mark.slow

PIPELINE = """
    import tensorflow as tf

    def make():
        print("the user's own words")

        def build(n):
            x = tf.random.stateless_uniform([3, 4], seed=[1, tf.cast(n, tf.int32)])
            named = {"x": x, "n": tf.cast(n, tf.int32), "s": tf.strings.as_string(n), "b": tf.cast(x[0], tf.bfloat16),
                     "u": tf.cast(n, tf.uint64) + tf.constant(2**63, tf.uint64)}
            ragged = tf.RaggedTensor.from_row_lengths(tf.range(n % 4), [n % 4])
            return named, (tf.range(n % 5), ragged, tf.sparse.from_dense(x[0] > 0.5), tf.constant(True))

        return tf.data.Dataset.range(200).map(build)

    def broken():
        def fail(n):
            no_three = tf.debugging.assert_none_equal(n % 10, tf.constant(3, tf.int64), message="three!")
            with tf.control_dependencies([no_three]):
                return tf.identity(n)
        return tf.data.Dataset.range(50).map(fail)

    def slow():
        import os, time

        def wait(n):
            time.sleep(float(os.environ["WAIT"]))  # so slow that it can be killed in the middle
            return n

        return tf.data.Dataset.range(300).map(lambda n: tf.ensure_shape(tf.py_function(wait, [n], tf.int64), []))

    def endless():
        return tf.data.Dataset.range(5).repeat()

    def two():
        return make(), make()
"""
READING = """
    import importlib, json, os, sys
    import numpy as np
    import tensorflow as tf

    assert not any(name == "flatout" or name.startswith("flatout.") for name in sys.modules)

    def plain(value):
        if isinstance(value, dict):
            return {key: plain(part) for key, part in value.items()}
        if isinstance(value, tuple):
            return [plain(part) for part in value]
        if isinstance(value, tf.RaggedTensor):
            return value.to_list()
        if isinstance(value, tf.SparseTensor):
            return [part.numpy().tolist() for part in (value.indices, value.values, value.dense_shape)]
        if value.dtype == tf.bfloat16:
            value = tf.cast(value, tf.float32)
        array = value.numpy()
        if value.dtype == tf.string:
            return [one.decode() for one in np.ravel(array).tolist()]
        return array.tolist()

    found = {}
    for directory, name, options in json.loads(sys.argv[1]):
        sys.path.insert(0, directory)
        reader = importlib.import_module(name)
        dataset = reader.load(in_order=True, **options)
        found[directory] = [plain(element) for element in dataset]
        assert len(dataset) == len(found[directory]) == reader.ELEMENTS
        if options:  # once: the same in whatever order the shards are read
            anyhow = [plain(element) for element in reader.load(directory, **options)]
            assert sorted(map(repr, anyhow)) == sorted(map(repr, found[directory]))

    # What TensorFlow writes is what we read, and its pipeline gives what its reader gives.
    os.chdir(sys.argv[2])
    for compression in ("", "GZIP"):
        with tf.io.TFRecordWriter(f"theirs{compression}", compression) as writer:
            for record in (b"", b"abc", bytes(range(256)) * 77):
                writer.write(record)
    sys.path.insert(0, os.getcwd())
    import pipes
    found["made"] = [plain(element) for element in pipes.make()]
    print(json.dumps(found))
"""


def run(command: list[str], cwd: Path, check: bool = True) -> subprocess.CompletedProcess[str]:
    variables = {**os.environ, "TF_CPP_MIN_LOG_LEVEL": "3", "CUDA_VISIBLE_DEVICES": ""}
    done = subprocess.run(command, cwd=cwd, env=variables, capture_output=True, text=True)
    assert not check or done.returncode == 0, done.stderr[-3000:]
    return done


@pytest.fixture(scope="module")
def work(tmp_path_factory: pytest.TempPathFactory) -> Path:
    work = tmp_path_factory.mktemp("shards")
    (work / "pipes.py").write_text(textwrap.dedent(PIPELINE))
    return work


@pytest.fixture(scope="module")
def streamed(work: Path) -> subprocess.CompletedProcess[str]:
    command = ["-m", "flatout", "data", "convert", "pipes:make", "piped", "--shard-size", "20kB", "--verify"]
    return run([sys.executable, *command], work)


@pytest.fixture(scope="module")
def read(work: Path, streamed: subprocess.CompletedProcess[str]) -> dict[str, Any]:
    pictures(work / "photos", 20)
    converted(work / "photos", work / "pictures", shuffle=4, shard_size=5000)
    (work / "t.csv").write_text("n,x,word\n1,0.5,a\n2,,\n-3,1e9,ü\n")
    converted(detection.open_source(str(work / "t.csv")), work / "table", name="table", compression="gzip")
    rows = [{"l": list(range(n)), "t": ["x"] * n, "m": [[n, 1], [2, 3]], "ok": n > 1, "d": 0.1} for n in range(4)]
    (work / "t.jsonl").write_text("\n".join(map(json.dumps, rows)))
    converted(
        detection.open_source(str(work / "t.jsonl"), "json", detection.RowOptions(float64=True)),
        work / "json",
        name="0 rows"[2:],
    )
    np.savez(work / "a.npz", h=np.arange(12, dtype=np.float16).reshape(6, 2), u=np.arange(6, dtype=np.uint32) + 2**31)
    converted(work / "a.npz", work / "arrays", name="class")
    for number in range(5):
        (work / "npy").mkdir(exist_ok=True)
        np.save(work / "npy" / f"{number}.npy", np.full((number, 2), number, np.int16))
    converted(work / "npy", work / "folder", name="npy")
    sets = [
        ("pictures", "photos_reader", {"channels": 3}),
        ("table", "table_reader", {}),
        ("json", "rows_reader", {}),
        ("arrays", "_class_reader", {}),
        ("folder", "npy_reader", {}),
        ("piped", "make_reader", {}),
    ]
    (work / "read.py").write_text(textwrap.dedent(READING))
    asked = json.dumps([[str(work / directory), name, options] for directory, name, options in sets])
    done = run([sys.executable, "read.py", asked, str(work)], work)
    found = json.loads(done.stdout.splitlines()[-1])
    return {os.path.basename(name): values for name, values in found.items()}


def test_pictures_are_read_as_pillow_reads_them(read: dict[str, Any], work: Path) -> None:
    from PIL import Image

    assert len(read["pictures"]) == 21
    for element in read["pictures"]:
        name = element["name"][0]
        picture = np.asarray(Image.open(work / "photos" / name).convert("RGB"), np.int16)
        assert np.abs(np.array(element["image"], np.int16) - picture).max() <= 6, "decoders round, and no more"
        assert ["bird", "cat", "dog"][element["label"]] == name.split("/")[0]


def test_tables_are_read(read: dict[str, Any]) -> None:
    assert [row["n"] for row in read["table"]] == [1, 2, -3]
    assert [row["word"] for row in read["table"]] == [["a"], [""], ["ü"]]
    assert [row["x"] for row in read["table"]][::2] == [0.5, 1e9]
    assert np.isnan(read["table"][1]["x"])


def test_json_is_read(read: dict[str, Any]) -> None:
    assert [row["l"] for row in read["json"]] == [list(range(n)) for n in range(4)]
    assert [row["t"] for row in read["json"]] == [["x"] * n for n in range(4)]
    assert [row["m"] for row in read["json"]] == [[[n, 1], [2, 3]] for n in range(4)]
    assert [row["ok"] for row in read["json"]] == [False, False, True, True]
    assert [row["d"] for row in read["json"]] == [0.1] * 4, "as a double"


def test_arrays_are_read(read: dict[str, Any]) -> None:
    assert [row["h"] for row in read["arrays"]] == [[2.0 * n, 2.0 * n + 1] for n in range(6)]
    assert [row["u"] for row in read["arrays"]] == [n + 2**31 for n in range(6)]
    assert [row["value"] for row in read["folder"]] == [[[n, n]] * n for n in range(5)]


def test_a_pipeline_gives_the_same_elements_from_its_shards(
    read: dict[str, Any], streamed: subprocess.CompletedProcess[str]
) -> None:
    assert read["piped"] == read["made"]
    assert len(read["piped"]) == 200
    assert "200 elements" in streamed.stdout
    assert "with equal bytes" in streamed.stdout
    assert "user's own words" in streamed.stderr, "what the program prints is no output of ours"


def test_what_tensorflow_writes_is_read(read: dict[str, Any], work: Path) -> None:
    records = [b"", b"abc", bytes(range(256)) * 77]
    assert list(tfrecord.read(work / "theirs")) == records
    assert list(tfrecord.read(work / "theirsGZIP", "gzip")) == records
    with open(work / "ours", "wb") as stream:
        writer = tfrecord.Writer(stream)
        for record in records:
            writer.write(record)
        writer.close()
    assert (work / "ours").read_bytes() == (work / "theirs").read_bytes()


@pytest.mark.exhaustive
@pytest.mark.parametrize(
    ("target", "options", "words"),
    [
        ("pipes:broken", [], "Element 3 of the pipeline failed"),
        ("pipes:endless", [], "has no end"),
        ("pipes:two", [], "gives 2 datasets"),
        ("pipes:nothing", [], "has no nothing"),
        ("no_such_module:make", [], "no module 'no_such_module'"),
        ("pipes:make", ["--shuffle", "1"], "Shuffle in the pipeline itself"),
    ],
)
def test_what_cannot_be_converted_is_told(work: Path, target: str, options: list[str], words: str) -> None:
    done = run([sys.executable, "-m", "flatout", "data", "convert", target, "no", *options], work, check=False)
    assert done.returncode == 2
    assert words in done.stderr.splitlines()[-1]
    assert not (work / "no").exists() or not list((work / "no").iterdir()), "nothing is left behind"


@pytest.mark.exhaustive
def test_elements_that_fail_are_left_out_when_asked(work: Path) -> None:
    command = ["-m", "flatout", "data", "convert", "pipes:broken", "skipping", "--on-error", "skip", "--verify"]
    done = run([sys.executable, *command], work)
    assert "45 elements" in done.stdout
    assert "5 corrupt" in done.stdout


@pytest.mark.exhaustive
def test_a_pipeline_that_was_killed_starts_again(work: Path) -> None:
    command = [sys.executable, "-m", "flatout", "data", "convert", "pipes:slow", "killed", "--shard-size", "2kB"]
    with subprocess.Popen(command, cwd=work, env={**os.environ, "WAIT": "0.05"}, stderr=subprocess.PIPE) as running:
        until(lambda: len(list((work / "killed").glob(".slow.parts/*.part"))) >= 2 or running.poll() is not None)
        running.kill()
        running.communicate(timeout=400)  # it ends when the child, which has the other end, is gone too
    assert not list((work / "killed").glob("*.tfrecord"))
    for place in ("killed", "whole"):
        command[6] = place
        done = subprocess.run([*command, "--verify"], cwd=work, env={**os.environ, "WAIT": "0"}, capture_output=True)
        assert done.returncode == 0, done.stderr
    assert tree(work / "killed") == tree(work / "whole")
