"""The pipelines of benchmarks/data.py: with known costs, misconfigured beside an expert's rewrite, and good ones."""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import tensorflow as tf

Data = tf.data.Dataset
AUTO = tf.data.AUTOTUNE
Truth = Callable[[], tuple[float, str]]


# ── known costs ──────────────────────────────────────────────────────────────────────────────────────────────────────


def sleeping(ms: float) -> Callable[[Any], Any]:
    def wait(value: Any) -> Any:
        time.sleep(ms / 1e3)
        return value

    return wait


def computing(ms: float) -> Callable[[Any], Any]:
    def compute(value: Any) -> Any:
        end = time.thread_time() + ms / 1e3
        while time.thread_time() < end:
            pass
        return value

    return compute


def mapped(function: Callable[[Any], Any], shape: tuple[Any, ...] = ()) -> Callable[[Any], Any]:
    def call(value: Any) -> Any:
        return tf.ensure_shape(tf.numpy_function(function, [value], tf.int64), shape)

    return call


def truth_of(function: Callable[[Any], Any], clock: str) -> Truth:
    """What the function takes when it is called by itself, now."""

    def measure() -> tuple[float, str]:
        ask = time.perf_counter if clock == "wall" else time.thread_time
        times = []
        for _ in range(25):
            began = ask()
            function(np.int64(1))
            times.append((ask() - began) * 1e3)
        return statistics.median(times), clock

    return measure


def costs() -> dict[str, tuple[Any, list[Truth], int]]:
    """Name → dataset, what each of its maps costs in truth, which of them is critical."""
    waits = {ms: sleeping(ms) for ms in (2, 5, 8, 10, 20, 40)}
    works = {ms: computing(ms) for ms in (5, 6, 10, 15)}
    wall = {ms: truth_of(function, "wall") for ms, function in waits.items()}
    cpu = {ms: truth_of(function, "cpu") for ms, function in works.items()}
    numbers = Data.range(100_000)
    fused = tf.data.Options()
    fused.experimental_optimization.map_fusion = True
    pool = tf.data.Options()
    pool.threading.private_threadpool_size = 8
    return {
        "waiting": (
            numbers.map(mapped(waits[5])).map(mapped(waits[10])).map(mapped(waits[8])).batch(8),
            [wall[5], wall[10], wall[8]],
            1,
        ),
        "computing": (
            numbers.map(mapped(works[6])).map(mapped(works[15])).map(mapped(works[10])).batch(8),
            [cpu[6], cpu[15], cpu[10]],
            1,
        ),
        "fused with batch": (
            numbers.map(mapped(waits[5])).map(mapped(waits[20]), num_parallel_calls=8).batch(8).with_options(pool),
            [wall[5], wall[20]],
            0,
        ),
        "fused maps": (
            numbers.map(mapped(works[5])).map(mapped(works[15])).batch(8).prefetch(2).with_options(fused),
            [cpu[5], cpu[15]],
            1,
        ),
        "whole batches": (
            numbers.map(mapped(waits[5])).batch(16).map(mapped(waits[40], (None,))),
            [wall[5], wall[40]],
            0,
        ),
        "behind a cache": (
            Data.range(64).map(mapped(waits[10])).cache().repeat().map(mapped(waits[5])).batch(8),
            [wall[10], wall[5]],
            1,
        ),
        "waits and works": (
            numbers.map(mapped(works[5])).shuffle(16).map(mapped(waits[10])).batch(4).prefetch(AUTO),
            [cpu[5], wall[10]],
            1,
        ),
    }


# ── misconfigured, an expert's, AUTOTUNE everywhere ──────────────────────────────────────────────────────────────────


@dataclass(frozen=True)
class Row:
    given: Callable[[], Any]
    expert: Callable[[], Any]
    everywhere: Callable[[], Any]
    allow: tuple[str, ...] = ()


def slow(directory: Path) -> dict[str, Row]:
    files = _Files(directory)
    return {
        "jpeg-folder": _jpeg_folder(files),
        "serial-records": _serial_records(files),
        "numpy-function": _numpy_function(),
        "generator": _generator(),
        "parse": _parse(files),
        "blocking-reads": _blocking_reads(),
        "late-batch": _late_batch(),
        "augmentation": _augmentation(files),
        "text": _text(files),
        "wide-csv": _wide_csv(files),
        "late-filter": _late_filter(files),
        "tied-down": _tied_down(files),
    }


def good(directory: Path) -> dict[str, Callable[[], Any]]:
    rows = slow(directory)
    arrays = np.random.default_rng(0).random((40_000, 16), np.float32)
    names = ("jpeg-folder", "serial-records", "parse", "late-batch", "wide-csv", "late-filter")
    return {
        "arrays": lambda: Data.from_tensor_slices(arrays).shuffle(40_000).batch(128).prefetch(AUTO),
        "arrays-repeat": lambda: Data.from_tensor_slices(arrays).batch(256).map(lambda x: x * 2, AUTO).prefetch(AUTO),
        **{name: rows[name].expert for name in names},
    }


