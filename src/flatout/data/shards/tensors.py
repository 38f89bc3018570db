"""How a tensor is stored in an element, and restored.

Strings, and single integers and float32 numbers, are stored as such. Every other array is stored as its bytes in
little-endian order, which is the fastest to read and exact for every type. Where a length varies from element to
element, the shape is stored as well.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from flatout.data.shards.example import Decoded, Value
from flatout.data.shards.schema import Feature

SHAPE = "/shape"
INTEGERS = ("bool", "int8", "int16", "int32", "int64", "uint8", "uint16", "uint32")
"""Types whose every value fits into int64."""
KNOWN = (*INTEGERS, "uint64", "float16", "bfloat16", "float32", "float64", "complex64", "complex128")


def feature(name: str, dtype: str, shape: tuple[int | None, ...]) -> Feature | None:
    """How a tensor of this type and shape is stored; None for a type that a shard cannot hold."""
    if dtype == "string":
        return Feature(name, "bytes", dtype, shape)
    if dtype not in KNOWN:
        return None
    if shape == () and dtype in INTEGERS:
        return Feature(name, "int64", dtype)
    if shape == () and dtype == "float32":
        return Feature(name, "float32", dtype)
    return Feature(name, "raw", dtype, shape)


def dtype_of(dtype: np.dtype[Any]) -> str:
    """TensorFlow's name of a numpy type."""
    return "string" if dtype.kind in "US" else dtype.name


def stored(one: Feature, array: NDArray[Any]) -> dict[str, Value]:
    """The values that store one tensor."""
    shape = {one.name + SHAPE: np.array(array.shape, np.int64)} if one.varies else {}
    return {one.name: _value(one, array), **shape}


def _value(one: Feature, array: NDArray[Any]) -> Value:
    if one.stored == "bytes":
        return [item if isinstance(item, bytes) else str(item).encode() for item in array.ravel().tolist()]
    if one.stored == "int64":
        return int(array)
    if one.stored == "float32":
        return float(array)
    swapped = array.astype(array.dtype.newbyteorder("<")) if array.dtype.byteorder == ">" else array
    return swapped.tobytes()


def restored(one: Feature, element: Decoded) -> NDArray[Any]:
    """The array, from a decoded element."""
    values = element[one.name]
    if one.stored == "raw":
        dtype = np.dtype(one.dtype).newbyteorder("<")
        values = np.frombuffer(bytes(values[0]), dtype)
    shape = tuple(np.asarray(element[one.name + SHAPE]).tolist()) if one.varies else one.shape
    return np.asarray(values).reshape(shape)
