"""Writes the reader of a set: a Python file that yields its elements as a tf.data pipeline and needs only TensorFlow.

Small elements are parsed in blocks, which costs a fraction of parsing them one by one, and then unbatched. What comes
from the source (names of classes, columns, files) is written as a literal, so that no name of a file can become code.
"""

from __future__ import annotations

import keyword
import re
from collections.abc import Iterator
from typing import Any

from flatout.data.shards.schema import Feature, Schema
from flatout.data.shards.tensors import SHAPE

_DIRECT = ("float16", "float32", "float64", "int8", "uint8", "int16", "uint16", "int32", "int64", "complex64",
           "complex128", "bool")  # fmt: skip
"""Types that `tf.io.decode_raw` supports. Others are read as a type of the same width and bit-cast."""
BLOCK_BYTES, MAX_BLOCK, MIN_BLOCK = 4_000_000, 256, 8
COMPRESSION_RATIO = 4
"""How much smaller compression makes the elements, roughly."""
_DECODED_AS = {"bfloat16": "uint16", "uint32": "int32", "uint64": "int64"}


def write(schema: Schema) -> tuple[str, str]:
    """The name of the reader and its text."""
    return f"{module_name(schema.name)}_reader.py", _text(schema)


def module_name(name: str) -> str:
    word = re.sub(r"\W", "_", name, flags=re.ASCII)
    return f"_{word}" if word[:1].isdigit() or keyword.iskeyword(word) else word


def _text(schema: Schema) -> str:
    decoded = _decoding(schema)
    arrays = schema.format == "arrayrecord"
    parts = [
        _HEAD.format(
            title=f"{schema.name}: {schema.elements:,} elements in {len(schema.shards)} shards",
            module=module_name(schema.name) + "_reader",
            needs="TensorFlow and the package array-record" if arrays else "TensorFlow alone",
            array_record=_IMPORT if arrays else "",
            shards=_literal([one.file for one in schema.shards]),
            elements=schema.elements,
            compression=repr({"gzip": "GZIP"}.get(schema.compression, "")),
            classes=_literal(list(schema.classes)),
            features=_features(schema.features),
        ),
        _PARSE.format(values="\n".join(_values(schema.features)), result=_structured(schema)),
    ]
    block = _block(schema)
    if block > 1:
        parts.append(_PARSE_BLOCK.format(values="\n".join(_values(schema.features, True)), result=_structured(schema)))
    if decoded:
        parts.append(decoded)
    parsed = f"batch({block}).map(parse_block, tf.data.AUTOTUNE).unbatch()" if block > 1 else _ONE_BY_ONE
    load = _LOAD_ARRAYS if arrays else _LOAD
    parts.append(load.format(parsed=parsed, **(_DECODED if decoded else _AS_STORED)))
    return "\n\n".join(parts)


def _block(schema: Schema) -> int:
    """How many elements are parsed at a time: a few megabytes, if all have one shape."""
    if any(one.varies or 0 in one.shape for one in schema.features) or not schema.elements:
        return 1
    size = sum(one.bytes for one in schema.shards) * (COMPRESSION_RATIO if schema.compression else 1) / schema.elements
    count = min(MAX_BLOCK, int(BLOCK_BYTES / max(size, 1)))
    return count if count >= MIN_BLOCK else 1


def _literal(values: list[str]) -> str:
    if not values:
        return "[]"
    return "[\n" + "".join(f"    {value!r},\n" for value in values) + "]"


def _features(features: tuple[Feature, ...]) -> str:
    lines = []
    for one in features:
        dtype = {"bytes": "tf.string", "raw": "tf.string", "int64": "tf.int64", "float32": "tf.float32"}[one.stored]
        if one.stored == "raw":
            kind = "tf.io.FixedLenFeature([], tf.string)"
        elif one.varies:
            kind = f"tf.io.RaggedFeature({dtype})"
        else:
            kind = f"tf.io.FixedLenFeature({list(one.shape)}, {dtype})"
        lines.append(f"    {one.name!r}: {kind},\n")
        if _shaped(one):
            lines.append(f"    {one.name + SHAPE!r}: tf.io.FixedLenFeature([{len(one.shape)}], tf.int64),\n")
    return "{\n" + "".join(lines) + "}"


def _shaped(one: Feature) -> bool:
    """Whether its shape is stored in a feature of its own: a list of one dimension has its length."""
    return one.varies and (one.stored == "raw" or len(one.shape) > 1)


def _values(features: tuple[Feature, ...], block: bool = False) -> Iterator[str]:
    for one in features:
        found = f"found[{one.name!r}]"
        if one.stored == "raw":
            base = one.dtype if one.dtype in _DIRECT else _DECODED_AS[one.dtype]
            found = f"tf.io.decode_raw({found}, tf.{base})"
            if base != one.dtype:
                found = f"tf.bitcast({found}, tf.{one.dtype})"
        if _shaped(one):
            found = f"tf.ensure_shape(tf.reshape({found}, found[{one.name + SHAPE!r}]), {list(one.shape)})"
        elif one.stored == "raw":
            found = f"tf.reshape({found}, {[-1, *one.shape] if block else list(one.shape)})"
        elif one.stored == "int64" and one.dtype != "int64":
            found = f"tf.cast({found}, tf.{one.dtype})"
        yield f"        {one.name!r}: {found},"