class _Files:
    """Files on disk, made once: pictures, records, lines."""

    def __init__(self, directory: Path) -> None:
        rng = np.random.default_rng(0)
        smooth = rng.integers(0, 255, (300, 12, 12, 3), dtype=np.uint8).repeat(10, 1).repeat(10, 2)
        self.pictures, self.labels = [], np.arange(300) % 10
        for number, picture in enumerate(smooth):
            path = directory / f"{number}.jpg"
            if not path.exists():
                path.write_bytes(tf.io.encode_jpeg(picture).numpy())
            self.pictures.append(str(path))
        self.records = [str(directory / f"records-{number}") for number in range(8)]
        for number, name in enumerate(self.records):
            with tf.io.TFRecordWriter(name) as writer:
                for _ in range(500):
                    example = tf.train.Example()
                    example.features.feature["x"].float_list.value.extend(rng.random(32).tolist())
                    example.features.feature["y"].int64_list.value.append(number)
                    writer.write(example.SerializeToString())
        self.lines = str(directory / "lines.txt")
        words = [f"Word{number}," for number in range(500)]
        Path(self.lines).write_text("\n".join(" ".join(rng.choice(words, 20)) for _ in range(3000)))
        self.columns = str(directory / "columns.csv")
        rows = rng.random((2000, 100)).round(4)
        Path(self.columns).write_text("\n".join(",".join(map(str, row)) for row in rows))


def _decode(path: Any, label: Any) -> Any:
    picture = tf.io.decode_jpeg(tf.io.read_file(path), channels=3)
    return tf.image.resize(picture, (64, 64)) / 255.0, label


def _jpeg_folder(files: _Files) -> Row:
    def source() -> Any:
        return Data.from_tensor_slices((files.pictures, files.labels))

    return Row(
        lambda: source().map(_decode).shuffle(300).batch(32),
        lambda: source().map(_decode, AUTO).cache().shuffle(300).batch(32).prefetch(AUTO),
        lambda: source().map(_decode, AUTO).shuffle(300).batch(32, num_parallel_calls=AUTO).prefetch(AUTO),
    )


SPEC = {"x": tf.io.FixedLenFeature([32], tf.float32), "y": tf.io.FixedLenFeature([], tf.int64)}


def _one(record: Any) -> Any:
    return tf.io.parse_single_example(record, SPEC)


def _all(records: Any) -> Any:
    return tf.io.parse_example(records, SPEC)


def _serial_records(files: _Files) -> Row:
    def interleaved() -> Any:
        return Data.from_tensor_slices(files.records).interleave(
            tf.data.TFRecordDataset, cycle_length=8, num_parallel_calls=AUTO
        )

    return Row(
        lambda: tf.data.TFRecordDataset(files.records).map(_one).shuffle(2000).batch(64),
        lambda: interleaved().cache().shuffle(2000).batch(64).map(_all, AUTO).prefetch(AUTO),
        lambda: interleaved().map(_one, AUTO).shuffle(2000).batch(64, num_parallel_calls=AUTO).prefetch(AUTO),
    )


def _parse(files: _Files) -> Row:
    def source() -> Any:
        return tf.data.TFRecordDataset(files.records)

    return Row(
        lambda: source().map(_one).batch(64),
        lambda: source().batch(64).map(_all, AUTO).cache().prefetch(AUTO),
        lambda: tf.data.TFRecordDataset(files.records, num_parallel_reads=AUTO).map(_one, AUTO)
        .batch(64, num_parallel_calls=AUTO).prefetch(AUTO),
    )  # fmt: skip


def _numpy_function() -> Row:
    rows = np.random.default_rng(1).random((2000, 64), np.float32)

    def standardise(row: Any) -> Any:
        return ((row - row.mean()) / (row.std() + 1e-6)).astype(np.float32)

    def call(row: Any) -> Any:
        return tf.ensure_shape(tf.numpy_function(standardise, [row], tf.float32), (64,))

    def source() -> Any:
        return Data.from_tensor_slices(rows)

    return Row(
        lambda: source().map(call).shuffle(500).batch(32),
        lambda: source().map(call).cache().shuffle(500).batch(32).prefetch(AUTO),
        lambda: source().map(call, AUTO).shuffle(500).batch(32, num_parallel_calls=AUTO).prefetch(AUTO),
    )


def _generator() -> Row:
    def rows() -> Any:
        for number in range(2000):
            yield np.full(64, number, np.float32), number % 10

    signature = (tf.TensorSpec((64,), tf.float32), tf.TensorSpec((), tf.int32))

    def source() -> Any:
        return Data.from_generator(rows, output_signature=signature)

    return Row(
        lambda: source().shuffle(500).batch(32),
        lambda: source().cache().shuffle(500).batch(32).prefetch(AUTO),
        lambda: source().shuffle(500).batch(32, num_parallel_calls=AUTO).prefetch(AUTO),
    )


