"""Many record files are read one after the other.

## What it is
`TFRecordDataset(files)` without `num_parallel_reads`, `interleave` without `num_parallel_calls`, or `flat_map` over
files. TensorFlow makes maps parallel by itself, but not the reading of files.

## Why it costs
One file at a time means one request at a time. A local disk hides that; a network file system or an object store, with
milliseconds to the first byte and a limit per stream, does not. Unpacking compressed records also stays on one core.

## How it looks
```python
files = tf.io.gfile.glob("gs://bucket/train-*.tfrecord")
dataset = tf.data.TFRecordDataset(files)
other = tf.data.Dataset.from_tensor_slices(files).interleave(tf.data.TFRecordDataset, cycle_length=8)
```

## The cure
```python
dataset = tf.data.TFRecordDataset(files, num_parallel_reads=tf.data.AUTOTUNE)
other = tf.data.Dataset.from_tensor_slices(files).interleave(
    tf.data.TFRecordDataset, cycle_length=8, num_parallel_calls=tf.data.AUTOTUNE
)
```
- `interleave` with its `cycle_length` kept: exact; the order of the elements stays.
- `num_parallel_reads`: **semantic**. Records of several files come alternately; all of them come, in another order.

No lever does this; `flatout check --fix` writes it.

## When it is not worth it
When the files are few and local, or when decoding costs far more than reading. An evaluation that must see the records
in the order of the files keeps the serial form.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator

from flatout.causes._spec import Cause
from flatout.source.analysis import datasets
from flatout.source.analysis.patterns import Match, pattern
from flatout.source.analysis.scopes import Site
from flatout.source.analysis.syntax import argument, constant, keyword, last_name, takes_unknown
from flatout.source.repairs import PARALLEL_CALLS, Repair, SetArgument

_READERS = {"TFRecordDataset": 3, "TextLineDataset": 3, "FixedLengthRecordDataset": 6}
"""Readers, and the position of num_parallel_reads among their arguments."""
_MANY = ("glob", "listdir", "match_filenames_once", "matching_files", "list_files", "Glob", "ListDirectory")


@pattern("files-in-turn", calls=tuple(_READERS), seldom=True)
def _files_in_turn(call: ast.Call, site: Site) -> Iterator[Match]:
    """A reader that is given what is plainly a list of several files."""
    name = last_name(call.func)
    if not site.dotted(call.func).startswith("tensorflow.data.") or takes_unknown(call) or not call.args:
        return
    if argument(call, _READERS[name], "num_parallel_reads") is not None or not _several(call.args[0], site):
        return
    yield Match(
        call,
        f"{name} reads its files one after the other.",
        "Add num_parallel_reads=tf.data.AUTOTUNE, where the order of the records does not matter.",
        "semantic",
        repair=Repair(
            SetArgument("num_parallel_reads", "tensorflow.data.AUTOTUNE", is_name=True),
            assumes="the order of the records does not matter",
        ),
        report_at=call.func,
    )


@pattern("serial-interleave", calls=("interleave",), seldom=True)
def _serial_interleave(call: ast.Call, site: Site) -> Iterator[Match]:
    """`interleave` of readers without num_parallel_calls."""
    if not isinstance(call.func, ast.Attribute) or site.dotted(call.func) or takes_unknown(call):
        return
    if argument(call, 3, "num_parallel_calls") is not None or constant(keyword(call, "cycle_length")) == 1:
        return
    stage = datasets.Stage("interleave", call, site)
    done = stage.function
    reads = done.first("tensorflow.data.TFRecord", "tensorflow.data.TextLine", "tensorflow.data.FixedLength")
    chain = datasets.before(call, site)
    if reads is None or not (chain.certain or not chain.source):
        return
    stateless = datasets.draws_at_random(done) is None and datasets.runs_python(done) is None
    yield Match(
        call,
        "interleave without num_parallel_calls reads one file at a time.",
        "Add num_parallel_calls=tf.data.AUTOTUNE; the order of the elements stays.",
        repair=Repair(
            PARALLEL_CALLS,
            safe=stateless
            and isinstance(constant(argument(call, 1, "cycle_length")), int)
            and site.module.is_pinned
            and site.module.version >= (2, 4),
            assumes="the order of the records does not matter",
        ),
        report_at=call.func,
        confidence="low" if reads[0].startswith("tensorflow.data.TextLine") else "high",
    )


@pattern("flat-map-of-files", calls=("flat_map",), seldom=True)
def _flat_map_of_files(call: ast.Call, site: Site) -> Iterator[Match]:
    """`files.flat_map(tf.data.TFRecordDataset)`"""
    given = argument(call, 0, "map_func")
    if given is None or site.dotted(call.func):
        return
    if site.dotted(given) in ("tensorflow.data.TFRecordDataset", "tensorflow.data.TextLineDataset"):
        yield Match(
            call,
            "flat_map reads the files one after the other.",
            "Use interleave with num_parallel_calls=tf.data.AUTOTUNE, where the order of the records does not matter.",
            "semantic",
            report_at=call.func,
        )


def _several(node: ast.expr, site: Site, far: int = 4) -> bool:
    """Whether an expression is plainly a list of several files."""
    if isinstance(node, (ast.List, ast.Tuple)):
        return len(node.elts) >= 3 or any(isinstance(item, ast.Starred) for item in node.elts)
    if isinstance(node, (ast.ListComp, ast.GeneratorExp)):
        return True
    if isinstance(node, ast.Call):
        if last_name(node.func) in _MANY:
            return True
        if last_name(node.func) in ("sorted", "list", "shuffled") and node.args and far:
            return _several(node.args[0], site, far - 1)
        return False
    if isinstance(node, ast.Name) and far:
        bound = datasets.value_of(node.id, site)
        return bound is not None and _several(bound[0], bound[1], far - 1)
    return False


CAUSE = Cause(
    group="input",
    patterns=(_files_in_turn, _serial_interleave, _flat_map_of_files),
)