def _structured(schema: Schema) -> str:
    return "values" if schema.structure is None else _expression(schema.structure)


def _expression(structure: Any) -> str:
    """Code for a pipeline's structure: `{"tuple": […]}`, `{"dict": {…}}`, `{"ragged": […]}`, … or a feature's name."""
    if isinstance(structure, str):
        return f"values[{structure!r}]"
    kind, content = next(iter(structure.items()))
    if kind == "dict":
        return "{" + ", ".join(f"{key!r}: {_expression(value)}" for key, value in content) + "}"
    parts = [_expression(value) for value in content]
    if kind == "ragged":
        return f"tf.RaggedTensor.from_nested_row_splits({parts[0]}, [{', '.join(parts[1:])}], validate=False)"
    if kind == "sparse":
        return f"tf.SparseTensor({', '.join(parts)})"
    return "(" + "".join(f"{part}, " for part in parts).strip() + ")"


def _decoding(schema: Schema) -> str:
    if schema.structure is not None:
        return ""
    found = [(one.name, _DECODERS[one.encoding]) for one in schema.features if one.encoding in _DECODERS]
    if not found:
        return ""
    lines = "".join(f"    element[{name!r}] = {call.format(value=f'element[{name!r}]')}\n" for name, call in found)
    return _DECODE.format(lines=lines)


_DECODERS = {
    "jpeg": "tf.io.decode_jpeg({value}, channels=channels)",
    "image": "tf.io.decode_image({value}, channels=channels, expand_animations=False)",
    "wav": "tf.audio.decode_wav({value}, desired_channels=channels or -1).audio",
}
_IMPORT = "from array_record.python.array_record_data_source import ArrayRecordDataSource\n"
_AS_STORED = {"arguments": "", "mapped": "", "note": ""}
_DECODED = {
    "arguments": ", decoded=True, channels=0",
    "mapped": """
    if decoded:
        dataset = dataset.map(lambda element: decode(element, channels), tf.data.AUTOTUNE)""",
    "note": """

    `decoded=False` returns the files' bytes; `channels` is the number of channels to decode to, 0: as in the file.
    """,
}

_HEAD = '''"""Reads {title}.

Written by `flatout data convert`. Needs {needs}. Keep it with the shards, or pass their directory.

    import {module}

    for batch in {module}.load().shuffle(1000).batch(32):
        ...
"""

import os

import tensorflow as tf
{array_record}
SHARDS = {shards}
ELEMENTS = {elements}
COMPRESSION = {compression}
CLASSES = {classes}
FEATURES = {features}


def files(directory=None):
    """The shards' paths."""
    directory = os.path.dirname(os.path.abspath(__file__)) if directory is None else os.fspath(directory)
    return [os.path.join(directory, name) for name in SHARDS]
'''
_PARSE = '''def parse(record):
    """One serialised element as tensors."""
    found = tf.io.parse_single_example(record, FEATURES)
    values = {{
{values}
    }}
    return {result}
'''
_PARSE_BLOCK = '''def parse_block(records):
    """Several serialised elements at once: each tensor has one dimension more."""
    found = tf.io.parse_example(records, FEATURES)
    values = {{
{values}
    }}
    return {result}
'''
_ONE_BY_ONE = "map(parse, tf.data.AUTOTUNE)"
_DECODE = '''def decode(element, channels=0):
    """The bytes of a file as its tensor."""
    element = dict(element)
{lines}    return element
'''
_LOAD = '''def load(directory=None, in_order=False{arguments}):
    """All elements. Several shards are read at a time, unless `in_order` asks for the order of writing.{note}"""
    paths = files(directory)
    parallel = None if in_order else tf.data.AUTOTUNE
    dataset = tf.data.TFRecordDataset(paths, COMPRESSION, num_parallel_reads=parallel)
    dataset = dataset.{parsed}{mapped}
    return dataset.apply(tf.data.experimental.assert_cardinality(ELEMENTS)).prefetch(tf.data.AUTOTUNE)
'''
_LOAD_ARRAYS = '''def load(directory=None, in_order=True{arguments}):
    """All elements, in the order of writing.{note}"""
    def records():
        with ArrayRecordDataSource(files(directory)) as source:
            for start in range(0, len(source), 256):
                yield from source.__getitems__(range(start, min(start + 256, len(source))))

    dataset = tf.data.Dataset.from_generator(records, output_signature=tf.TensorSpec([], tf.string))
    dataset = dataset.{parsed}{mapped}
    return dataset.apply(tf.data.experimental.assert_cardinality(ELEMENTS)).prefetch(tf.data.AUTOTUNE)
'''