def _blocking_reads() -> Row:
    """A store that answers after some milliseconds; the elements differ each time, so that no cache helps."""

    def read(number: Any) -> Any:
        time.sleep(0.004)
        return np.full(16, number, np.float32)

    def call(number: Any) -> Any:
        return tf.ensure_shape(tf.numpy_function(read, [number], tf.float32), (16,))

    def jitter(row: Any) -> Any:
        return row + tf.random.uniform([16])

    def call_and_jitter(number: Any) -> Any:
        return jitter(call(number))

    pool = tf.data.Options()
    pool.threading.private_threadpool_size = 16
    return Row(
        lambda: Data.range(240).map(call_and_jitter).batch(16),
        lambda: Data.range(240).map(call_and_jitter, 16).batch(16).prefetch(AUTO).with_options(pool),
        lambda: Data.range(240).map(call_and_jitter, AUTO).batch(16, num_parallel_calls=AUTO).prefetch(AUTO),
        allow=("semantic",),
    )


def _late_batch() -> Row:
    rows = np.random.default_rng(2).random((30_000, 16), np.float32)

    def scale(row: Any) -> Any:
        return row * 2.0 - 1.0

    def source() -> Any:
        return Data.from_tensor_slices(rows)

    return Row(
        lambda: source().map(scale).batch(128),
        lambda: source().batch(128).map(scale, AUTO).cache().prefetch(AUTO),
        lambda: source().map(scale, AUTO).batch(128, num_parallel_calls=AUTO).prefetch(AUTO),
    )


def _augmentation(files: _Files) -> Row:
    def augment(picture: Any, label: Any) -> Any:
        picture = tf.image.random_flip_left_right(picture)
        return tf.image.random_brightness(picture, 0.2), label

    def both(path: Any, label: Any) -> Any:
        return _decode(path, label)

    def source() -> Any:
        return Data.from_tensor_slices((files.pictures, files.labels))

    return Row(
        lambda: source().map(both).map(augment).shuffle(100).batch(32),
        lambda: source().map(both, AUTO).cache().map(augment, AUTO).shuffle(100).batch(32).prefetch(AUTO),
        lambda: source().map(both, AUTO).map(augment, AUTO).shuffle(100).batch(32, num_parallel_calls=AUTO)
        .prefetch(AUTO),
        allow=("semantic",),
    )  # fmt: skip


def _text(files: _Files) -> Row:
    table = tf.lookup.StaticHashTable(
        tf.lookup.KeyValueTensorInitializer(
            tf.constant([f"word{number}" for number in range(500)]), tf.range(500, dtype=tf.int64)
        ),
        -1,
    )

    def tokens(line: Any) -> Any:
        clean = tf.strings.regex_replace(tf.strings.lower(line), ",", "")
        return table.lookup(tf.strings.split(clean))

    def source() -> Any:
        return tf.data.TextLineDataset(files.lines)

    return Row(
        lambda: source().map(tokens).shuffle(500).padded_batch(32),
        lambda: source().map(tokens, AUTO).cache().shuffle(500).padded_batch(32).prefetch(AUTO),
        lambda: source().map(tokens, AUTO).shuffle(500).padded_batch(32).prefetch(AUTO),
    )


def _wide_csv(files: _Files) -> Row:
    kinds = [[0.0]] * 100

    def columns(line: Any) -> Any:
        return tf.stack(tf.io.decode_csv(line, kinds), axis=-1)

    def source() -> Any:
        return tf.data.TextLineDataset(files.columns)

    return Row(
        lambda: source().map(columns).batch(64),
        lambda: source().batch(64).map(columns, AUTO).cache().prefetch(AUTO),
        lambda: source().map(columns, AUTO).batch(64, num_parallel_calls=AUTO).prefetch(AUTO),
    )


def _late_filter(files: _Files) -> Row:
    """Nine of ten pictures are decoded for nothing; what follows is random and keeps a cache away from the end."""

    def wanted(_: Any, label: Any) -> Any:
        return label == 3

    def source() -> Any:
        return Data.from_tensor_slices((files.pictures, files.labels)).repeat(3)

    return Row(
        lambda: source().map(_decode).filter(wanted).shuffle(20).batch(8),
        lambda: source().filter(wanted).map(_decode, AUTO).shuffle(20).batch(8).prefetch(AUTO),
        lambda: source().map(_decode, AUTO).filter(wanted).shuffle(20).batch(8, num_parallel_calls=AUTO).prefetch(AUTO),
    )


def _tied_down(files: _Files) -> Row:
    def tied(dataset: Any) -> Any:
        options = tf.data.Options()
        options.autotune.enabled = False
        options.experimental_optimization.apply_default_optimizations = False
        return dataset.with_options(options)

    def source() -> Any:
        return Data.from_tensor_slices((files.pictures, files.labels)).repeat(2)

    return Row(
        lambda: tied(source().map(_decode).shuffle(100).batch(32)),
        lambda: source().map(_decode, AUTO).shuffle(100).batch(32).prefetch(AUTO),
        lambda: source().map(_decode, AUTO).shuffle(100).batch(32, num_parallel_calls=AUTO).prefetch(AUTO),
    )
